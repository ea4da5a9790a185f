"""A region of one's own: records, sites, background and rasters beside each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError
from fieldmark.releases import open_dataset, release_of
from fieldmark.releases.checks import CHECKS
from fieldmark.views.open_benchmark import Opened, open_benchmark

PRESENCE = BENCHMARKS["occurrences/presence"]
SPECIES = ("Aa bb", "Cc dd")


def write_raster(path: Path, values: np.ndarray, *, west: float, north: float, degrees: float) -> None:
    rasterio = pytest.importorskip("rasterio")
    path.parent.mkdir(parents=True, exist_ok=True)
    transform = rasterio.transform.from_origin(west, north, degrees, degrees)
    shape = {"height": values.shape[0], "width": values.shape[1], "count": 1, "dtype": "float32"}
    with rasterio.open(path, "w", driver="GTiff", crs="EPSG:4326", transform=transform, nodata=-1, **shape) as file:
        file.write(values.astype("float32"), 1)


def write_records(root: Path, *, environment: bool = False) -> None:
    rng = np.random.default_rng(0)
    lat, lon = rng.uniform(45, 47, 60), rng.uniform(6, 9, 60)
    table = {"species": [SPECIES[row % 2] for row in range(60)], "lat": lat.round(5), "lon": lon.round(5)}
    if environment:
        table["warmth"] = (20 - lat / 5).round(3)
    pl.DataFrame(table).write_csv(root / "occurrences.csv")


def opened(root: Path) -> Opened:
    return open_benchmark(PRESENCE, open_dataset("occurrences", root, "presence"))


def test_records_and_rasters_alone_are_cut_into_blocks_with_places_drawn_in_between(tmp_path: Path) -> None:
    write_records(tmp_path)
    warmth = np.add.outer(np.arange(40.0), np.zeros(60))
    warmth[:, :20] = -1  # the west is sea
    write_raster(tmp_path / "rasters" / "warmth.tif", warmth, west=5.5, north=48, degrees=0.1)
    first, again = opened(tmp_path), opened(tmp_path)
    view = first.view
    assert view.unlabeled is not None and view.test is not None and view.val is not None
    assert view.unlabeled.items["lon"].min() > 7.4
    assert view.unlabeled.items.equals(again.view.unlabeled.items)  # type: ignore[union-attr]
    found = view.unlabeled.layers["environment"].numbers(view.unlabeled.items["observation_id"].to_list())
    assert not np.isnan(found).any()
    # Test holds records, and places of the same blocks where nothing is known to live.
    assert len(view.test) > first.truth["test"].rows.height > 0
    assert set(view.labels.names) == set(SPECIES)


def test_sites_are_test_and_blank_cells_were_not_looked_at(tmp_path: Path) -> None:
    write_records(tmp_path, environment=True)
    (tmp_path / "sites.csv").write_text(
        "site_id,lat,lon,warmth,Aa bb,Cc dd\nplot1,46,7,10,1,0\nplot2,46.5,7.5,11,,3\nplot3,45.5,8,12,0,0\n"
    )
    found = opened(tmp_path)
    truth, view = found.truth["test"], found.view
    assert truth.items == ("plot1", "plot2", "plot3")
    assert truth.rows.rows() == [("plot1", "Aa bb"), ("plot2", "Cc dd")]
    assert truth.asked is not None and ("plot2", "Aa bb") not in truth.asked.rows() and len(truth.asked) == 5
    assert view.test is not None and view.unlabeled is None
    assert view.test.layers["environment"].numbers(["plot2"]).tolist() == [[11.0]]
    assert "Aa bb" not in view.test.items.columns and "labels" not in view.test.items.columns


def test_sites_alone_are_cut_into_blocks_and_their_species_may_stand_in_a_table_of_their_own(tmp_path: Path) -> None:
    rows = [f"{row},{45 + row % 7 * 0.5},{6 + row // 7 * 0.5},{row}" for row in range(49)]
    (tmp_path / "routes.csv").write_text("\n".join(["route,latitude,longitude,rain", *rows]) + "\n")
    nothing = [f"{row}," for row in range(5, 48)]
    (tmp_path / "seen.csv").write_text(
        "\n".join(["route,aou", "3,10", "3,20", "4,10", "4,10", "999,30", *nothing]) + "\n"
    )
    (tmp_path / "climate.csv").write_text("\n".join(["route,bio1", *(f"{row},{row / 2}" for row in range(40))]) + "\n")
    (tmp_path / "occurrences.toml").write_text(
        '[sites]\nfile = "routes.csv"\nid = "route"\npresences = "seen.csv"\nspecies = "aou"\n'
        'tables = ["climate.csv"]\n'
    )
    found = opened(tmp_path)
    parts = [part for part in (found.view.train, found.view.val, found.view.test) if part is not None]
    assert len(parts) == 3 and sum(map(len, parts)) == 45  # 0, 1, 2 and 48 were not visited
    assert found.view.labels.names == ("10", "20")
    layer = found.dataset.layers["environment"]
    assert layer.names == ("bio1",)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(layer.numbers(["4", "45"]), [[2.0], [np.nan]])
    listed = dict(found.dataset.observations.select("observation_id", "labels").iter_rows())
    assert (sorted(listed["3"]), listed["4"], listed["5"]) == (["10", "20"], ["10"], [])


def test_a_region_of_the_benchmark_of_elith_is_opened_by_one_of_its_tables(tmp_path: Path) -> None:
    header = "siteid,spid,x,y,occ,group,warm"
    (tmp_path / "NZtrain_po.csv").write_text(
        f"{header}\n1,nz01,2000000,5000000,1,tree,3\n2,nz02,2100000,5050000,1,bird,4\n"
    )
    (tmp_path / "NZtrain_bg.csv").write_text(f"{header}\n9,pseudo,2050000,5020000,0,NA,5\n")
    (tmp_path / "NZtest_pa_tree.csv").write_text(
        "group,siteid,x,y,nz01\ntree,a,2000000,5000000,1\ntree,b,2100000,5000000,0\n"
    )
    (tmp_path / "NZtest_env_tree.csv").write_text(
        "group,siteid,x,y,warm\ntree,a,2000000,5000000,1\ntree,b,2100000,5000000,2\n"
    )
    (tmp_path / "AWTtrain_po.csv").write_text(f"{header}\n")
    with pytest.raises(InputError, match="the regions AWT, NZ, expected one"):
        open_dataset("occurrences", tmp_path, "presence")
    dataset = open_dataset("occurrences", tmp_path / "NZtrain_po.csv", "presence")
    assert dataset.observations["parts"].to_list() == [["train"], ["train"], ["background"], ["test"], ["test"]]
    assert dataset.observations["asked"].to_list()[3:] == [["nz01"], ["nz01"]]
    assert any("metres of a local grid" in remark for remark in dataset.remarks)
    lon = dict(dataset.observations.select("observation_id", "lon").iter_rows())
    assert lon["tree-b"] - lon["tree-a"] == pytest.approx(np.degrees(100_000 / 6_371_007), rel=1e-4)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("site_id,lat,lon\nplot1,46,7\n", "expected a column of 0 and 1 for each species"),
        ("site_id,lat,lon,Aa bb\nplot1,46,7,1\nplot1,46,7,1\n", "line 3: found 'plot1' again as site_id"),
        ("site_id,lat,lon,Aa bb\nplot1,46,7,maybe\n", "line 2: found 'maybe' as Aa bb, expected a number"),
        ("site_id,lat,lon,Aa bb\nplot1,46,7,-2\n", "line 2: found -2 as Aa bb, expected 0 for absent"),
        ("site_id,y,x,Aa bb\nplot1,5000000,600000,1\n", "found 600000, 5e.06 as x and y, expected degrees"),
        ("site_id,Aa bb\nplot1,1\n", "expected one with the latitude"),
    ],
)
def test_a_table_of_sites_is_refused_with_its_line(tmp_path: Path, table: str, sentence: str) -> None:
    write_records(tmp_path)
    (tmp_path / "sites.csv").write_text(table)
    with pytest.raises(InputError, match=sentence):
        open_dataset("occurrences", tmp_path, "presence")


def test_a_stated_coordinate_system_is_turned_into_degrees(tmp_path: Path) -> None:
    (tmp_path / "finds.csv").write_text("species,east,north\nAa bb,600000,200000\nAa bb,605000,200000\n")
    (tmp_path / "occurrences.toml").write_text('crs = "EPSG:21781"\n[columns]\nlat = "north"\nlon = "east"\n')
    places = open_dataset("occurrences", tmp_path, "places").observations
    assert places["lat"][0] == pytest.approx(46.951, abs=0.001) and places["lon"][0] == pytest.approx(7.4386, abs=0.001)
    (tmp_path / "occurrences.toml").write_text('crs = "EPSG:0"\n[columns]\nlat = "north"\nlon = "east"\n')
    with pytest.raises(InputError, match="a coordinate system that is known"):
        open_dataset("occurrences", tmp_path, "places")


def test_the_check_counts_records_sites_and_background_and_names_what_cannot_be_learned(tmp_path: Path) -> None:
    write_records(tmp_path, environment=True)
    (tmp_path / "sites.csv").write_text("site_id,lat,lon,warmth\nplot1,46,7,10\nplot2,46.5,7.5,\n")
    (tmp_path / "presences.csv").write_text("site_id,species\nplot1,Aa bb\nplot2,Ee ff\n")
    (tmp_path / "background.csv").write_text("lat,lon,warmth\n46,7,3\n46,8,4\n")
    report = CHECKS["occurrences"](release_of("occurrences", tmp_path))
    counts = {part.part: (part.found.observations, part.found.classes) for part in report.counts}
    assert counts["presence: records"] == (60, 2) and counts["presence: sites"] == (2, 2)
    assert counts["presence: background"] == (2, None)
    told = {problem.what: problem.places for problem in report.problems if problem.severity == "warning"}
    assert told["a species of the sites has no record to learn from"] == ("Ee ff",)
    assert told["a place has no value of the environment"] == ("plot2",)
