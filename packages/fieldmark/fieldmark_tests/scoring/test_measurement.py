"""Task, predictions and truth become a scorecard."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError
from fieldmark.questions.truth import Truth
from fieldmark.runs.label_scores import LabelScores
from fieldmark.scoring.measurement import (
    EARLIER_CAUTION,
    FEW_UNITS,
    FEW_UNITS_CAUTION,
    interval_of,
    measure,
    numbered,
    score_predictions,
)
from fieldmark.stats.intervals import pseudo_values
from fieldmark.stats.support import Support, supporting_interval
from fieldmark.tables.labels import Labels


def test_public_and_private_parts_are_shown_apart(run):
    truth = {"id": ["1", "2"], "label": ["a", "b"], "split": ["public", "private"]}
    card = fieldmark.score("folder", run("id,predicted\n1,a\n2,a\n"), truth=truth)
    assert {part: scores["top_1"].value for part, scores in card.groups["split"].items()} == {
        "public": 1.0,
        "private": 0.0,
    }


@pytest.mark.parametrize("name", ["folder", "fungitastic/open"])
def test_the_order_of_lines_and_the_naming_of_classes_change_nothing(run, name):
    rng = np.random.default_rng(1)
    ids, labels = [str(n) for n in range(60)], [f"c{n}" for n in rng.integers(0, 5, 60)]
    separator, extra = ("|", "") if name == "folder" else (" ", ",0.5")
    header = "id,predicted" + (",unknown_score" if extra else "") + "\n"
    lines = [f"{i},{separator.join(f'c{n}' for n in rng.permutation(5)[:3])}{extra}\n" for i in ids]
    truth = {"id": ids, "label": labels}
    first = fieldmark.score(name, run(header + "".join(lines)), truth=truth)
    shuffled = fieldmark.score(name, run(header + "".join(rng.permutation(lines))), truth=truth)
    assert str(first.metrics) == str(shuffled.metrics)  # as text, because nan is not equal to itself
    renamed_truth = pl.DataFrame(truth).with_columns(pl.col("label").str.replace("c", "z"))
    renamed = fieldmark.score(
        name, run(header + "".join(line.replace("c", "z") for line in lines)), truth=renamed_truth
    )
    for metric, score in first.metrics.items():
        assert renamed.metrics[metric].value == pytest.approx(score.value, nan_ok=True)


LABELS = Labels(("a", "b"))


def answered(units: int) -> tuple[LabelScores, Truth]:
    """Two items in each unit, of which three in four are answered right."""
    items = tuple(str(number) for number in range(2 * units))
    codes = np.arange(len(items)) % 2
    first = np.where(np.arange(len(items)) % 4 == 3, 1 - codes, codes)
    rows = pl.DataFrame({"item_id": items, "label": [LABELS.names[code] for code in codes]})
    truth = Truth(rows, items, tuple(f"u{number // 2}" for number in range(len(items))))
    return LabelScores(items, LABELS, np.eye(2)[first], "score"), truth


def test_a_value_lies_within_its_interval_and_rests_on_one_pseudo_value_per_unit():
    predictions, truth = answered(40)
    card = score_predictions(BENCHMARKS["folder"], predictions, truth, labels=LABELS)
    top = card.metrics["top_1"]
    assert top.value == 0.75 and top.low < 0.75 < top.high
    assert (card.items, card.units) == (80, 40) and len(card.pseudo["top_1"]) == 40
    assert card.pseudo["top_1"].mean() == pytest.approx(0.75)


@pytest.mark.parametrize(("units", "reason"), [(FEW_UNITS - 1, FEW_UNITS_CAUTION.format(19)), (FEW_UNITS, None)])
def test_few_units_are_cautioned_about_where_a_score_is_no_plain_share(units, reason):
    predictions, truth = answered(units)
    metrics = score_predictions(BENCHMARKS["folder"], predictions, truth, labels=LABELS).metrics
    assert metrics["macro_f1_all"].reason == reason and metrics["top_1"].reason is None


def test_a_metric_that_cannot_be_computed_is_left_out_only_where_it_is_optional():
    predictions, truth = answered(20)
    task = BENCHMARKS["folder"].task
    evaluation = task.answer.evaluate(predictions, truth, LABELS, pl.DataFrame({"label": LABELS.names}), 3)
    poison = next(one for one in BENCHMARKS["fungitastic/cost-poison"].task.metrics if not one.optional)
    with pytest.raises(InputError, match="poisonous"):
        measure([poison], evaluation)
    assert measure([replace(poison, optional=True)], evaluation)[1] == {}


def test_units_are_numbered_in_the_order_of_their_names():
    names, numbers = numbered(["o2", "o10", "o2", "o1"])
    assert names == ("o1", "o10", "o2") and numbers.tolist() == [2, 1, 2, 0]


def test_the_interval_of_a_score_of_two_groups_rests_on_both_alike():
    rng = np.random.default_rng(0)
    items = tuple(str(number) for number in range(40))
    strange = np.arange(40) < 16
    rows = pl.DataFrame({"item_id": items, "label": np.where(strange, "-1", "a").tolist()})
    scores = LabelScores(items, LABELS, np.tile([0.6, 0.4], (40, 1)), "score", unknown=rng.random(40) + strange / 2)
    card = score_predictions(BENCHMARKS["fungitastic/open"], scores, Truth(rows, items, items), labels=LABELS)
    value, pseudo = card.metrics["roc_auc"].value, card.pseudo["roc_auc"]
    support = Support(np.where(strange, 1 / 16, 1 / 24), most_items=40)
    plain = supporting_interval(value, pseudo, support)
    assert (card.metrics["roc_auc"].low, card.metrics["roc_auc"].high) == pytest.approx((plain.low, plain.high))


def test_a_perfect_run_that_cannot_reach_one_has_no_interval_of_rounding_errors(run):
    labels = [f"c{number % 5}" for number in range(77)]
    truth = {"id": [str(number) for number in range(77)], "label": labels}
    classes = pl.DataFrame({"label": [f"c{number}" for number in range(6)]})
    lines = "".join(f"{number},{label}\n" for number, label in enumerate(labels))
    card = fieldmark.score("folder", run("id,predicted\n" + lines), truth=truth, classes=classes)
    score = card.metrics["macro_f1_all"]
    assert score.value == pytest.approx(5 / 6)
    assert (score.low, score.high, score.reason) == (None, None, "every unit gives the same value")
    assert card.metrics["top_1"].high == 1.0 and 0.94 < card.metrics["top_1"].low < 0.97  # the rule of three


def venomous(units: int, harmless: int) -> dict[str, object]:
    """All snakes named right but the first twelve harmless ones."""
    truth = np.where(np.arange(units + harmless) < units, 0, 1 + np.arange(units + harmless) % 2).astype(np.int32)
    first = truth.copy()
    first[units : units + 12] = 3 - first[units : units + 12]
    return {"truth": truth, "predicted": first, "venomous": np.array([True, False, False])}


def test_the_caution_counts_the_units_on_which_a_metric_rests():
    metric = BENCHMARKS["snakeclef-2023"].task.deciding
    assert metric.name == "venom_score" and metric.without_each_unit is not None
    for units, cautioned in ((8, True), (60, False)):
        arguments, unit = venomous(units, 200), np.arange(units + 200, dtype=np.int32)
        value = metric.value(**arguments)
        pseudo = pseudo_values(value, metric.without_each_unit(**arguments, unit=unit))
        found = interval_of(metric, value, pseudo, arguments, unit)
        before = interval_of(metric, value, pseudo, arguments, unit, "scarcer group")
        assert (found.reason is not None) == cautioned and before.reason is None
        if cautioned:
            assert found.reason == FEW_UNITS_CAUTION.format(round(found.rests_on)) and found.rests_on < 15
            assert found.high - found.low > before.high - before.low


@pytest.mark.parametrize(("wrong", "cautioned"), [(2, True), (80, False)])
def test_a_nearly_perfect_run_on_a_long_tail_is_cautioned_about(wrong, cautioned):
    metric = next(one for one in BENCHMARKS["snakeclef-2020"].task.metrics if one.name == "macro_f1_union")
    truth = np.repeat(np.arange(40), [60, 30, 20, *[10] * 5, *[3] * 8, *[1] * 24]).astype(np.int32)[:200]
    first, unit = truth.copy(), np.arange(len(truth), dtype=np.int32)
    first[-wrong:] = 0
    arguments = {"truth": truth, "predicted": first, "n_classes": 40} | dict(metric.options)
    value = metric.value(**arguments)
    pseudo = pseudo_values(value, metric.without_each_unit(**arguments, unit=unit))
    reason = interval_of(metric, value, pseudo, arguments, unit).reason
    assert (reason is not None and "its spread comes from about" in reason) == cautioned


def test_a_metric_of_rare_species_rests_on_their_items():
    rare = next(metric for metric in BENCHMARKS["plantclef-2020"].task.metrics if metric.name == "mrr_rare")
    among = np.arange(40) < 7
    arguments = {"rank_of_truth": np.arange(40) % 3, "among": among}
    assert rare.rests_on(arguments, 40).tolist() == among.astype(float).tolist()


@pytest.mark.parametrize("convention", ["all units", "scarcer group"])
def test_earlier_conventions_are_still_there_by_name(convention):
    predictions, truth = answered(12)
    task = replace(BENCHMARKS["folder"].task, intervals=convention)
    card = score_predictions(replace(BENCHMARKS["folder"], task=task), predictions, truth, labels=LABELS)
    assert card.metrics["macro_f1_all"].reason == EARLIER_CAUTION
    assert card.metrics["top_1"].rests_on is None and "mid-p" not in card.conventions["intervals"]
