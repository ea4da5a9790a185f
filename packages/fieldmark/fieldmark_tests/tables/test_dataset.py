"""What every opened release promises about its tables."""

from __future__ import annotations

import polars as pl
import pytest

from fieldmark.errors import InputError
from fieldmark.storage.release import Release
from fieldmark.tables.dataset import Dataset


def opened(tmp_path, **tables: pl.DataFrame) -> Dataset:
    least = {
        "taxa": pl.DataFrame({"label": ["a"]}),
        "observations": pl.DataFrame({"observation_id": ["o"], "label": ["a"]}),
        "media": pl.DataFrame({"media_id": ["m"], "observation_id": ["o"], "path": ["m.jpg"], "parts": [["train"]]}),
    }
    return Dataset("mine", Release(tmp_path), **{**least, **tables})


def test_columns_that_a_release_does_not_have_are_there_and_empty(tmp_path):
    dataset = opened(tmp_path)
    assert dataset.taxa["poisonous"].to_list() == [None]
    assert dataset.observations.select("date", "lat", "lon").row(0) == (None, None, None)


def test_further_columns_pass_through(tmp_path):
    assert opened(tmp_path, taxa=pl.DataFrame({"label": ["a"], "genus": ["G"]})).taxa["genus"].to_list() == ["G"]


def test_a_label_that_stands_twice_is_refused_with_the_name_of_the_table(tmp_path):
    with pytest.raises(InputError, match=r"mine: taxa.*'a' more than once"):
        opened(tmp_path, taxa=pl.DataFrame({"label": ["a", "a"]}))
