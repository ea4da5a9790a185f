"""The score and the frequencies of labels over the year."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fieldmark.benchmarks.declarations import TimeOrder
from fieldmark.reports.section import Context
from fieldmark.reports.sections.year import SECTION, year
from fieldmark.views.open_benchmark import Opened


def in_time_order(context: Context) -> Context:
    benchmark = context.opened.benchmark
    task = replace(benchmark.task, time_order=TimeOrder())
    opened: Opened = replace(context.opened, benchmark=replace(benchmark, task=task))
    return replace(context, opened=opened)


def test_it_is_shown_where_time_or_frequencies_matter(context: Context) -> None:
    assert not SECTION.applies(context)
    assert SECTION.applies(in_time_order(context))
    adapted = replace(context.first.run, steps=[*context.first.run.steps, {"step": "prior-em"}])
    assert SECTION.applies(replace(context, runs=(replace(context.first, run=adapted),)))


def test_shares_are_those_of_truth_and_probabilities_month_by_month(context: Context) -> None:
    found = year(context)
    chances = context.probabilities
    assert chances is not None
    number = np.array([day.month for day in context.items["date"]])
    names = [context.title(name) for name in context.labels.names]
    for label in found.labels:
        code = names.index(label.title)
        for place, month in enumerate(found.months):
            inside = number == month
            assert label.true[place] == pytest.approx((context.truth[inside] == code).mean())
            assert label.estimated[place] == pytest.approx(chances[inside, code].mean(), rel=1e-4)
    assert [one.value for one in found.right] == pytest.approx(
        [context.correct[number == month].mean() for month in found.months]
    )
    assert ((found.off_by >= 0) & (found.off_by <= 1)).all()


def test_the_picture_stands_in_the_section(context: Context) -> None:
    html = SECTION.render(in_time_order(context))
    assert "<svg" in html and "Frequencies off by" in html
