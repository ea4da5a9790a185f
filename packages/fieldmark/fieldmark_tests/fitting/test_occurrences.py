"""Occurrences from a zip to scored runs: species from photos, and from places."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

import fieldmark
from fieldmark_tests.releases.occurrences.test_records import photos_and_places

SETTINGS = {"backbone": "resnet10t", "weights": "random", "size": 32}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    root = photos_and_places(tmp_path / "finds")
    with zipfile.ZipFile(tmp_path / "finds.zip", "w") as file:
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            file.write(path, path.relative_to(root))
    return tmp_path / "finds.zip"


def test_photos_of_a_zip_are_learned_and_answered(archive, tmp_path):
    """Three colors are told apart by any features, so that a reader that mixes photos up would show."""
    result = fieldmark.fit("occurrences", archive, "linear", tmp_path / "run", settings=SETTINGS)
    assert result.scorecard.metrics["top_1"].value == 1.0 and result.scorecard.units == 6


def test_places_are_answered_without_photos(archive, tmp_path):
    result = fieldmark.fit("occurrences/places", archive, "frequent", tmp_path / "run")
    assert result.scorecard.metrics["recall_at_30"].value == 1.0
    assert result.scorecard.metrics["top_1"].value == pytest.approx(1 / 3)
