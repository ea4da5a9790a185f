"""What the harness does with a method: steps, features, fitting on train, answering a part that is held back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Task, TimeOrder
from fieldmark.errors import InputError, MisuseError
from fieldmark.fitting.allowed import allowed_steps
from fieldmark.fitting.configuration import Configured, configured_method
from fieldmark.methods import Fitted, Method
from fieldmark.methods.base import told_choices
from fieldmark.models.guides import Guide
from fieldmark.models.guides.calibration_on_val import AnsweredVal, learn_guide
from fieldmark.models.photo_by_photo import OF_FEATURES, answer
from fieldmark.models.streams import answer_stream
from fieldmark.models.supply import Supply, refuse_unfit
from fieldmark.questions.targets import LabelTargets
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps import Step
from fieldmark.steps.base import Lesson, apply_step, fit_step
from fieldmark.steps.past import apply_in_time
from fieldmark.storage.addresses import is_address
from fieldmark.tables.inputs import Input
from fieldmark.tables.labels import Labels
from fieldmark.views.opaque_ids import blinded_lesson
from fieldmark.views.open_benchmark import Opened
from fieldmark.views.parts import Part, View


def readable_inputs(opened: Opened) -> dict[str, Input]:
    """The inputs that the task allows and that the items of train have something of, by name."""
    train, medium = opened.view.train, opened.dataset.medium
    layered = {layer.input for layer in train.layers.values()}
    return {
        name: declared
        for name, declared in opened.dataset.inputs_by_name.items()
        if name in opened.benchmark.task.inputs
        and (declared.medium == medium.name or name in layered or _has_values(train, declared))
    }


def _has_values(part: Part, declared: Input) -> bool:
    own = [column for column in declared.columns if column in part.items.columns]
    return any(part.items[column].is_not_null().any() for column in own)


def supply_of(configured: Configured, opened: Opened, store: Path | None, supply: Supply | None = None) -> Supply:
    """Where the features that a method needs come from; refuses what the release or the method cannot do."""
    dataset, method = opened.dataset, configured.method
    declared = dataset.inputs_by_name
    allowed = {name: one for name, one in declared.items() if name in opened.benchmark.task.inputs}
    refuse_unfit(configured.name, method, allowed, dataset.medium, dataset.release.root)
    method.check(opened.view)
    supply = supply or configured.supply(declared, dataset.main_input.extractor, store)
    return supply.fit(opened.view.train)


def supplied_view(opened: Opened, supply: Supply) -> View:
    """The view with the features a method needs."""
    view = opened.view
    parts = {"train": view.train, "val": view.val, "unlabeled": view.unlabeled, "test": view.test}
    media = opened.dataset.medium.plural
    supplied: dict[str, Any] = {
        name: supply.supply(part, f"{name} {media}") for name, part in parts.items() if part is not None
    }
    return replace(view, **supplied)


def shown_to(method: Method, view: View, hidden: NDArray[np.int32] | None = None) -> View:
    """What a method is given to learn from: what is not there cannot be peeked at.

    Args:
        method: Which declares what it learns from.
        view: Everything that there is.
        hidden: The labels of unlabeled items, which go to a method that declares hidden labels, and to no other.

    Raises:
        MisuseError: When a method wants hidden labels and nobody knows them.
    """
    # Unknown items teach nothing about the classes; only methods that look for the unknown are shown them.
    val = view.val if method.wants_unknown or view.val is None else view.val.of_known_labels()
    learns = set(method.learns_from)
    unlabeled = view.unlabeled if learns & {"unlabeled", "coarse", "hidden labels"} else None
    if unlabeled is not None and "hidden labels" in learns:
        if hidden is None:
            raise MisuseError("The release does not have the hidden labels of its unlabeled items.")
        coarse = unlabeled.targets.coarse if unlabeled.targets is not None and "coarse" in learns else {}
        unlabeled = replace(unlabeled, targets=LabelTargets(hidden, coarse=coarse))
    elif unlabeled is not None and "coarse" not in learns:
        unlabeled = unlabeled.unlabeled()
    return replace(view, val=val, unlabeled=unlabeled, test=view.test if method.sees == "test set" else None)


class TrainFit(NamedTuple):
    """What was fitted to train and val.

    Args:
        fitted: The method.
        steps: The steps.
        val: The predictions on val, all steps applied.
        raw: The same before the steps.
    """

    fitted: Fitted
    steps: tuple[Step, ...]
    val: Any
    raw: Any


def fit_on_train(
    method: Method,
    steps: Sequence[Step],
    view: View,
    opened: Opened,
    pooled: tuple[Supply, str] = (Supply({}), OF_FEATURES),
) -> TrainFit:
    """Fits the method on train and the steps on val.

    `pooled` says how items of several photos are answered, and where the features of each photo come from.
    """
    task, val = opened.benchmark.task, view.val
    assert val is not None  # open_benchmark refuses an empty val
    fitted = Fitted.to(method, shown_to(method, view, opened.hidden))
    predictions = answered(fitted, val, view.labels, task, pooled)
    lesson = Lesson(task, view.labels, opened.dataset.taxa, val, view.train)
    return TrainFit(fitted, *fit_steps(steps, predictions, lesson), predictions)


def guide_of(made: TrainFit, view: View, opened: Opened) -> Guide | None:
    """What a model keeps to answer people, drawn on val; None where it does not give one label to each photo."""
    task, val = opened.benchmark.task, view.val
    assert val is not None  # open_benchmark refuses an empty val
    if not opened.dataset.medium.visual or task.answer.several or not isinstance(made.raw, LabelScores):
        return None
    if task.time_order is not None:  # what a step has seen by then is not what it knows of a photo by itself
        return None

    def apply(predictions: LabelScores, items: pl.DataFrame) -> Any:
        return applied(made.steps, predictions, items, task, None)

    root = opened.dataset.release.root
    if not is_address(root):  # a server may be started from another folder than the fit was
        root = str(Path(root).absolute())
    answered_val = AnsweredVal(val, made.raw, apply)
    return learn_guide(view.labels, opened.dataset.taxa, made.steps, view.train, answered_val, root, opened.media_paths)


def answered(
    fitted: Fitted, part: Part, labels: Labels, task: Task, pooled: tuple[Supply, str] = (Supply({}), OF_FEATURES)
) -> Any:
    """The answers of a method to a part, in time order where the task asks for it; no steps yet."""
    order = task.time_order or (TimeOrder() if fitted.method.sees == "past" else None)
    if order is None:
        return answer(fitted, part, labels, pooled[0].supply, pooled[1])
    truth = None if part.targets is None else part.targets.codes
    return answer_stream(fitted, (), part, labels, order, truth=truth, supply=pooled[0].supply, pooling=pooled[1])


def fit_steps(steps: Sequence[Step], val: Any, lesson: Lesson) -> tuple[tuple[Step, ...], Any]:
    """Fits steps one after the other on the predictions on val, and returns these with all of them applied."""
    fitted: list[Step] = []
    with blinded_lesson(lesson.val, lesson.train) as ((own, train), names):
        lesson, val = replace(lesson, val=own, train=train), names.shown(val)
        for step in steps:
            fitted.append(fit_step(step, val, lesson))
            val = applied(fitted[-1:], val, lesson.items, lesson.task, lesson.targets.codes)
        return tuple(fitted), names.back(val)


def applied(
    steps: Sequence[Step], predictions: Any, items: pl.DataFrame, task: Task, truth: NDArray[np.int32] | None
) -> Any:
    """Predictions with fitted steps applied, in time order where the task asks for it.

    Args:
        steps: The steps.
        predictions: The predictions.
        items: What may be known about the items.
        task: What is asked.
        truth: The label of each predicted item, where it is known; steps see it if the task tells it, when it does.
    """
    for step in steps:
        if task.time_order is None:
            predictions = apply_step(step, predictions, items)
        else:
            told = None if task.time_order.labels_after_days is None else truth
            predictions = apply_in_time(step, predictions, items, task.time_order, told)
    return predictions


def revealed_labels(opened: Opened, part: str) -> NDArray[np.int32] | None:
    """The label codes of a part, where the task tells them some days later; None where it does not.

    Raises:
        InputError: When the task tells them and the release does not hold them.
    """
    order = opened.benchmark.task.time_order
    items = opened.items[part]
    if order is None or order.labels_after_days is None or items.is_empty():
        return None
    column = opened.benchmark.task.answer.column
    if items[column].is_null().any():
        raise InputError(
            opened.dataset.release.root,
            found=f"no labels for {part}",
            expected="a release that holds them",
            hint=f"{opened.benchmark.name} tells the labels of a day {order.labels_after_days} days later.",
        )
    return opened.view.labels.encode(items[column])


def final_fit(fitted: Fitted, view: View, opened: Opened) -> tuple[Fitted, list[str]]:
    """The model that answers test: fitted once more, to train and val, where val was ours to draw.

    Its remarks say what the first fit chose, which the second was given.
    """
    told = told_choices(fitted.chosen)
    if not opened.val_is_drawn or not fitted.method.learns_from_val:
        return replace(fitted, remarks=(*fitted.remarks, *told)), ["train"]
    together = replace(shown_to(fitted.method, view.with_val_in_train(), opened.hidden), test=None)
    again = Fitted.to(fitted.method, together, again=fitted.arrays)
    return replace(again, remarks=(*again.remarks, *told), chosen=fitted.chosen), ["train", "val"]


@dataclass(frozen=True)
class Learned:
    """All that a fit learns.

    Args:
        on_train: The method and steps as fitted to train and val apart, which answered val.
        final: The method that answers test.
        parts: What the final one was fitted to.
        guide: What the model keeps to answer people.
    """

    on_train: TrainFit
    final: Fitted
    parts: list[str]
    guide: Guide | None


def learn(
    method: Method, steps: Sequence[Step], view: View, opened: Opened, pooled: tuple[Supply, str], scratch: Path
) -> Learned:
    """Fits the method on train, the steps and the guide on val, and then the method that answers test.

    Networks keep their checkpoints in `scratch`; `pooled` is as for `fit_on_train`.
    """
    on_train = fit_on_train(method, steps, replace(view, scratch=scratch), opened, pooled)
    guide = guide_of(on_train, view, opened)
    final, parts = final_fit(on_train.fitted, replace(view, scratch=scratch / "refit"), opened)
    return Learned(on_train, final, parts, guide)


def prepare(method: str, settings: Mapping[str, Any], task: Task, steps: Sequence[str] | None = None) -> Configured:
    """A method with its settings.

    Raises:
        MisuseError: When names or settings are at fault, or when the task does not allow what the method sees.
    """
    configured = configured_method(method, settings)
    allowed_steps(method, configured.method, task, steps)
    return configured


def with_features(
    opened: Opened, configured: Configured, store: Path | None = None, supply: Supply | None = None
) -> View:
    """What methods see of an opened benchmark, with features where they are wanted.

    A method that reads all inputs is settled before (`Configured.on_release`).

    Args:
        opened: The benchmark.
        configured: The method.
        store: Where features are kept, if not in the user's cache.
        supply: What makes them, not fitted yet, where it serves several.
    """
    return supplied_view(opened, supply_of(configured, opened, store, supply))


def answer_test(opened: Opened, view: View, method: Method, steps: Sequence[str] | None) -> Any:
    """Fits a method on train and its choices and steps on val, and answers test. Val stays apart from train."""
    task = opened.benchmark.task
    wanted = allowed_steps(type(method).__name__, method, task, steps)
    fitted, fitted_steps, *_ = fit_on_train(method, wanted, view, opened)
    if view.test is None:
        raise ValueError("there is no test to answer")
    truth = None if view.test.targets is None else view.test.targets.codes
    predictions = answered(fitted, view.test, view.labels, task)
    return applied(fitted_steps, predictions, view.test.items, task, truth)
