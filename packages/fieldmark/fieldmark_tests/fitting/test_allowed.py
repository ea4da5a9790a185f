"""What a task does not allow is refused, before anything is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar, get_args

import numpy as np
import polars as pl
import pytest

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import LearnsFrom, Sees
from fieldmark.errors import MisuseError
from fieldmark.fitting.allowed import lessons_of, parts_learned_from, refuse_disallowed, seen_by
from fieldmark.methods.base import Arrays, Fitted, Method
from fieldmark.runs.label_scores import LabelScores, Scale
from fieldmark.steps import STEPS, make_step
from fieldmark.steps.base import Step
from fieldmark.views.parts import Part, View

TASK = BENCHMARKS["folder"].task


@dataclass(frozen=True)
class Guess(Method):
    """Knows nothing."""

    scale: ClassVar[Scale] = "score"

    def fit(self, view: View) -> Fitted:
        return Fitted(self, {})

    def scores(self, arrays: Arrays, part: Part) -> np.ndarray:
        return np.zeros((len(part), 3), dtype=np.float32)


@dataclass(frozen=True)
class Nothing(Step):
    """Changes nothing."""

    name: ClassVar[str] = "nothing"

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        return predictions


def method_that(**declared: object) -> Method:
    return type("Declared", (Guess,), declared)()


def step_that(sees: Sees) -> Step:
    return type("Declared", (Nothing,), {"sees": sees})()


@pytest.mark.parametrize(("sees", "allowed"), list(product(get_args(Sees), repeat=2)))
def test_a_method_that_looks_further_than_the_task_allows_is_refused(sees, allowed):
    task = replace(TASK, sees=(allowed,))
    if sees == allowed:
        refuse_disallowed("guess", method_that(sees=sees), (), task)
    else:
        with pytest.raises(MisuseError, match=f"'guess' is shown {sees} .* the task allows {allowed}"):
            refuse_disallowed("guess", method_that(sees=sees), (), task)


@pytest.mark.parametrize(("sees", "allowed"), list(product(get_args(Sees), repeat=2)))
def test_a_step_that_looks_further_than_the_task_allows_is_refused(sees, allowed):
    task = replace(TASK, sees=("item", allowed))
    if sees in task.sees:
        refuse_disallowed("guess", Guess(), (step_that(sees),), task)
    else:
        with pytest.raises(MisuseError, match=f"step 'nothing' is shown {sees}"):
            refuse_disallowed("guess", Guess(), (step_that(sees),), task)


@pytest.mark.parametrize(("source", "allowed"), list(product(get_args(LearnsFrom), repeat=2)))
def test_a_method_that_learns_from_what_the_task_forbids_is_refused(source, allowed):
    task = replace(TASK, learns_from=(allowed,))
    if source == allowed:
        refuse_disallowed("guess", method_that(learns_from=(source,)), (), task)
    else:
        with pytest.raises(MisuseError, match=f"learns from {source}; the task allows {allowed}"):
            refuse_disallowed("guess", method_that(learns_from=(source,)), (), task)


def test_hidden_labels_are_open_to_an_oracle_where_few_photos_are_labeled_and_nowhere_else():
    allowing = {name for name in BENCHMARKS if "hidden labels" in BENCHMARKS[name].task.learns_from}
    assert allowing == {"semi-inat-2021", "semi-aves-2020", "occurrences"}  # the last by a split with unlabeled rows


@pytest.mark.parametrize("shape", ["codes", "pairs", "masks"])
def test_a_method_that_cannot_give_the_kind_of_answer_is_refused(shape):
    asked = {"codes": "folder", "pairs": "birdclef-2020", "masks": "fungitastic-mini/segmentation"}
    for of, name in asked.items():
        method, task = method_that(targets=(shape,)), BENCHMARKS[name].task
        if of == shape:
            refuse_disallowed("guess", method, (), task)
        else:
            with pytest.raises(MisuseError, match="which the method 'guess' does not give"):
                refuse_disallowed("guess", method, (), task)


TIME_ORDERED = sorted(name for name in BENCHMARKS if BENCHMARKS[name].task.time_order is not None)


def test_nine_benchmarks_come_in_time_order():
    assert len(TIME_ORDERED) == 9 and all("/temporal" in name for name in TIME_ORDERED)


@pytest.mark.parametrize("name", TIME_ORDERED)
def test_in_time_order_no_method_sees_the_whole_test_set(name, tmp_path):
    with pytest.raises(MisuseError, match="'em' is shown test set"):
        fieldmark.fit(name, tmp_path, "em", tmp_path / "run")


def test_a_run_states_what_method_and_steps_have_seen_together():
    item, unit, past, everything = (step_that(sees) for sees in get_args(Sees))
    assert seen_by(Guess(), (item,)) == "item"
    assert seen_by(Guess(), (item, unit)) == "unit"
    assert seen_by(method_that(sees="past"), (unit,)) == "unit and past"
    assert seen_by(method_that(sees="past"), (everything, past)) == "test set"


@pytest.mark.parametrize("step", ["prior-em", "prior-map", "prior-confusion"])
def test_frequencies_of_the_whole_test_set_are_for_closed_and_open_sets_and_refused_in_time_order(step, tmp_path):
    for name in ("fungitastic/closed", "fungitastic-mini/open"):
        refuse_disallowed("guess", Guess(), (make_step(step),), BENCHMARKS[name].task)
    for name in TIME_ORDERED:
        with pytest.raises(MisuseError, match=f"step '{step}' is shown test set"):
            fieldmark.fit(name, tmp_path, "frequent", tmp_path / "run", steps=["temperature", step])


def test_every_step_says_what_it_sees():
    assert {name: STEPS[name].sees for name in STEPS if STEPS[name].sees != "item"} == {
        "observation-mean": "unit",
        "observation-max": "unit",
        "observation-attention": "unit",
        "neighbors": "unit",
        "prior-online": "past",
        "prior-em": "test set",
        "prior-map": "test set",
        "prior-confusion": "test set",
    }


def test_every_step_that_keeps_something_of_val_for_each_label_says_so():
    learning = {
        "bias-temperature": ("val",),
        "class-thresholds": ("val",),
        "prior-confusion": ("val",),
        "site-prior": ("val",),
        "season-prior": ("val",),
        "prior": ("train",),
        "month-prior": ("train",),
        "country-prior": ("train",),
    }
    settings = {"prior": ":column=habitat"}
    made = {name: make_step(name + settings.get(name, "")) for name in STEPS}
    assert {name: step.learns_from for name, step in made.items() if step.learns_from} == learning
    assert make_step("prior:column=habitat,learn_from=val").learns_from == ("val",)
    assert make_step("label-lists:by=label").learns_from == ("val",)
    assert made["temperature"].tuned_on == ("val",) and made["min-cost"].tuned_on == ()


def test_what_a_step_has_learned_from_counts_among_what_a_run_was_trained_on():
    steps = [make_step(name) for name in ("temperature", "bias-temperature", "month-prior", "max-softmax")]
    assert parts_learned_from(["train"], steps) == ["train", "val"]
    assert lessons_of(steps) == [
        {"step": "temperature", "learned_from": [], "tuned_on": ["val"]},
        {"step": "bias-temperature", "learned_from": ["val"], "tuned_on": []},
        {"step": "month-prior", "learned_from": ["train"], "tuned_on": ["val"]},
    ]
