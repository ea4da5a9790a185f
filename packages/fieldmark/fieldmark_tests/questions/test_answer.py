"""What is given as an answer: classes, their flags, and what every kind of answer promises."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError
from fieldmark.questions.answer import flags_of, read_classes
from fieldmark.questions.any_labels import AnyLabels
from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.presence import Presence
from fieldmark.tables.given_tables import GivenTable
from fieldmark.tables.labels import Labels

LABELS = Labels(("a", "b", "c"))
NAMED = pl.Series("label", ["b", "a", "b"])
TRUTH = GivenTable(NAMED.to_frame().with_columns(line=pl.int_range(2, 5)), "truth.csv")


def test_without_a_table_the_classes_are_those_of_the_truth():
    labels, classes = read_classes(None, NAMED, TRUTH)
    assert labels.names == ("a", "b") and classes.is_empty()


def test_a_table_of_classes_may_list_unknown_and_labels_that_the_truth_lacks():
    labels, _ = read_classes({"label": ["c", "-1", "b", "a"]}, NAMED, TRUTH)
    assert labels.names == ("c", "b", "a")


@pytest.mark.parametrize(
    ("classes", "sentence"),
    [
        (
            {"label": ["a", "b", "a"]},
            r"line 4: found the label 'a' again \(first in line 2\), expected each label once",
        ),
        ({"label": ["a", None]}, "line 3: found no label"),
        ({"label": ["a"]}, r"truth\.csv, line 2: found the label 'b', expected a label listed in"),
        ({"label": ["a", "b"], "poisonous": ["yes please", "no"]}, "line 2: found .*yes please"),
    ],
)
def test_a_wrong_table_of_classes_is_refused(classes, sentence):
    with pytest.raises(InputError, match=sentence):
        read_classes(classes, NAMED, TRUTH)


def test_in_the_taxa_of_a_release_labels_without_the_flag_count_as_false():
    taxa = pl.DataFrame({"label": ["c", "a"], "poisonous": [True, None]})
    assert flags_of(LABELS, taxa, "poisonous").tolist() == [False, False, True]


def test_a_table_that_somebody_gave_must_say_a_flag_of_each_label():
    labels, classes = read_classes({"label": ["a", "b"], "poisonous": ["true", None]}, NAMED, TRUTH)
    with pytest.raises(InputError, match="line 3: found no value for poisonous, expected true or false"):
        flags_of(labels, classes, "poisonous")
    with pytest.raises(InputError, match="expected a column 'rare' with true or false"):
        flags_of(labels, classes, "rare")


@pytest.mark.parametrize("answer", [OneLabel(), AnyLabels(), Presence()], ids=lambda answer: type(answer).__name__)
@pytest.mark.parametrize("dense", [True, False])
def test_a_sample_answers_every_item_and_follows_its_seed(answer, dense):
    items = ("1", "2", "3", "4")
    first, again, other = (answer.sample(items, LABELS, np.random.default_rng(seed), dense=dense) for seed in (0, 0, 1))
    assert first.items == items and first.labels == LABELS
    assert np.array_equal(first.top(3), again.top(3)) and not np.array_equal(first.top(3), other.top(3))


def test_the_default_steps_of_every_answer_exist():
    from fieldmark.steps import STEPS

    assert all(step in STEPS for name in BENCHMARKS for step in BENCHMARKS[name].task.answer.default_steps)
