"""The danger in many answers at once: which photos to be careful with, by the rule that `identify` has for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fieldmark.identification.advice import SINGULAR, advice_for, danger_word
from fieldmark.identification.danger_notices import IMPROBABLE
from fieldmark.identification.packaged.photo_groups import PLAUSIBLE, group_chances, most_plausible
from fieldmark.identification.text import percent
from fieldmark.models import Model
from fieldmark.models.guides.dangers import allowed_by, dangerous_labels, never_because_of_a_model
from fieldmark.models.guides.living_groups import groups_of
from fieldmark.runs.label_scores import LabelScores

SHOWN = 5


@dataclass(frozen=True)
class PredictedDangers:
    """What to be careful with among some answers.

    Args:
        never: What must not be done because of a model's answer, one sentence each; empty for groups without danger.
        allowed: The highest probability of danger that goes without a notice.
        probability: For each item above it, how likely it is one of the dangerous species that the model knows.
        items: How many items were answered.
        word: What is feared: poisonous or venomous.
        advice: What to do and not to do; empty where there is nothing to be careful with.
        poisonous: Of each label, whether it is poisonous or venomous, where the release tells.
        improbable: How many items are above the line that hardly belong to the dangerous group.
        strange: The items that may be fungi or snakes, of which the model knows none.
    """

    never: tuple[str, ...]
    allowed: float
    probability: dict[str, float]
    items: int
    word: str
    advice: tuple[str, ...]
    poisonous: dict[str, bool]
    improbable: int = 0
    strange: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """The notice in words, a line each; none where there is nothing to be careful with."""
        told = ["BE CAREFUL"] if self.probability or self.strange else []
        if self.probability:
            number = f"{len(self.probability):,} of {self.items:,}"
            told.append(
                f"For {number} the probability of a {self.word} species exceeds what a mistake allows "
                f"({percent(self.allowed)})."
            )
        if self.strange:
            shown = ", ".join(self.strange[:SHOWN]) + (" ..." if len(self.strange) > SHOWN else "")
            number = f"{len(self.strange):,} of {self.items:,}"
            told.append(f"{number} may show a fungus or a snake, for which the model has no names: {shown}")
        told += self.advice
        if self.improbable:
            told.append(f"For {self.improbable:,} of {self.items:,} danger is unlikely, but not ruled out.")
        return [*told, *self.never]


def predicted_dangers(
    model: Model, predictions: LabelScores, seen: Mapping[str, Mapping[str, float]] | None = None
) -> PredictedDangers:
    """The danger in the answers of a model, as its taxa tell it.

    Args:
        model: The model.
        predictions: Its answers.
        seen: Of each item how plausible each group of living things is (`packaged.photo_groups`), where that is known.
    """
    seen = seen or {}
    groups = groups_of(model.labels, model.taxa)
    dangerous = dangerous_labels(model.labels, model.taxa, groups)
    allowed = model.guide.danger.line if model.guide is not None else allowed_by()
    feared = [group for group, bad in zip(groups, dangerous, strict=True) if bad]
    above: dict[str, float] = {}
    if feared and predictions.dense:
        chances = predictions.chances()[:, dangerous]
        # Where several labels may hold at once, chances do not add up: the highest counts.
        danger = chances.max(axis=1) if predictions.scale == "score" else chances.sum(axis=1)
        above = {predictions.items[row]: float(danger[row]) for row in np.flatnonzero(danger > allowed).tolist()}
    probability = {item: share for item, share in above.items() if _plausible(seen.get(item), feared)}
    unknown_here = [group for group in SINGULAR if group not in groups]
    strange = tuple(item for item in predictions.items if item in seen and _plausible(seen[item], unknown_here))
    group = max(set(feared), key=feared.count) if feared else ""
    told = model.taxa.drop_nulls("poisonous") if "poisonous" in model.taxa.columns else model.taxa.head(0)
    advised = [*([group] if probability else []), *(unknown_here if strange else [])]
    return PredictedDangers(
        never=never_because_of_a_model([*groups, *(unknown_here if strange else [])]),
        allowed=allowed,
        probability=probability,
        items=len(predictions.items),
        word=danger_word(group),
        advice=tuple(dict.fromkeys(sentence for one in advised for sentence in advice_for(one))),
        poisonous=dict(told.select("label", "poisonous").iter_rows()) if len(told) else {},
        improbable=len(above) - len(probability),
        strange=strange,
    )


def groups_seen(model: Model, photos: Sequence[Path]) -> dict[str, dict[str, float]]:
    """How plausible each group is in each photo; nothing where the packaged network is not asked."""
    chances = None if model.simulated else group_chances(photo.read_bytes() for photo in photos)
    rows = [] if chances is None else [most_plausible(row[None]) for row in chances]
    return dict(zip(map(str, photos), rows, strict=bool(rows)))


def _plausible(seen: Mapping[str, float] | None, groups: Sequence[str]) -> bool:
    """Whether one of some groups is plausible; any is where nothing was seen."""
    return seen is None or any(seen[group] >= PLAUSIBLE.get(group, IMPROBABLE) for group in set(groups))
