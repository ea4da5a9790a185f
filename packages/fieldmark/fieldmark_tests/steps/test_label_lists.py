"""Thresholds for lists of labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from fieldmark.errors import MisuseError
from fieldmark.runs.code_sets import CodeSets
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.label_lists import ListLabels
from fieldmark.steps.multilabel import PresenceCurve
from fieldmark.tables.labels import Labels
from fieldmark_tests.lessons import lesson

LABELS = Labels(("a", "b", "c"))


def drawn(seed: int, n: int = 60) -> tuple[LabelScores, np.ndarray]:
    """Chances that tell what holds, on another scale for the last label."""
    rng = np.random.default_rng(seed)
    holds = rng.random((n, 3)) < 0.4
    chances = np.clip(0.35 + 0.3 * holds + 0.15 * rng.standard_normal((n, 3)), 0.01, 0.99)
    chances[:, 2] = chances[:, 2] / 3
    return LabelScores(tuple(f"i{row}" for row in range(n)), LABELS, chances, "score"), holds


def mean_f1(predictions: LabelScores, holds: np.ndarray) -> float:
    decisions = predictions.decisions
    assert decisions is not None
    values = []
    for row in range(len(holds)):
        listed, true = set(decisions.of(row).tolist()), set(np.flatnonzero(holds[row]).tolist())
        values.append(2 * len(listed & true) / (len(listed) + len(true)) if listed | true else 1.0)
    return float(np.mean(values))


def test_no_other_threshold_does_better_on_val_than_the_one_that_is_taken():
    val, holds = drawn(0)
    items = pl.DataFrame({"item_id": val.items})
    fitted = ListLabels().fit(val, lesson(val, holds))
    best = mean_f1(fitted.apply(val, items), holds)
    assert (
        best >= max(mean_f1(ListLabels(shared=t).apply(val, items), holds) for t in np.linspace(0.05, 0.95, 19)) - 0.02
    )


def test_thresholds_by_label_help_where_labels_have_other_scales():
    val, holds = drawn(1, n=200)
    items, about = pl.DataFrame({"item_id": val.items}), lesson(val, holds)
    shared, own = (ListLabels(by=by).fit(val, about) for by in ("shared", "label"))
    assert "c" in own.own and own.own["c"] < shared.shared
    test, truth = drawn(2, n=200)
    assert mean_f1(own.apply(test, items), truth) > mean_f1(shared.apply(test, items), truth)


def test_at_least_so_many_labels_are_listed_and_the_scores_stay():
    val, _ = drawn(3)
    listed = ListLabels(shared=2.0, at_least=1).apply(val, pl.DataFrame({"item_id": val.items}))
    assert listed.decisions is not None and (listed.decisions.lengths == 1).all()
    assert (listed.decisions.codes == val.scores.argmax(axis=1)).all()
    assert listed.scores is val.scores


def test_an_unknown_rule_is_refused():
    with pytest.raises(MisuseError, match="label-lists:by=class: expected shared or label"):
        ListLabels(by="class")


def test_thresholds_by_label_are_those_that_trying_one_after_the_other_finds():
    val, holds = drawn(4, n=80)
    fitted = ListLabels(by="label").fit(val, lesson(val, holds))
    items = pl.DataFrame({"item_id": val.items})
    reached = mean_f1(fitted.apply(val, items), holds)
    for name in fitted.own:
        for threshold in np.unique(val.scores[:, LABELS.code_of[name]]):
            other = replace(fitted, own={**fitted.own, name: float(threshold)})
            assert mean_f1(other.apply(val, items), holds) <= reached + 0.01


def test_lists_of_the_best_labels_are_cut_like_the_chances_of_all():
    val, holds = drawn(5)
    items = pl.DataFrame({"item_id": val.items})
    order = np.argsort(-val.scores, axis=1, kind="stable")
    lists = CodeSets(order.ravel().astype(np.int32), np.arange(0, val.scores.size + 1, 3))
    listed = LabelScores.listed(val.items, LABELS, lists, np.take_along_axis(val.scores, order, axis=1).ravel())
    for step in (PresenceCurve(), ListLabels(by="label")):
        fitted = [step.fit(one, lesson(one, holds)) for one in (val, listed)]
        assert fitted[0] == fitted[1]
        val, listed = fitted[0].apply(val, items), fitted[1].apply(listed, items)
    assert mean_f1(val, holds) == mean_f1(listed, holds)
    assert not listed.dense
