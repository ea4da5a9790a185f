"""Importance of covariates to a model of places."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fieldmark.errors import FieldmarkError
from fieldmark.methods.places.base import OnPlaces
from fieldmark.methods.places.records import Points
from fieldmark.metrics.presence import mean_roc_auc
from fieldmark.models.place_models import PlaceModel
from fieldmark.reports.charts.plots import TINT, draw
from fieldmark.reports.markup import render
from fieldmark.reports.place_answers import LISTED, PlaceAnswers, is_about_places
from fieldmark.reports.section import Context, Section

WIDTH = 680
MOST_PLACES, SHUFFLES, SHOWN, LEAST_PLACES = 300, 3, 15, 30


@dataclass(frozen=True)
class CovariateLoss:
    """What a covariate is worth.

    Args:
        name: What it is called.
        loss: By how much the score falls when its values are shuffled among places.
        spread: The standard deviation over shuffles.
    """

    name: str
    loss: float
    spread: float


class CovariateWorth(Section):
    """Permutation importance of the covariates of a model of places."""

    name = "covariates"
    title = "Importance of covariates"
    shapes = ("codes", "pairs")

    def applies(self, context: Context) -> bool:
        if context.folder is None or not is_about_places(context) or len(PlaceAnswers.of(context)) < LEAST_PLACES:
            return False
        return self._model(context) is not None

    def _model(self, context: Context) -> PlaceModel | None:
        try:
            opened = PlaceModel.open(context.folder or "", str(context.first.run.data))
        except FieldmarkError:
            return None
        return opened if opened.method.names else None

    def render(self, context: Context) -> str:
        model = self._model(context)
        assert model is not None  # as `applies` saw to
        plain, worth, places = worths(model, context)
        return render(
            "sections/covariates.html.j2",
            context=context,
            worth=worth[:SHOWN],
            left_out=max(len(worth) - SHOWN, 0),
            places=places,
            plain=plain,
            shuffles=SHUFFLES,
            measure=_measure(context),
            figure=_drawn(worth[:SHOWN], _measure(context)),
        )


def _measure(context: Context) -> str:
    return "mean ROC-AUC over species" if context.many_labels else f"share with the species among the first {LISTED}"


def worths(model: PlaceModel, context: Context) -> tuple[float, list[CovariateLoss], int]:
    """The score of some scored places, and what shuffling each covariate takes off it, the most valuable first."""
    answers = PlaceAnswers.of(context)
    part = {"test": context.opened.view.test, "val": context.opened.view.val}[context.part]
    assert part is not None  # it was scored
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.permutation(len(answers))[:MOST_PLACES])
    rows = answers.rows[chosen]
    points = model.method.points(model.arrays, model.model.supply.supply(part.take(rows)))
    truth = answers.holds[chosen] if context.many_labels else context.truth[rows]
    plain = _score(model.method, model, points, truth)
    found = []
    for column, name in enumerate(model.covariates[: points.table.shape[1]]):
        losses = []
        for _ in range(SHUFFLES):
            table = points.table.copy()
            table[:, column] = rng.permutation(table[:, column])
            losses.append(plain - _score(model.method, model, replace(points, table=table), truth))
        found.append(CovariateLoss(name, float(np.mean(losses)), float(np.std(losses))))
    return plain, sorted(found, key=lambda one: -one.loss), len(rows)


def _score(method: OnPlaces, model: PlaceModel, points: Points, truth: NDArray[Any]) -> float:
    chances = model.chances(points)
    if method.several:
        item, cls = np.divmod(np.arange(chances.size), chances.shape[1])
        return mean_roc_auc(item.astype(np.int32), cls.astype(np.int32), chances.ravel(), truth.ravel())
    number = min(LISTED, chances.shape[1])
    first = np.argpartition(-chances, number - 1, axis=1)[:, :number]
    return float((first == truth[:, None]).any(axis=1).mean())


def _paint(figure: Figure, *, worth: list[CovariateLoss], measure: str) -> None:
    axes = figure.subplots()
    places = np.arange(len(worth))[::-1]
    axes.barh(places, [one.loss for one in worth], color=TINT, height=0.7)
    axes.set_yticks(places, [one.name for one in worth])
    axes.grid(True, axis="x")
    axes.grid(False, axis="y")
    axes.set_title(f"What shuffling it takes off the {measure}", fontsize=12.5)


def _drawn(worth: list[CovariateLoss], measure: str) -> Markup:
    return draw(
        "covariate-worth",
        partial(_paint, worth=worth, measure=measure),
        width=WIDTH,
        height=90 + 26 * len(worth),
        description=f"Bars: by how much the {measure} falls when one covariate is shuffled, the most first.",
    )


SECTION = CovariateWorth()
