"""The table of what a search tried, from the record that `fit --search` writes."""

from __future__ import annotations

import json

import pytest

from fieldmark.errors import InputError
from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.sections import search
from fieldmark_tests.reports.by_hand import FUNGI, MakeRelease, MakeRun, noisy


def row(trial: int, c: float, value: float, difference: float, low: float | None, high: float | None) -> dict:
    return {
        "trial": trial,
        "chosen": difference == 0,
        "c": c,
        "macro_f1_all": value,
        "low": value - 0.1,
        "high": value + 0.1,
        "difference": difference,
        "difference_low": low,
        "difference_high": high,
        "seconds": 2.5,
    }


RECORD = {
    "space": {"c": [0.1, 1, 10]},
    "folds": 5,
    "by": "unit",
    "metric": "macro_f1_all",
    "trials": 3,
    "rows": [row(1, 0.1, 0.4, -0.3, -0.4, -0.2), row(2, 1, 0.7, 0, None, None), row(3, 10, 0.6, -0.1, -0.25, 0.05)],
}


@pytest.fixture
def context(make_release: MakeRelease, make_run: MakeRun):
    run = make_run(make_release(FUNGI), noisy)
    (run / "search.json").write_text(json.dumps(RECORD))
    return load_context([run])


def test_the_chosen_trial_comes_first_and_the_others_follow_by_score(context):
    assert search.SECTION.applies(context)
    ordered = search.trials(search.read_record(context), higher_is_better=True)
    assert [trial.settings for trial in ordered] == [("1",), ("10",), ("0.1",)]
    page = search.SECTION.render(context)
    assert page.index("<td>10</td>") < page.index("<td>0.1</td>") and "3 trials" in page and "5-fold" in page


def test_a_trial_whose_difference_may_be_zero_is_not_called_worse(context):
    ordered = search.trials(search.read_record(context), higher_is_better=True)
    assert [search.is_worse(trial, True) for trial in ordered] == [False, False, True]
    assert "1 other trial cannot be told from the chosen one" in search.SECTION.render(context)


def test_where_lower_is_better_the_lowest_follows_the_chosen_one(context):
    ordered = search.trials(search.read_record(context), higher_is_better=False)
    assert [trial.settings for trial in ordered] == [("1",), ("0.1",), ("10",)]
    assert not search.is_worse(ordered[1], False)


def test_a_run_without_a_search_has_no_such_section(make_release: MakeRelease, make_run: MakeRun):
    assert not search.SECTION.applies(load_context([make_run(make_release(FUNGI), noisy)]))


@pytest.mark.parametrize("text", ["", "[]", '{"metric": "macro_f1_all"}', '{"metric": "x", "space": {}, "rows": []}'])
def test_a_damaged_record_is_named_with_what_to_do(context, text):
    (context.folder / "search.json").write_text(text)
    with pytest.raises(InputError, match=r"search\.json.*Fit the run again"):
        search.SECTION.render(context)
