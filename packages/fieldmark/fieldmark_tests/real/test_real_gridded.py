"""Real rasters and patches: WorldClim around the sloths of `bradypus`, and the sample of GeoLifeCLEF 2022."""

from __future__ import annotations

import csv

import numpy as np

from fieldmark.features.patches import PatchStatistics
from fieldmark.releases.gridded import PatchFiles, Rasters
from fieldmark.storage.release import Release


def test_climate_at_the_places_of_sloths_is_tropical(real_data):
    with (real_data / "sdm_bradypus/bradypus.csv").open() as file:
        places = {str(n): (float(row["lat"]), float(row["lon"])) for n, row in enumerate(csv.DictReader(file))}
    layer = Rasters(Release(real_data / "sdm_bradypus"), ("bio1.grd", "bio12.grd"), places | {"Oslo": (59.9, 10.7)})
    temperature, rain = layer.numbers([*places]).T  # tenths of a degree, millimeters
    assert 180 < np.nanmedian(temperature) < 290 and np.nanmedian(rain) > 1000
    assert np.isfinite(temperature).mean() > 0.95
    assert layer.outside(["Oslo", "0"]) == {"bio1.grd": 1, "bio12.grd": 1}


def test_patches_of_geolifeclef_are_found_by_id_and_read(real_data):
    release = Release(real_data / "geolifeclef_2022_sample")
    files = sorted((real_data / "geolifeclef_2022_sample/patches-fr").rglob("*_altitude.tif"))
    ids = [file.name.partition("_")[0] for file in files]
    altitude = PatchFiles(release, "patches-fr", "_altitude.tif", "elevation")
    cover = PatchFiles(release, "patches-fr", "_landcover.tif", "landcover", (0,), 34)
    assert ids and altitude.there(ids) == cover.there(ids) == [True] * len(ids)
    patches = [PatchStatistics().decode(data) for data in altitude.files(ids)]
    assert {patch.shape for patch in patches} == {(1, 256, 256)}
    middle, mean, spread = np.array([PatchStatistics().of(patch) for patch in patches]).T
    assert ((mean > -10) & (mean < 4900) & (spread >= 0) & (np.abs(middle - mean) < 2000)).all()
    shares = PatchStatistics(cover.code_bands, cover.codes)
    found = np.array([shares.of(shares.decode(data)) for data in cover.files(ids)])
    assert found.shape == (len(ids), 34) and (found.sum(axis=1) <= 1 + 1e-6).all() and found.any()
