"""Objectives by name, as recipes write them: `objective = "triplet:margin=0.3,each=4"`."""

from __future__ import annotations

from typing import Any

from fieldmark.errors import MisuseError
from fieldmark.registry import Registry
from fieldmark.settings import configure, parse_pairs
from fieldmark.training.objectives import Objective

OBJECTIVES: Registry[type[Objective]] = Registry(
    "objective",
    {
        "labels": ("fieldmark.training.objectives:SingleLabel", "one class for each example"),
        "several-labels": ("fieldmark.training.objectives:SeveralLabels", "any number of classes for each example"),
        "masks": ("fieldmark.training.objectives:MaskObjective", "one class for each pixel (dice)"),
        "consistency": (
            "fieldmark.training.consistency:Consistency",
            "labels, and for unlabeled examples the same answer in two views (threshold, thresholds, align, keep, ...)",
        ),
        "class-aware-contrast": (
            "fieldmark.training.semi_objectives:ClassAwareContrast",
            "consistency, and unlabeled examples contrasted by class where sure (contrast, sure, temperature)",
        ),
        "contrast": (
            "fieldmark.training.semi_objectives:Contrast",
            "no labels: two views of a photo closer than any other; before labels are learned (temperature)",
        ),
        "distillation": (
            "fieldmark.training.semi_objectives:Distillation",
            "labels, and what a teacher says of unlabeled examples (alpha, unlabeled_each)",
        ),
        "triplet": (
            "fieldmark.training.metric_learning:Triplet",
            "labels, and examples of a class closer together than to others (margin, weight, labels, each)",
        ),
        "auxiliary-rank": (
            "fieldmark.training.auxiliary_ranks:AuxiliaryRanks",
            "labels, and higher ranks from heads of their own (ranks, weight)",
        ),
    },
)
# What a method fills in itself.
FILLED_IN = ("classes", "sizes", "several", "allowed")


def make_objective(text: str, **facts: Any) -> Objective:
    """The objective that a recipe names.

    Args:
        text: Its name, and after a colon its settings with commas between them.
        facts: What the method knows: `classes`, and what else the objective needs to be told.

    Raises:
        MisuseError: For names and settings that there are not.
    """
    name, colon, given = text.partition(":")
    cls = OBJECTIVES[name]
    settings = parse_pairs([one for one in given.split(",") if one])
    if (colon and not settings) or set(settings) & set(FILLED_IN):
        raise MisuseError(f"objective={text}: expected a name and settings, such as triplet:margin=0.3,each=4.")
    made: Objective = configure({**settings, **facts}, cls)[0]
    return made


def objective_name(text: str) -> str:
    """The name in front of the settings."""
    return text.partition(":")[0]


def refuse_other_objectives(method: str, text: str, known: tuple[str, ...]) -> None:
    """Refuses objectives that a method cannot learn, and settings that they do not have.

    Raises:
        MisuseError: Names what the method learns.
    """
    name = objective_name(text)
    if name in OBJECTIVES and name not in known:
        raise MisuseError(f"{method} has no objective={name}: expected {' or '.join(known)}.")
    made = make_objective(text, classes=1)
    if getattr(made, "labels", 1) == 0:
        raise MisuseError(f"objective={text}: {method} answers with its head, which learns nothing without labels.")
