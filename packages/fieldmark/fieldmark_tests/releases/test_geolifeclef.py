"""GeoLifeCLEF in three editions, typed by hand: ids, quadrats, rasters, vectors, patches, and what is refused."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import rasterio

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError, MisuseError
from fieldmark.releases import open_dataset, release_of
from fieldmark.releases.checks import CHECKS
from fieldmark.releases.geolifeclef.layers import CountryRasters
from fieldmark.releases.gridded import PatchFiles
from fieldmark.views.open_benchmark import open_benchmark

TRAIN_FR = "id;lat;lon;species_id\n10561949;45.70511627197271;1.4246221780776998;241\n10131188;45.147;6.4168;101\n"
TRAIN_US = "id;lat;lon;species_id\n20000173;33.19766;-116.18068;101\n20000200;24.55;-81.78;7\n"


def write_country_raster(root: Path, layer: str, country: str, value: int, west: float, north: float) -> None:
    path = root / "rasters" / layer / f"{layer}_{country}.tif"
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.full((30, 60), value, dtype=np.int32)
    values[0, 0] = -2_147_483_647 if layer == "bio_1" else -32_768
    facts = {"count": 1, "height": 30, "width": 60, "dtype": "int32", "crs": "EPSG:4326"}
    transform = rasterio.Affine(1.0, 0.0, west, 0.0, -1.0, north)
    with rasterio.open(path, "w", driver="GTiff", transform=transform, **facts) as raster:
        raster.write(values, 1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "occurrences_fr_train.csv").write_text(TRAIN_FR)
    (tmp_path / "occurrences_us_train.csv").write_text(TRAIN_US)
    (tmp_path / "occurrences_fr_test.csv").write_text("id;lat;lon\n10782781;43.6017;6.9401\n")
    (tmp_path / "species_metadata.csv").write_text(
        "species_id;GBIF_species_id;GBIF_species_name\n"
        "7;1;Quercus robur L.\n101;2;Abies alba Mill.\n241;3;Picea abies\n"
    )
    for layer, value in (("bio_1", 110), ("phihox", 65)):
        write_country_raster(tmp_path, layer, "FR", value, -6.0, 52.0)
        write_country_raster(tmp_path, layer, "USA", -value, -125.0, 50.0)
    patch = tmp_path / "patches/49/19/10561949.npy"
    patch.parent.mkdir(parents=True)
    np.save(patch, np.arange(4 * 4 * 5, dtype=np.uint8).reshape(4, 4, 5))
    np.save(patch.with_name("10561949_alti.npy"), np.full((4, 4), 300, dtype=np.int16))
    return tmp_path


def test_the_layout_of_2020_opens_with_both_countries(root):
    dataset = open_dataset("geolifeclef-2020", root)
    assert dataset.observations["observation_id"].to_list() == [
        "10561949", "10131188", "10782781", "20000173", "20000200",
    ]  # fmt: skip
    assert dataset.observations["country"].to_list() == ["fr", "fr", "fr", "us", "us"]
    assert dataset.observations["label"].to_list() == ["241", "101", None, "101", "7"]
    assert dataset.observations["quadrat"][0] == "e0699n1012"
    assert dataset.taxa.select("label", "genus", "species").rows() == [
        ("7", "Quercus", "Quercus robur"), ("101", "Abies", "Abies alba"), ("241", "Picea", "Picea abies"),
    ]  # fmt: skip
    assert len(open_dataset("geolifeclef-2020", root, "us").observations) == 2
    with pytest.raises(MisuseError, match="Known: all, fr, us"):
        open_dataset("geolifeclef-2020", root, "de")


def test_rasters_are_chosen_by_longitude_and_have_their_own_value_for_nothing(root):
    rasters = open_dataset("geolifeclef-2020", root).layers["environment"]
    assert isinstance(rasters, CountryRasters) and rasters.names == ("bio_1", "phihox")
    ids = ["20000173", "10561949", "20000200", "nobody"]
    assert rasters.numbers(ids)[:3].tolist() == [[-110, -65], [110, 65], [-110, -65]]
    assert np.isnan(rasters.numbers(ids)[3]).all()
    corner = pl.DataFrame({"observation_id": ["10000001", "20000001"], "lat": [51.5, 10.0], "lon": [-5.5, -80.0]})
    found = CountryRasters.find(release_of("geolifeclef-2020", root), corner)
    assert found is not None
    assert np.isnan(found.numbers(["10000001"])).all()  # no data, in both ways of saying so
    assert found.outside(["10000001", "20000001"]).tolist() == [False, True]


def test_patches_are_split_into_imagery_land_cover_and_altitude(root):
    layers = open_dataset("geolifeclef-2020", root).layers
    shapes = {}
    for name in ("satellite", "landcover", "altitude"):
        layer = layers[name]
        assert isinstance(layer, PatchFiles) and layer.there(["10561949", "10131188"]) == [True, False]
        data = layer.files(["10561949"])[0]
        assert data is not None
        shapes[name] = np.load(io.BytesIO(data)).shape
    assert shapes == {"satellite": (4, 4, 4), "landcover": (4, 4, 1), "altitude": (4, 4)}


def test_the_check_lists_every_observation_outside_the_rasters(root, run_main):
    (root / "occurrences_us_test.csv").write_text("id;lat;lon\n20999999;19.5;-81.2\n")
    report = CHECKS["geolifeclef-2020"](release_of("geolifeclef-2020", root), media=True)
    assert report.lists == {"outside_rasters": ("20999999 (us, test): 19.50000, -81.20000",)}
    told = {problem.what.partition(" (")[0]: problem.times for problem in report.problems}
    assert told["there are 6 observations, and the overview says over 1.9 million"] == 1
    assert told["an observation lies outside the rasters of its country"] == 1
    assert told["a raster is missing"] == 50
    assert told["a patch is missing"] == 5
    assert report.sound
    (root / "species_metadata.csv").write_text("species_id\n7\n101\n")
    code, printed, _ = run_main("check", "geolifeclef-2020", root)
    assert code == 1 and "error: a species is not listed in species_metadata.csv (1)" in printed


def test_old_ids_are_recognized_and_joined_to_nothing(root, tmp_path):
    rows = [f"{10000000 + row * 103 // 100};{44 + row / 50};{2 + row / 90};{row % 5}" for row in range(60)]
    example = tmp_path / "old" / "example_occurrences.csv"
    example.parent.mkdir()
    example.write_text("\n".join(["id;lat;lon;species_id", *rows]) + "\n")
    for place in (example.parent, example):
        dataset = open_dataset("geolifeclef-2020", place)
        assert any("carry the old ids" in remark for remark in dataset.remarks)
    # Beside patches as well: none of them is looked up.
    (root / "occurrences_fr_train.csv").write_text("\n".join(["id;lat;lon;species_id", *rows]) + "\n")
    assert set(open_dataset("geolifeclef-2020", root).layers) == {"environment"}
    # The observation that every edition has decides, whatever the order of the table.
    in_order = [row.replace("10000000;44.0;2.0", "10561949;45.705116;1.424622") for row in rows]
    (root / "occurrences_fr_train.csv").write_text("\n".join(["id;lat;lon;species_id", *in_order]) + "\n")
    assert "satellite" in open_dataset("geolifeclef-2020", root).layers


def write_newer(root: Path) -> None:
    header = "observation_id;latitude;longitude;species_id;subset"
    folder = root / "observations"
    folder.mkdir()
    (folder / "observations_fr_train.csv").write_text(
        f"{header}\n10561949;45.7051;1.4246;241;train\n10131188;45.147;6.4168;101;val\n"
    )
    (folder / "observations_us_test.csv").write_text("observation_id;latitude;longitude\n20000193;28.13047;-82.65877\n")
    (root / "pre-extracted").mkdir()
    (root / "pre-extracted/environmental_vectors.csv").write_text(
        "observation_id;bio_1;bio_2;sndppt\n10561949;11.2;8;40\n10131188;nan;7;\n"
    )


@pytest.mark.parametrize("year", [2021, 2022])
def test_the_newer_layouts_open_with_their_own_val_vectors_and_ids(tmp_path, year):
    write_newer(tmp_path)
    (tmp_path / "test_observation_ids_mapping.csv").write_text("observation_id;Id\n20000193;20000194\n")
    dataset = open_dataset(f"geolifeclef-{year}", tmp_path)
    assert dataset.observations["parts"].to_list() == [["train"], ["val"], ["test"]]
    assert dataset.observations["submission_id"].to_list() == ["10561949", "10131188", "20000194"]
    found = dataset.layers["environment"].numbers(["10131188", "10561949", "20000193"])
    np.testing.assert_array_equal(found, [[np.nan, 7, np.nan], [11.2, 8, 40], [np.nan] * 3])
    report = CHECKS[f"geolifeclef-{year}"](release_of(f"geolifeclef-{year}", tmp_path))
    told = {problem.what: problem.places for problem in report.problems}
    assert told["an observation has no vector of the environment"] == ("20000193",)
    assert told["an observation of test is submitted under another id"] == ("20000193 as 20000194",)
    with pytest.raises(InputError, match="It looks like geolifeclef-2021 or geolifeclef-2022"):
        open_dataset("geolifeclef-2020", tmp_path)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("id;lat;lon;species_id\n30000001;45;1;3\n", "line 2: found the id '30000001', expected eight digits"),
        ("id;lat;lon;species_id\n10000001;95;1;3\n", "line 2: found '95' as lat, expected degrees from -90 to 90"),
        ("id;lat;lon;species_id\n10000001;45;;3\n", "line 2: found no lon, expected degrees from -180 to 180"),
        ("id;lat;lon\n10000001;45;1\n", "expected a column 'species_id'"),
        ("id;lat;lon;species_id\n10000001;45;1;3\n10000001;45;1;3\n", "the id 10000001 .* expected each id once"),
        ("id,lat,lon,species_id\n10000001,45,1,3\n", "expected a column 'id'"),
    ],
)
def test_a_table_is_refused_with_its_line(tmp_path, table, sentence):
    (tmp_path / "occurrences_fr_train.csv").write_text(table)
    with pytest.raises(InputError, match=sentence):
        open_dataset("geolifeclef-2020", tmp_path)


def test_val_is_cut_from_train_by_whole_quadrats(land_world):
    dataset = open_dataset("geolifeclef-2020", land_world)
    parts = dataset.observations.select("quadrat", part=pl.col("parts").list.first())
    assert set(parts["part"]) == {"train", "val", "test"}
    assert (parts.group_by("quadrat").agg(pl.col("part").n_unique())["part"] == 1).all()
    opened = open_benchmark(BENCHMARKS["geolifeclef-2020"], dataset)
    truth = opened.truth["test"]
    assert set(truth.units) <= set(dataset.observations["quadrat"]) and len(truth.rows) == len(truth.items)
    assert set(opened.view.train.layers) == {"satellite", "landcover", "altitude", "environment"}
    assert "label" not in opened.view.train.items.columns
