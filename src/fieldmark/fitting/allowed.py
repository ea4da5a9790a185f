"""What methods and steps look at and learn from, held against what a task allows."""

from __future__ import annotations

from collections.abc import Sequence

from fieldmark.benchmarks.declarations import Sees, Task
from fieldmark.errors import MisuseError
from fieldmark.methods.base import Method
from fieldmark.steps.base import Step

# From the narrowest on; the test set includes all others.
ORDER: tuple[Sees, ...] = ("item", "unit", "past", "test set")


def refuse_disallowed(name: str, method: Method, steps: Sequence[Step], task: Task) -> None:
    """Refuses a method or a step that looks further than the task allows, or learns from what it forbids.

    Raises:
        MisuseError: Names what is shown and what is allowed.
    """
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
    for source in method.learns_from:
        if source not in task.learns_from:
            sources = " and ".join(task.learns_from)
            raise MisuseError(f"The method {name!r} learns from {source}; the task allows {sources}.")


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
