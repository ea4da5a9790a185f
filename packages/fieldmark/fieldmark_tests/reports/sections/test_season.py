"""Scores by month."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from fieldmark.reports.section import Context
from fieldmark.reports.sections import season
from fieldmark_tests.reports.sections.first_answers import answers


def test_months_match_the_dates(context: Context) -> None:
    rows = answers(context)
    dates: list[date] = context.items["date"].to_list()
    found = season.months(context)
    assert [month.number for month in found] == sorted({day.month for day in dates})
    for month in found:
        inside = [row for row, day in enumerate(dates) if day.month == month.number]
        wrong = [rows[row][0] != rows[row][1] for row in inside]
        assert (month.wrong.value, month.wrong.items) == (pytest.approx(np.mean(wrong)), len(wrong))
        assert month.wrong.units == len({context.items["observation_id"][row] for row in inside})
