"""One label per item: its column, tables of it, coarse labels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fieldmark.errors import InputError
from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.photos import Photos
from fieldmark.questions.places import Places
from fieldmark.splits import Official
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark_tests.questions.surveys import benchmark


def test_another_column_may_hold_the_label(survey):
    opened = open_benchmark(benchmark(Places(), OneLabel(column="genus")), survey)
    assert opened.view.labels.names == ("a", "c")
    assert opened.truth["test"].rows.rows() == [("p4", "c"), ("p5", "a")]


def test_items_with_one_label_are_named_once_and_have_one():
    for table, sentence in (
        ({"id": ["p", "q"], "label": ["a", None]}, "line 3: found no label"),
        ({"id": ["p", "p"], "label": ["a", "b"]}, "line 3: found the id 'p' again"),
    ):
        with pytest.raises(InputError, match=sentence):
            OneLabel().given(Photos(), table, None, None, ())


def test_coarse_labels_come_with_items_that_have_no_other(survey):
    declared = benchmark(Places(), OneLabel())
    declared = replace(
        declared,
        task=replace(declared.task, coarse=("genus",)),
        split=Official(train="train", val="val", unlabeled="test"),
    )
    unlabeled = open_benchmark(declared, survey).view.unlabeled
    assert unlabeled is not None and unlabeled.targets is not None
    assert unlabeled.targets.codes.tolist() == [-1, -1]
    assert unlabeled.targets.coarse["genus"].tolist() == [1, 0]
    assert unlabeled.take([1]).targets.coarse["genus"].tolist() == [0]  # type: ignore[union-attr]
