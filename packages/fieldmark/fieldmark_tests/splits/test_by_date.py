"""A cut by date: which day belongs where, and what train makes of a species."""

from __future__ import annotations

import datetime

import polars as pl
import pytest

from fieldmark.errors import InputError, MisuseError
from fieldmark.splits.by_date import DateCut
from fieldmark.splits.files import read_split
from fieldmark.views.split_tables import Columns, split_by_date

DAY = datetime.date


def test_the_days_of_fungitastic_are_those_of_the_paper():
    days = pl.Series([DAY(1863, 5, 15), DAY(2021, 12, 31), DAY(2022, 1, 1), DAY(2022, 12, 31), DAY(2023, 1, 1)])
    assert DateCut().parts(days).to_list() == ["train", "train", "val", "val", "test"]
    later = pl.Series([DAY(2023, 12, 31), DAY(2024, 1, 1), None], dtype=pl.Date)
    assert DateCut().parts(later).to_list() == ["test", "unused", "unused"]
    assert DateCut(until=None).parts(later).to_list() == ["test", "test", "unused"]


def test_four_observations_in_train_are_few_five_are_known_and_none_is_unknown():
    labels = pl.Series(["a"] * 5 + ["b"] * 4 + ["a", "b", "c", "c"])
    parts = pl.Series(["train"] * 9 + ["val", "test", "val", "test"])
    kinds = DateCut().kinds(labels, parts).to_list()
    assert kinds == ["known"] * 5 + ["few-shot"] * 4 + ["known", "few-shot", "unknown", "unknown"]


def test_a_cut_survives_its_file_and_parts_out_of_order_are_refused():
    cut = DateCut(DAY(2019, 4, 1), DAY(2020, 1, 1), None, few=3)
    assert DateCut.from_data(cut.to_data()) == cut
    with pytest.raises(MisuseError, match="follow each other in time"):
        DateCut(DAY(2023, 1, 1), DAY(2022, 1, 1))
    with pytest.raises(ValueError, match="no cut by date"):
        DateCut.from_data({"val_from": "2022-01-01"})


def test_a_table_is_cut_by_the_first_day_of_each_unit(tmp_path):
    table, out = tmp_path / "finds.csv", tmp_path / "split.csv"
    rows = ["a1,a,2021-12-31", "a2,a,2022-01-01", "b,b,2022-06-01", "c,c,2023-02-01", "d,d,2024-01-01", "e,e,"]
    table.write_text("\n".join(["id,find,date", *rows]) + "\n")
    result = split_by_date(table, DateCut(few=1), columns=Columns(unit="find"), out=out)
    parts = dict(read_split(out).table.iter_rows())
    assert parts == {"a1": "train", "a2": "train", "b": "val", "c": "test", "d": "unused", "e": "unused"}
    assert all(one.shared == 0 for one in result.shared) and result.split.about["rule"]["until"] == "2023-12-31"
    with pytest.raises(InputError, match=r"no row from 2031-01-01 on.*from 2021-12-31 to 2024-01-01"):
        split_by_date(table, DateCut(DAY(2022, 1, 1), DAY(2031, 1, 1), None))
