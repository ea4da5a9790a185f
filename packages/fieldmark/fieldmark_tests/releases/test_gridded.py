"""Rasters written by rasterio, read by place: values, edges, projections, memory."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rasterio
from rasterio.transform import from_origin
from rasterio.warp import transform

from fieldmark.errors import InputError
from fieldmark.features.patches import PatchStatistics, decode_patch
from fieldmark.features.photos import PhotoError
from fieldmark.releases import raster_values as sampling
from fieldmark.releases.gridded import PatchFiles, Rasters
from fieldmark.storage.release import Release

NODATA = -999


def write_raster(path: Path, values: np.ndarray, *, crs: str = "EPSG:4326", at=(8.0, 58.0), cell=0.5, **how) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    bands = values if values.ndim == 3 else values[None]
    facts = {"count": len(bands), "height": bands.shape[1], "width": bands.shape[2], "dtype": bands.dtype}
    with rasterio.open(
        path, "w", driver="GTiff", crs=crs, transform=from_origin(*at, cell, cell), nodata=NODATA, **facts, **how
    ) as raster:
        raster.write(bands)


@pytest.fixture
def root(tmp_path) -> Path:
    values = np.arange(40 * 32, dtype=np.int16).reshape(40, 32)
    values[3, 4] = NODATA
    write_raster(tmp_path / "rasters/a.tif", values, tiled=True, blockxsize=16, blockysize=16)
    return tmp_path


def place_of(row: int, column: int) -> tuple[float, float]:
    return 58.0 - 0.5 * (row + 0.5), 8.0 + 0.5 * (column + 0.5)


def rasters(root: Path, places: dict, side: int = 1, paths=("rasters/a.tif",)) -> Rasters:
    return Rasters(Release(root), paths, places, side)


def test_values_are_those_of_the_cell_that_holds_the_place(root):
    cells = {f"{row}-{column}": (row, column) for row in range(40) for column in range(32)}
    layer = rasters(root, {name: place_of(*cell) for name, cell in cells.items()})
    found = layer.numbers(list(cells))[:, 0]
    expected = np.array([float(row * 32 + column) for row, column in cells.values()])
    expected[3 * 32 + 4] = np.nan
    np.testing.assert_array_equal(found, expected)


def test_places_outside_and_without_coordinates_are_missing_and_counted(root):
    places = {"in": place_of(0, 0), "west": (57.9, 7.9), "south": (10.0, 8.1), "hole": place_of(3, 4)}
    layer = rasters(root, places)
    ids = ["in", "west", "south", "hole", "nowhere"]
    assert np.isnan(layer.numbers(ids)[:, 0]).tolist() == [False, True, True, True, True]
    assert layer.outside(ids) == {"rasters/a.tif": 3}
    assert [one is None for one in layer.read(ids)] == [False, True, True, True, True]


@pytest.mark.parametrize("strip_cells", [1, 600, 10_000])
def test_no_cell_is_read_twice_however_many_places_it_holds(root, monkeypatch, strip_cells):
    read, times = sampling.read_window, np.zeros((40, 32), dtype=int)

    def counted(raster, top, left, height, width, nodata=None):
        times[top : top + height, left : left + width] += 1
        return read(raster, top, left, height, width, nodata)

    monkeypatch.setattr(sampling, "STRIP_CELLS", strip_cells)
    monkeypatch.setattr(sampling, "read_window", counted)
    rng = np.random.default_rng(0)
    cells = rng.integers(0, (40, 32), (500, 2))
    layer = rasters(root, {str(n): place_of(*cell) for n, cell in enumerate(cells)})
    found = layer.numbers([str(n) for n in range(500)])[:, 0]
    assert times.max() == 1
    expected = np.where((cells == (3, 4)).all(axis=1), np.nan, cells @ (32, 1))
    np.testing.assert_array_equal(found, expected)


def test_places_far_apart_read_the_blocks_that_hold_them_and_no_others(root, monkeypatch):
    write_raster(root / "rasters/wide.tif", np.ones((32, 512), np.int16), tiled=True, blockxsize=16, blockysize=16)
    read, cells_read = sampling.read_window, []
    monkeypatch.setattr(
        sampling,
        "read_window",
        lambda raster, *window: cells_read.append(window[2] * window[3]) or read(raster, *window),
    )
    layer = rasters(root, {"west": place_of(1, 1), "east": place_of(1, 500)}, paths=("rasters/wide.tif",))
    assert layer.numbers(["west", "east"]).tolist() == [[1], [1]] and cells_read == [256, 256]


@pytest.mark.parametrize("side", [1, 4, 5])
def test_points_and_squares_are_those_that_rasterio_reads_one_by_one(root, monkeypatch, side):
    monkeypatch.setattr(sampling, "STRIP_CELLS", 700)
    rng = np.random.default_rng(1)
    lat, lon = rng.uniform(36, 60, 200), rng.uniform(6, 26, 200)
    places = {str(n): place for n, place in enumerate(zip(lat, lon, strict=True))}
    layer = rasters(root, places, side)
    found = layer.read(list(places))
    with rasterio.open(root / "rasters/a.tif") as raster:
        for (y, x), square in zip(places.values(), found, strict=True):
            row, column = (int(np.floor(one)) for one in ((58 - y) / 0.5, (x - 8) / 0.5))
            inside = 0 <= row < 40 and 0 <= column < 32
            around = ((row - side // 2, row - side // 2 + side), (column - side // 2, column - side // 2 + side))
            expected = raster.read(1, window=around, boundless=True, fill_value=NODATA).astype(float)
            expected[expected == NODATA] = np.nan
            if not inside or np.isnan(expected).all():
                assert square is None
            else:
                np.testing.assert_array_equal(square[0], expected)


def test_squares_that_reach_beyond_the_edges_are_counted(root):
    places = {"corner": place_of(0, 31), "near": place_of(1, 30), "middle": place_of(20, 10), "out": (0.0, 0.0)}
    ids = list(places)
    assert rasters(root, places, side=3).cut_at_edges(ids) == {"rasters/a.tif": 1}
    assert rasters(root, places, side=5).cut_at_edges(ids) == {"rasters/a.tif": 2}
    assert rasters(root, places, side=1).cut_at_edges(ids) == {"rasters/a.tif": 0}


def test_a_value_that_stands_for_nothing_may_be_stated_beside_that_of_the_raster(root):
    layer = rasters(root, {"hole": place_of(3, 4), "seven": place_of(0, 7), "eight": place_of(0, 8)})
    stated = replace(layer, nodata={"rasters/a.tif": 7})
    found = stated.numbers(["hole", "seven", "eight"])[:, 0]
    np.testing.assert_array_equal(found, [np.nan, np.nan, 8])


def test_a_table_beside_a_raster_says_where_its_cells_lie(root):
    values = np.arange(6, dtype=np.int16).reshape(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (root / "bio_1").mkdir()
        facts = {"count": 1, "height": 2, "width": 3, "dtype": "int16"}
        with rasterio.open(root / "bio_1/bio_1_FR.tif", "w", driver="GTiff", **facts) as raster:
            raster.write(values, 1)
    header = "name;x_min;y_min;n_rows;n_cols;x_res;y_res"
    (root / "bio_1/GeoMetaData.csv").write_text(f"{header}\nUSA;-120;30;5;9;1;1\nFR;2;44;2;3;0.5;1.0\n")
    layer = rasters(root, {"north": (45.5, 3.2), "south": (44.5, 2.1)}, paths=("bio_1/bio_1_FR.tif",))
    assert layer.numbers(["north", "south"]).tolist() == [[2], [3]]
    (root / "bio_1/GeoMetaData.csv").write_text(f"{header}\nUSA;-120;30;5;9;1;1\n")
    with pytest.raises(InputError, match="no line for a raster of 2 x 3 cells"):
        layer.numbers(["north"])


def test_patches_are_padded_where_the_raster_ends(root):
    layer = rasters(root, {"corner": place_of(0, 31), "middle": place_of(20, 10)}, side=3)
    corner, middle = layer.read(["corner", "middle"])
    assert np.isnan(corner[0, 0]).all() and np.isnan(corner[0, :, 2]).all()
    assert corner[0, 1:, :2].tolist() == [[30, 31], [62, 63]]
    assert middle[0].tolist() == [[row * 32 + column for column in (9, 10, 11)] for row in (19, 20, 21)]
    assert layer.numbers(["middle"]).tolist() == [[20 * 32 + 10]]


def test_rasters_in_other_projections_and_of_several_bands_are_read_by_the_same_places(root):
    x, y = transform("EPSG:4326", "EPSG:3035", [10.0], [56.0])
    bands = np.stack([np.full((4, 4), 7, dtype=np.float32), np.arange(16, dtype=np.float32).reshape(4, 4)])
    write_raster(root / "rasters/b.tif", bands, crs="EPSG:3035", at=(x[0] - 2500, y[0] + 2500), cell=1000)
    layer = rasters(root, {"here": (56.0, 10.0)}, paths=("rasters/a.tif", "rasters/b.tif"))
    row, column = int((58.0 - 56.0) / 0.5), int((10.0 - 8.0) / 0.5)
    assert layer.numbers(["here"]).tolist() == [[row * 32 + column, 7, 2 * 4 + 2]]


def test_layers_can_be_pickled_and_broken_rasters_are_refused_in_a_sentence(root):
    layer = pickle.loads(pickle.dumps(rasters(root, {"a": place_of(1, 1)})))
    assert layer.numbers(["a"]).tolist() == [[33]]
    (root / "rasters/c.tif").write_bytes(b"no raster")
    with pytest.raises(InputError, match=r"c\.tif.*expected a GeoTIFF"):
        rasters(root, {"a": (0.0, 0.0)}, paths=("rasters/c.tif",)).numbers(["a"])


def test_patches_on_disk_are_found_by_the_digits_of_their_id(tmp_path):
    path = tmp_path / "patches/78/56/10005678.npy"
    path.parent.mkdir(parents=True)
    np.save(path, np.ones((4, 4, 2), dtype=np.uint8))
    layer = pickle.loads(pickle.dumps(PatchFiles(Release(tmp_path), "patches", ".npy", "satellite")))
    ids = ["10005678", "10005679"]
    assert layer.there(ids) == [True, False] and layer.files(ids)[1] is None
    assert decode_patch(layer.files(ids)[0]).shape == (2, 4, 4)


def test_statistics_of_codes_are_their_shares_and_of_nothing_are_missing():
    patch = np.stack([np.full((2, 2), np.nan), np.array([[1, 1], [2, 0]])]).astype(np.float32)
    found = PatchStatistics(code_bands=(1,), codes=3).of(patch)
    assert np.isnan(found[:3]).all() and found[3:].tolist() == [0, 0.5, 0.25]
    with pytest.raises(PhotoError, match=r"neither \.npy nor GeoTIFF"):
        decode_patch(b"something else")
