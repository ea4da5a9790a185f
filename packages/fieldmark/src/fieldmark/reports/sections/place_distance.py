"""The score by how far the nearest place of train is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fieldmark.metrics.presence import mean_roc_auc, mean_roc_auc_without_each_unit
from fieldmark.reports.charts.plots import BLUE, draw
from fieldmark.reports.markup import render
from fieldmark.reports.place_answers import LISTED, PlaceAnswers, is_about_places
from fieldmark.reports.section import Context, Section
from fieldmark.stats.intervals import interval, pseudo_values

WIDTH, HEIGHT = 680, 320
STEPS, LEAST_PLACES = 5, 50


@dataclass(frozen=True)
class DistanceStep:
    """The score of the places at some distance from train.

    Args:
        from_km: The nearest of them.
        to_km: The farthest.
        places: How many there are.
        value: Their score.
        low: Where its interval begins; None for none.
        high: Where it ends.
    """

    from_km: float
    to_km: float
    places: int
    value: float
    low: float | None
    high: float | None


class PlaceDistance(Section):
    """Whether answers get worse away from what was learned from."""

    name = "place-distance"
    title = "Score by distance to train"
    shapes = ("codes", "pairs")

    def applies(self, context: Context) -> bool:
        return is_about_places(context) and len(PlaceAnswers.of(context)) >= LEAST_PLACES

    def render(self, context: Context) -> str:
        steps = by_distance(PlaceAnswers.of(context), context.unit)
        measure = (
            "ROC-AUC, mean over species" if context.many_labels else f"share with the species among the first {LISTED}"
        )
        return render(
            "sections/place_distance.html.j2",
            context=context,
            steps=steps,
            measure=measure,
            figure=_drawn(steps, measure),
        )


def by_distance(answers: PlaceAnswers, unit: NDArray[np.int32]) -> list[DistanceStep]:
    """Places in steps of equal numbers, from those near train to those far away, with their scores."""
    distance = answers.km_to_train
    order = np.argsort(distance, kind="stable")
    found = []
    for rows in np.array_split(order, STEPS):
        value, without = _score(answers, rows, unit[answers.rows[rows]])
        own = interval(value, pseudo_values(value, without)) if np.isfinite(value) else None
        low, high = (None, None) if own is None else (own.low, own.high)
        ends = float(distance[rows].min()), float(distance[rows].max())
        found.append(DistanceStep(*ends, len(rows), value, low, high))
    return found


def _score(
    answers: PlaceAnswers, rows: NDArray[np.int64], unit: NDArray[np.int32]
) -> tuple[float, NDArray[np.float64]]:
    """The score of some places, and with each of their units left out."""
    number = np.unique(unit, return_inverse=True)[1].astype(np.int32)
    if not answers.context.many_labels:
        hits = answers.hits[rows]
        size = np.bincount(number)
        left = np.maximum(len(hits) - size, 1)
        return float(hits.mean()), (hits.sum() - np.bincount(number, weights=hits)) / left
    holds, chances = answers.holds[rows], answers.chances[rows]
    item, cls = np.divmod(np.arange(holds.size), holds.shape[1])
    pairs = item.astype(np.int32), cls.astype(np.int32), chances.ravel(), holds.ravel()
    return mean_roc_auc(*pairs), mean_roc_auc_without_each_unit(*pairs, number)


def _paint(figure: Figure, *, steps: list[DistanceStep], measure: str) -> None:
    axes = figure.subplots()
    places = np.arange(len(steps))
    for place, step in zip(places, steps, strict=True):
        if step.low is not None and step.high is not None:
            axes.plot([place, place], [step.low, step.high], color=BLUE, linewidth=1.6)
        axes.plot([place], [step.value], "o", color=BLUE, markersize=7)
    axes.set_xticks(places, [f"{step.from_km:.1f} to {step.to_km:.1f}" for step in steps])
    axes.set_xlabel("km to the nearest place of train")
    axes.set_title(measure)
    axes.set_xlim(-0.5, len(steps) - 0.5)


def _drawn(steps: list[DistanceStep], measure: str) -> Markup:
    return draw(
        "place-distance",
        partial(_paint, steps=steps, measure=measure),
        width=WIDTH,
        height=HEIGHT,
        description=f"The {measure} in five steps of the distance to the nearest place of train, with intervals.",
    )


SECTION = PlaceDistance()
