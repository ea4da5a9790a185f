"""A survey without photos; and the package that the tests install is not ours to collect."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from fieldmark.releases import Dataset
from fieldmark.storage.release import Release
from fieldmark.tables.schema import MEDIA
from fieldmark_tests.questions.surveys import LABELS


@pytest.fixture
def survey(tmp_path: Path) -> Dataset:
    """A release of places without a single photo: what was looked for, and what was found."""
    rows = [
        ("p1", "a", ["train"], ["a", "b"]),
        ("p2", "b", ["train"], ["a", "b", "c"]),
        ("p3", "a", ["val"], ["a", "b"]),
        ("p4", "c", ["test"], ["c"]),
        ("p5", "b", ["test"], ["a", "b", "c"]),
    ]
    observations = pl.DataFrame(rows, schema=["observation_id", "label", "parts", "asked"], orient="row").with_columns(
        date=pl.lit(None, pl.Date), lat=pl.lit(46.0), lon=pl.lit(7.0), genus=pl.col("label").replace("b", "a")
    )
    taxa = pl.DataFrame(
        {"label": list(LABELS.names), "poisonous": [None] * 3}, schema_overrides={"poisonous": pl.Boolean}
    )
    return Dataset("survey", Release(tmp_path), taxa, observations, MEDIA.empty())


collect_ignore = ["packages"]
