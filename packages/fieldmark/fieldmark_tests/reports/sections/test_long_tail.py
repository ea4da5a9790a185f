"""Recall by how often a class was seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fieldmark.reports.markup import EN_DASH
from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.section import Context
from fieldmark.reports.sections import long_tail
from fieldmark_tests.reports.by_hand import FUNGI, MakeRun, noisy
from fieldmark_tests.reports.sections.first_answers import answers


def test_recall_by_class_and_frequency(context: Context) -> None:
    rows = answers(context)
    for column in long_tail.frequency_columns(context):
        of_class = [truth == answer for truth, answer, _ in rows if truth == column.name]
        assert column.training == FUNGI[column.name]["train"]
        assert column.further == {"val": FUNGI[column.name]["val"], "test": FUNGI[column.name]["test"]}
        assert np.isnan(column.recall) if not of_class else column.recall == pytest.approx(np.mean(of_class))
    counts = [column.training for column in long_tail.frequency_columns(context)]
    assert counts == sorted(counts, reverse=True)


def test_bins_hold_each_class_and_item_once(context: Context) -> None:
    rows = answers(context)
    expected = {
        f"1{EN_DASH}4": ["Boletus <b>&nus", "Galerina marginata"],
        f"5{EN_DASH}9": ["Amanita rubescens", "Boletus edulis"],
    }
    expected[f"10{EN_DASH}19"] = ["Amanita muscaria"]
    found = long_tail.bins(context)
    assert [group.title for group in found] == list(expected)
    for group in found:
        right = [truth == answer for truth, answer, _ in rows if truth in expected[group.title]]
        assert group.classes == len(expected[group.title])
        assert group.recall is not None
        assert (group.recall.value, group.recall.items) == (pytest.approx(np.mean(right)), len(right))


def test_val_counts_as_training_where_the_model_learned_from_it(fungi: Path, make_run: MakeRun) -> None:
    context = load_context([make_run(fungi, noisy, trained_on=["train", "val"])])
    assert context.train_counts.sum() == sum(counts["train"] + counts["val"] for counts in FUNGI.values())
