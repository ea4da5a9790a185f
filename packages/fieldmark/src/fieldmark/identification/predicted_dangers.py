"""The danger in many answers at once: which photos to be careful with, by the rule that `identify` has for one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldmark.identification.advice import advice_for, danger_word
from fieldmark.identification.text import percent
from fieldmark.models import Model
from fieldmark.models.guides.dangers import allowed_by, dangerous_labels, never_because_of_a_model
from fieldmark.models.guides.living_groups import groups_of
from fieldmark.runs.label_scores import LabelScores


@dataclass(frozen=True)
class PredictedDangers:
    """What to be careful with among some answers.

    Args:
        never: What must not be done because of a model's answer, one sentence each; empty for groups without danger.
        allowed: The highest probability of danger that goes without a notice.
        probability: For each item above it, how likely it is one of the dangerous species that the model knows.
        items: How many items were answered.
        word: What is feared: poisonous or venomous.
        advice: What to do and not to do; empty where no item is above the line.
        poisonous: Of each label, whether it is poisonous or venomous, where the release tells.
    """

    never: tuple[str, ...]
    allowed: float
    probability: dict[str, float]
    items: int
    word: str
    advice: tuple[str, ...]
    poisonous: dict[str, bool]

    def lines(self) -> list[str]:
        """The notice in words, a line each; none where there is nothing to be careful with."""
        told = []
        if self.probability:
            number = f"{len(self.probability):,} of {self.items:,}"
            told = [
                "BE CAREFUL",
                f"For {number} the probability of a {self.word} species exceeds what a mistake allows "
                f"({percent(self.allowed)}).",
                *self.advice,
            ]
        return [*told, *self.never]


def predicted_dangers(model: Model, predictions: LabelScores) -> PredictedDangers:
    """The danger in the answers of a model, as its taxa tell it."""
    groups = groups_of(model.labels, model.taxa)
    dangerous = dangerous_labels(model.labels, model.taxa, groups)
    allowed = model.guide.danger.line if model.guide is not None else allowed_by()
    probability: dict[str, float] = {}
    feared = [group for group, bad in zip(groups, dangerous, strict=True) if bad]
    if feared and predictions.dense:
        chances = predictions.chances()[:, dangerous]
        # Where several labels may hold at once, chances do not add up: the highest counts.
        danger = chances.max(axis=1) if predictions.scale == "score" else chances.sum(axis=1)
        above = np.flatnonzero(danger > allowed)
        probability = {predictions.items[row]: float(danger[row]) for row in above.tolist()}
    group = max(set(feared), key=feared.count) if feared else ""
    told = model.taxa.drop_nulls("poisonous") if "poisonous" in model.taxa.columns else model.taxa.head(0)
    return PredictedDangers(
        never=never_because_of_a_model(groups),
        allowed=allowed,
        probability=probability,
        items=len(predictions.items),
        word=danger_word(group),
        advice=advice_for(group) if probability else (),
        poisonous=dict(told.select("label", "poisonous").iter_rows()) if len(told) else {},
    )
