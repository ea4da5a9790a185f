"""Real tables and patches of GeoLifeCLEF: the sample of 2022, and the example of 2020 with its old ids."""

from __future__ import annotations

import polars as pl

from fieldmark.features.patches import decode_patch
from fieldmark.releases import open_dataset, release_of
from fieldmark.releases.checks import CHECKS
from fieldmark.releases.gridded import PatchFiles


def test_the_sample_of_2022_opens_with_its_patches(real_data):
    dataset = open_dataset("geolifeclef-2022", real_data / "geolifeclef_2022_sample")
    parts = dataset.observations.group_by(part=pl.col("parts").list.first()).len()
    assert dict(parts.iter_rows()) == {"train": 1_956, "val": 44, "test": 46}
    assert dataset.observations.row(0, named=True)["label"] == "241"
    expected = {"satellite": (3, 256, 256), "near_infrared": (1, 256, 256)}
    expected |= {"landcover": (1, 256, 256), "altitude": (1, 256, 256)}
    for name, shape in expected.items():
        layer = dataset.layers[name]
        assert isinstance(layer, PatchFiles)
        for one in ("10561949", "20000173"):
            data = layer.files([one])[0]
            assert data is not None and decode_patch(data).shape == shape
    report = CHECKS["geolifeclef-2022"](release_of("geolifeclef-2022", real_data / "geolifeclef_2022_sample"))
    assert report.sound and report.counts[0].found.countries == 2


def test_the_example_of_2020_is_recognized_by_its_old_ids(real_data):
    root = real_data / "geolifeclef_2020"
    for place in (root, root / "example_occurrences.csv"):
        dataset = open_dataset("geolifeclef-2020", place)
        assert len(dataset.observations) == 999 and not dataset.layers
        assert dataset.remarks[0].startswith("These occurrences carry the old ids")
    report = CHECKS["geolifeclef-2020"](release_of("geolifeclef-2020", root))
    assert any("old ids" in problem.what for problem in report.problems if problem.severity == "warning")
    # The same observations have other ids since: the places agree, the ids do not.
    newer = open_dataset("geolifeclef-2022", real_data / "geolifeclef_2022_sample").observations
    rounded = [pl.col(name).round(4) for name in ("lat", "lon")]
    both = dataset.observations.with_columns(rounded).join(newer.with_columns(rounded), on=["lat", "lon"])
    assert len(both) > 500 and not (both["observation_id"] == both["observation_id_right"]).any()
