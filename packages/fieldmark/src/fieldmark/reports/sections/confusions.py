"""Classes taken for each other, with photos side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from fieldmark.reports.likeness import NearestTraining
from fieldmark.reports.markup import render, sureness
from fieldmark.reports.section import Context, Section
from fieldmark.tables.labels import UNKNOWN

UNKNOWN_SPECIES = "an unknown species"
PAIRS = 6
# Dangerous pairs are shown even where others are more frequent.
DANGEROUS_PAIRS = 2
PHOTOS = 3


@dataclass(frozen=True)
class CaptionedPhoto:
    """A photo with what stands below it."""

    item: str
    data: str | None
    caption: str = ""


@dataclass(frozen=True)
class Pair:
    """Items of one class that were taken for another.

    Args:
        truth, answer: The two classes.
        items, units: How many items were confused, and how many units they belong to.
        of: How many items the true class has in all.
        dangerous: Whether a poisonous class was taken for one that is not.
        rows: The confused items, the most confident answer first.
        surest: The confidence of that first answer; 0 where the scores only rank.
    """

    truth: str
    answer: str
    items: int
    units: int
    of: int
    dangerous: bool
    rows: tuple[int, ...]
    surest: float

    @property
    def rate(self) -> float:
        return self.items / self.of


class Confusions(Section):
    """The most frequent confusions."""

    name = "confusions"
    title = "Worst confusions"

    def applies(self, context: Context) -> bool:
        return True

    def render(self, context: Context) -> str:
        pairs = all_pairs(context)
        shown = shown_pairs(pairs)
        nearest = NearestTraining(
            context,
            (row for pair in shown for row in one_per_unit(context, pair.rows)),
            {label for pair in shown for label in (pair.truth, pair.answer)},
        )
        danger = [pair for pair in pairs if pair.dangerous]
        return render(
            "sections/confusions.html.j2",
            context=context,
            pairs=[(pair, photos_of(context, pair, nearest)) for pair in shown],
            n_pairs=len(pairs),
            errors=int((~context.correct).sum()),
            called_unknown=int((~context.correct & (context.predicted == UNKNOWN)).sum())
            if context.task.unknown
            else 0,
            dangerous=sum(pair.items for pair in danger),
            poisonous_items=poisonous_items(context),
            knows_poison=context.opened.dataset.taxa["poisonous"].is_not_null().any(),
        )


def all_pairs(context: Context, *, called_unknown: bool = False) -> list[Pair]:
    """Every pair of classes that was confused, most items first, the surest among equals.

    Args:
        context: The run.
        called_unknown: Whether known classes that were called unknown are among them.
    """
    wrong = np.flatnonzero(~context.correct & (called_unknown | (context.predicted != UNKNOWN)))
    # Unknown species (-1) come last, so that -1 finds them.
    totals = np.bincount(
        np.where(context.truth == UNKNOWN, len(context.labels), context.truth), minlength=len(context.labels) + 1
    )
    names = (*context.labels.names, UNKNOWN_SPECIES)
    poisonous = _poisonous(context)
    rows_of: dict[tuple[int, int], list[int]] = {}
    for row in wrong:
        rows_of.setdefault((int(context.truth[row]), int(context.predicted[row])), []).append(int(row))
    confidence = context.confidence
    pairs = []
    for (truth, answer), rows in rows_of.items():
        if confidence is not None:
            rows = sorted(rows, key=lambda row: -confidence[row])
        pairs.append(
            Pair(
                truth=names[truth],
                answer=names[answer],
                items=len(rows),
                units=len({int(context.unit[row]) for row in rows}),
                of=int(totals[truth]),
                dangerous=poisonous.get(truth) is True and poisonous.get(answer) is False,
                rows=tuple(rows),
                surest=0.0 if confidence is None else float(confidence[rows[0]]),
            )
        )
    return sorted(pairs, key=lambda pair: (-pair.items, -pair.units, -pair.surest, pair.truth, pair.answer))


def shown_pairs(pairs: list[Pair]) -> list[Pair]:
    """The most frequent pairs, and the most frequent dangerous ones after them where they are not among those."""
    further = [pair for pair in pairs[PAIRS:] if pair.dangerous]
    already = sum(pair.dangerous for pair in pairs[:PAIRS])
    return pairs[:PAIRS] + further[: max(DANGEROUS_PAIRS - already, 0)]


def _poisonous(context: Context) -> dict[int, bool | None]:
    taxa = context.opened.dataset.taxa
    return dict(zip(context.labels.encode(taxa["label"]).tolist(), taxa["poisonous"], strict=True))


def poisonous_items(context: Context) -> int:
    """How many of the scored items are of a poisonous class."""
    poisonous = _poisonous(context)
    return sum(poisonous.get(int(code)) is True for code in context.truth)


def photos_of(context: Context, pair: Pair, nearest: NearestTraining | None = None) -> dict[str, list[CaptionedPhoto]]:
    """Photos of the confusion, and training photos of both classes: the nearest where a model can tell."""
    rows = one_per_unit(context, pair.rows)

    def training(label: str) -> list[CaptionedPhoto]:
        items = nearest.items(rows, label)[:PHOTOS] if nearest is not None else []
        return [CaptionedPhoto(item, context.thumbnail(item)) for item in items] or training_photos(context, label)

    return {
        "confused": [_confused(context, row) for row in rows],
        "truth": training(pair.truth),
        "answer": training(pair.answer),
    }


def _confused(context: Context, row: int) -> CaptionedPhoto:
    item = context.predictions.items[row]
    caption = "" if context.confidence is None else f"{sureness(context.confidence[row])} sure"
    return CaptionedPhoto(item, context.thumbnail(item), caption)


def one_per_unit(context: Context, rows: tuple[int, ...]) -> list[int]:
    """The first rows, further photos of a unit after all others."""
    seen: set[int] = set()
    fresh: list[int] = []
    again: list[int] = []
    for row in rows:
        unit = int(context.unit[row])
        (again if unit in seen else fresh).append(row)
        seen.add(unit)
    return (fresh + again)[:PHOTOS]


def training_photos(context: Context, name: str) -> list[CaptionedPhoto]:
    """A few training photos of a class, from as many units as there are."""
    items = context.training_items.filter(pl.col("label") == name)
    items = items.unique(context.task.unit, keep="first", maintain_order=True).head(PHOTOS)
    return [CaptionedPhoto(item, context.thumbnail(item)) for item in items["item_id"]]


SECTION = Confusions()
