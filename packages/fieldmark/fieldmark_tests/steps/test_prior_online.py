"""Predictions adapted to how frequent labels have been on earlier days."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from fieldmark.benchmarks.declarations import TimeOrder
from fieldmark.errors import MisuseError
from fieldmark.runs.label_scores import LabelScores, log_softmax
from fieldmark.steps import make_step, step_from_data, step_to_data
from fieldmark.steps.past import apply_in_time
from fieldmark.tables.labels import Labels
from fieldmark_tests.lessons import learned, with_columns

LABELS = Labels(("spring", "autumn"))
SOURCE = np.array([0.5, 0.5])
PLAIN = TimeOrder()


def year(number: int, seed: int, each_day: int = 4) -> tuple[LabelScores, np.ndarray, pl.DataFrame]:
    """Two labels that look alike, each with a season; posteriors are calibrated for the year as a whole."""
    rng = np.random.default_rng(seed)
    day = np.sort(rng.integers(0, 360, number // each_day)).repeat(each_day)
    truth = (rng.random(len(day)) < np.where(day < 180, 0.05, 0.95)).astype(np.int32)
    points = rng.normal(1.2 * (2 * truth - 1), 1.2)
    half = points * 1.2 / 1.2**2
    logs = log_softmax(np.column_stack([-half, half]))
    ids = [f"i{row}" for row in range(len(day))]
    dates = [dt.date(2021, 1, 1) + dt.timedelta(days=int(one)) for one in day]
    items = with_columns(pl.DataFrame({"item_id": ids, "date": dates}))
    return LabelScores(tuple(ids), LABELS, logs, "log_probability"), truth, items


@pytest.fixture(scope="module")
def fitted():
    val, truth, items = year(800, seed=0)
    return learned(make_step("prior-online"), val, truth, items, benchmark="fungitastic/closed")


def accuracy(predictions: LabelScores, truth: np.ndarray) -> float:
    return float((predictions.top(1)[:, 0] == truth).mean())


def test_a_season_is_noticed_as_it_comes(fitted):
    test, truth, items = year(800, seed=1)
    adapted = apply_in_time(fitted, test, items, PLAIN)
    assert accuracy(adapted, truth) > accuracy(test, truth) + 0.05
    assert fitted.strength_chosen is not None and fitted.days_chosen > 0  # a year without forgetting has no seasons
    assert fitted.log_loss["not adapted"] > min(fitted.log_loss.values())


def test_the_order_of_items_and_within_a_day_changes_nothing(fitted):
    test, _, items = year(200, seed=2)
    order = np.random.default_rng(0).permutation(len(items))
    shuffled = apply_in_time(fitted, test.take(order), items[order.tolist()], PLAIN)
    expected = apply_in_time(fitted, test, items, PLAIN)
    np.testing.assert_allclose(shuffled.select(expected.items).scores, expected.scores, atol=1e-12)


def test_nothing_of_the_future_is_seen(fitted):
    """Other items from some day on change no answer up to that day."""
    test, _, items = year(400, seed=3)
    cut = items["date"][200]
    earlier = (items["date"] <= cut).to_numpy()
    before = np.flatnonzero(earlier)
    alone = apply_in_time(fitted, test.take(before), items.filter(pl.Series(earlier)), PLAIN)
    np.testing.assert_array_equal(alone.scores, apply_in_time(fitted, test, items, PLAIN).take(before).scores)


def test_the_first_day_and_days_long_after_are_answered_as_they_were(fitted):
    test, _, items = year(400, seed=4)
    late = items.with_columns(
        pl.when(pl.int_range(pl.len()) >= 396).then(dt.date(2039, 1, 1)).otherwise("date").alias("date")
    )
    adapted = apply_in_time(fitted, test, late, PLAIN)
    first = np.flatnonzero((late["date"] == late["date"].min()).to_numpy())
    for rows in (first, np.arange(396, 400)):
        np.testing.assert_allclose(adapted.take(rows).probabilities(), test.take(rows).probabilities(), atol=0.03)


def test_items_without_a_date_come_last_and_teach_nothing(fitted):
    test, _, items = year(400, seed=5)
    undated = items.with_columns(pl.when(pl.int_range(pl.len()) < 8).then(None).otherwise("date").alias("date"))
    adapted = apply_in_time(fitted, test, undated, PLAIN)
    rest = np.arange(8, 400)
    alone = apply_in_time(fitted, test.take(rest), items[rest.tolist()], PLAIN)
    np.testing.assert_array_equal(adapted.take(rest).scores, alone.scores)


def test_labels_that_become_known_take_the_place_of_posteriors(fitted):
    _, truth, items = year(400, seed=6)
    ids = tuple(items["item_id"])
    says_nothing = LabelScores(ids, LABELS, np.tile(np.log(fitted.source), (400, 1)), "log_probability")
    blind = apply_in_time(fitted, says_nothing, items, PLAIN, truth)
    told = apply_in_time(fitted, says_nothing, items, TimeOrder(labels_after_days=14), truth)
    np.testing.assert_allclose(blind.probabilities(), says_nothing.probabilities(), atol=1e-6)
    assert accuracy(told, truth) > 0.8


def test_a_day_at_a_time_is_the_same_as_an_item_at_a_time(fitted):
    test, truth, items = year(200, seed=7)
    late = TimeOrder(labels_after_days=14)
    one_by_one = apply_in_time(fitted, test, items, late, truth)
    np.testing.assert_allclose(fitted.apply_by_day(test, items, late, truth).scores, one_by_one.scores, atol=1e-12)


def test_where_val_gains_nothing_nothing_is_adapted():
    val, truth, items = year(400, seed=0)
    shuffled = items.with_columns(pl.col("date").shuffle(seed=1))
    step = learned(make_step("prior-online"), val, truth, shuffled, benchmark="fungitastic/closed")
    assert step.strength_chosen is None
    np.testing.assert_array_equal(apply_in_time(step, val, items, PLAIN).scores, val.scores)


def test_what_was_learned_is_kept_with_the_model(fitted):
    test, _, items = year(100, seed=8)
    again = step_from_data(step_to_data(fitted), fitted.arrays)
    expected = apply_in_time(fitted, test, items, PLAIN)
    np.testing.assert_array_equal(apply_in_time(again, test, items, PLAIN).scores, expected.scores)


def test_loose_items_without_dates_are_answered_as_on_the_first_day(fitted):
    test, _, items = year(40, seed=9)
    adapted = apply_in_time(fitted, test, items.drop("date"), PLAIN)
    np.testing.assert_allclose(adapted.probabilities(), test.probabilities(), atol=1e-9)


def test_what_cannot_be_done_is_refused():
    val, truth, items = year(40, seed=0)
    with pytest.raises(MisuseError, match="needs the date of each item"):
        learned(make_step("prior-online"), val, truth, items.drop("date"), benchmark="fungitastic/closed")
    with pytest.raises(MisuseError, match=r"prior-online:half_life=.*: expected a number above 0, or val, or never"):
        make_step("prior-online:half_life=-1")
    with pytest.raises(MisuseError, match=r"prior-online:strength=.*: expected a number above 0, or val"):
        make_step("prior-online:strength=never")
