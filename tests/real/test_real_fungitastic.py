"""The ten real rows that are at hand."""

from __future__ import annotations

import csv

from fieldmark.datasets.fungitastic import RENAMED, read_part
from fieldmark.release import Release


def test_real_rows_parse_without_loss(real_data):
    name = "FungiTastic-Mini-Train.sample10.csv"
    rows = read_part(Release(real_data / "fungitastic"), name).to_dicts()
    with (real_data / "fungitastic" / name).open(encoding="utf-8", newline="") as file:
        real = list(csv.DictReader(file))
    assert len(rows) == len(real) == 10
    for ours, theirs in zip(rows, real, strict=True):
        for column, text in theirs.items():
            value = ours[RENAMED.get(column, column)]
            if column == "metaSubstrate" and text == "jord":
                assert value == "soil"
            elif text == "":
                assert value is None
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                assert float(text) == value
            else:
                assert str(value) == text
