"""Rasters written by rasterio, read by place: values, edges, projections, memory."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import rasterio
from rasterio.transform import from_origin
from rasterio.warp import transform

from fieldmark.datasets.gridded import PatchFiles, Rasters
from fieldmark.errors import InputError
from fieldmark.features.patches import PatchStatistics, decode_patch
from fieldmark.features.photos import PhotoError
from fieldmark.release import Release

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


def test_every_block_is_read_once_however_many_places_it_holds(root, monkeypatch):
    from fieldmark.datasets import gridded

    read, windows = gridded.read_window, []
    monkeypatch.setattr(gridded, "read_window", lambda raster, *window: windows.append(window) or read(raster, *window))
    rng = np.random.default_rng(0)
    cells = rng.integers(0, (40, 32), (500, 2))
    layer = rasters(root, {str(n): place_of(*cell) for n, cell in enumerate(cells)})
    layer.numbers([str(n) for n in range(500)])
    assert len(windows) == len(set(windows)) == 6  # 40 x 32 cells in blocks of 16 x 16, the last row of blocks cut


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
