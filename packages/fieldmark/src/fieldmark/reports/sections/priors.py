"""What the prior of a run did, and what a softmax after the product would have done to its log loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.metrics.classification import mean_without_each_unit
from fieldmark.metrics.probabilistic import log_loss
from fieldmark.reports.markup import render
from fieldmark.reports.section import Context, Section
from fieldmark.runs.label_scores import log_softmax
from fieldmark.scoring import LEVEL, Score
from fieldmark.stats.intervals import interval, pseudo_values

PRIORS = ("prior", "country-prior", "month-prior")
EPS = 1e-15


@dataclass(frozen=True)
class PriorUsed:
    """One context of a prior: where it comes from, how much it counts, how many items it says something about."""

    context: str
    source: str
    exponent: float
    informed: int | None


@dataclass(frozen=True)
class SoftmaxEffect:
    """The log loss as stated, and after one more softmax over the probabilities.

    Args:
        stated: As the run states it.
        softened: After the softmax.
        uniform: That of the same probability for every label: ln(labels).
        same_answers: Whether every first answer stays the same.
    """

    stated: Score
    softened: Score
    uniform: float
    same_answers: bool


class PriorSection(Section):
    """The priors of a run with their exponents and losses on val, and the effect of a softmax after the product."""

    name = "priors"
    title = "Priors"

    def applies(self, context: Context) -> bool:
        return context.probabilities is not None and any(step["step"] in PRIORS for step in context.first.run.steps)

    def render(self, context: Context) -> str:
        assert context.probabilities is not None  # applies() said so
        steps = [step for step in context.first.run.steps if step["step"] in PRIORS]
        effect = None
        if (context.truth >= 0).all():
            effect = softmax_effect(context.probabilities.astype(np.float64), context.truth, context.unit)
        return render(
            "sections/priors.html.j2",
            context=context,
            losses=[step["log_loss"] for step in steps if step.get("log_loss")],
            priors=[one for step in steps for one in priors_used(step, context)],
            effect=effect,
            labels=len(context.labels),
        )


def priors_used(step: Mapping[str, Any], context: Context) -> list[PriorUsed]:
    """The contexts of one step."""
    used = []
    for source, exponent in zip(step["sources"], step["exponents"], strict=True):
        column = source.get("context", "")
        informed = None
        if column in context.items.columns:
            informed = int(context.items[column].is_not_null().sum())
        used.append(PriorUsed(column, _words(source), exponent, informed))
    return used


def _words(source: Mapping[str, Any]) -> str:
    if source["source"] == "presence":
        return f"table of presence, floor {source['floor']:g}, {source['listed']} labels listed"
    if source["source"] == "counts":
        return f"counts of {source['observations']:,.0f} observations, strength {source['lent']:g}"
    return str(source["source"])


def softmax_effect(
    probabilities: NDArray[np.float64], truth: NDArray[np.int32], unit: NDArray[np.int32]
) -> SoftmaxEffect:
    """What one more softmax over probabilities does: all lie between 0 and 1, so that little difference is left.

    >>> sure = np.eye(783)[:2]
    >>> effect = softmax_effect(sure, np.array([0, 1], np.int32), np.array([0, 1], np.int32))
    >>> round(effect.stated.value, 3), round(effect.softened.value, 3), round(effect.uniform, 3), effect.same_answers
    (0.0, 5.665, 6.663, True)
    """
    softened = np.exp(log_softmax(probabilities))
    return SoftmaxEffect(
        _loss(probabilities, truth, unit),
        _loss(softened, truth, unit),
        float(np.log(probabilities.shape[1])),
        bool((softened.argmax(axis=1) == probabilities.argmax(axis=1)).all()),
    )


def _loss(probabilities: NDArray[np.float64], truth: NDArray[np.int32], unit: NDArray[np.int32]) -> Score:
    value = log_loss(truth, probabilities, eps=EPS, renormalize="before clipping")
    sums = probabilities.sum(axis=1)
    each = -np.log(np.clip(probabilities[np.arange(len(truth)), truth] / sums, EPS, 1 - EPS))
    numbered = np.unique(unit, return_inverse=True)[1].astype(np.int32)
    bounds = interval(
        value, pseudo_values(value, mean_without_each_unit(each, numbered)), level=LEVEL, bounds=(0.0, np.inf)
    )
    return Score(value, bounds.low, bounds.high, bounds.method, bounds.reason)


SECTION = PriorSection()
