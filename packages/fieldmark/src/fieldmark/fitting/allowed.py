"""What methods and steps look at and learn from, held against what a task allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fieldmark.benchmarks.declarations import Sees, Task
from fieldmark.errors import MisuseError
from fieldmark.methods.base import Method
from fieldmark.steps import make_step
from fieldmark.steps.base import Step

# From the narrowest on; the test set includes all others.
ORDER: tuple[Sees, ...] = ("item", "unit", "past", "test set")


def allowed_steps(name: str, method: Method, task: Task, names: Sequence[str] | None) -> list[Step]:
    """The steps that follow a method: those that were asked for, else those of the method, else those of the answer.

    An answer that is a decision (a list of labels) needs a step that decides, whatever the method would do without.
    Nobody asked for the steps of a method: those for unknown species are left out where the task has none.

    Raises:
        MisuseError: When the task does not allow one of them, or the method.
    """
    own = method.default_steps() if names is None else None
    own = None if own is None else tuple(step for step in own if task.unknown or not step.needs_unknown)
    if own == () and any(make_step(one).decides for one in task.answer.default_steps):
        own = None
    wanted = task.answer.default_steps if names is None else names
    steps = list(own) if own is not None else [make_step(one) for one in wanted]
    refuse_disallowed(name, method, steps, task)
    return steps


def refuse_disallowed(name: str, method: Method, steps: Sequence[Step], task: Task) -> None:
    """Refuses a method or a step that a task is not for, that looks further than it allows or learns what it forbids.

    Raises:
        MisuseError: Names what is shown and what is allowed.
    """
    for step in steps:
        step.check(task)
    if task.answer.shape not in method.targets:
        raise MisuseError(
            f"The benchmark asks for {task.answer.shape} of each {task.items.noun}, which the method {name!r} does not "
            "give; runs made elsewhere can be scored with `fieldmark score`."
        )
    allowed = " or ".join(task.sees)
    if method.sees not in task.sees:
        raise MisuseError(f"The method {name!r} is shown {method.sees} at prediction time; the task allows {allowed}.")
    for step in steps:
        if step.sees not in task.sees:
            raise MisuseError(
                f"The step {step.name!r} is shown {step.sees} at prediction time; the task allows {allowed}."
            )
    learners = [(f"method {name!r}", method.learns_from), *((f"step {one.name!r}", one.learns_from) for one in steps)]
    for learner, sources in learners:
        for source in sources:
            if source not in task.learns_from:
                allowed = " and ".join(task.learns_from)
                raise MisuseError(f"The {learner} learns from {source}; the task allows {allowed}.")


def lessons_of(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """What each step has taken from the labels of which parts, as a run records it; steps that took nothing go unsaid.

    `learned_from`: something for each label; `tuned_on`: a few numbers that hold for all of them.
    """
    said = [{"step": one.name, "learned_from": list(one.learns_from), "tuned_on": list(one.tuned_on)} for one in steps]
    return [one for one in said if one["learned_from"] or one["tuned_on"]]


def parts_learned_from(parts: Sequence[str], steps: Sequence[Step]) -> list[str]:
    """The parts whose labels a method was fitted to, and those that its steps have learned from."""
    return list(dict.fromkeys([*parts, *(part for step in steps for part in step.learns_from if part != "train")]))


def modalities_of(method: Method, steps: Sequence[Step], medium: str) -> list[str]:
    """What of an item method and steps read, by the names of inputs, each once; the media go by what they are."""
    read = [need.input or medium for need in method.needs]
    return list(dict.fromkeys([*read, *(name for step in steps for name in step.inputs)]))


def seen_by(method: Method, steps: Sequence[Step]) -> str:
    """What a run has looked at to answer an item: the union over method and steps.

    The unit includes the item, and the test set includes everything.
    """
    seen = {method.sees, *(step.sees for step in steps)}
    if "test set" in seen:
        return "test set"
    return " and ".join([one for one in ORDER if one in seen - {"item"}]) or "item"
