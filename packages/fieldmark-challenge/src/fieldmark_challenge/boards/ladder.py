"""The Ladder: a public board that cannot be climbed by guessing (Blum and Hardt, ICML 2015).

A team sees a new score only when it beats the best one it has seen by more than chance, or by a fixed step. What is
shown is rounded; a run is compared with the unrounded score of the one before, except by a fixed step. Everything else
answers "no better than before", so that a flood of submissions tells little about the hidden labels.

More than chance: a paired t test over units at the level of one in a thousand, with one degree of freedom less than
there are units that carry the difference of the two runs. Where classes or pixels are pooled, every unit moves a little
when a few are answered in another way; it counts as much as it moves. The parameter-free mechanism of the paper asks
for one standard error; in a mean over items a single right guess is just more than that, so that it would tell every
label, one run at a time.

There is no state: what a team has been shown follows from its scorecards in the order they were submitted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from fieldmark.benchmarks.declarations import Metric
from fieldmark.scoring import Score, Scorecard
from fieldmark.stats.concentrated import contributing_units
from fieldmark_challenge.boards.leaderboard import BASELINE, Entrant

LEVEL = 0.001


@dataclass(frozen=True)
class Released:
    """What a team is told after one submission.

    Args:
        value: The best score released so far, rounded; None before the first.
        improved: Whether this submission changed it.
        of: The place in the sequence of the submission it belongs to.
    """

    value: float | None
    improved: bool
    of: int | None


def release(
    cards: Sequence[Scorecard], metric: Metric, *, step: float | None = None, level: float | None = LEVEL
) -> list[Released]:
    """What the Ladder tells a team, submission by submission.

    Args:
        cards: The scorecards of one team, in the order of acceptance.
        metric: What is released.
        step: The improvement that is asked for, to which released scores are rounded as well; without it that of the
            level, and scores are rounded to one over the number of units.
        level: How seldom a run that is no better may be called an improvement; None asks for one standard error.
    """
    told: list[Released] = []
    best: int | None = None
    shown: float | None = None
    sign = 1.0 if metric.higher_is_better else -1.0
    for place, card in enumerate(cards):
        value = card.metrics[metric.name].value
        held = None if best is None else cards[best]
        improved = not math.isnan(value)
        if improved and held is not None and shown is not None:
            before = shown if step is not None else held.metrics[metric.name].value
            improved = sign * (value - before) > _margin(card, held, metric, step, level)
        if improved:
            best, shown = place, _rounded(value, step or 1 / max(card.units, 1))
        told.append(Released(shown, improved, best))
    return told


def released_entrants(entrants: Sequence[Entrant], metric: Metric, *, step: float | None = None) -> list[Entrant]:
    """The entries that the Ladder lets onto a public board: the last improvement of each team, with its rounded score.

    Baselines are the organizer's own and pass. Only the primary metric is released; intervals are those of the
    released entry, moved to its rounded score.
    """
    passed = [one for one in entrants if one.unranked == BASELINE]
    by_team: dict[str, list[Entrant]] = {}
    for one in sorted(entrants, key=lambda one: one.accepted):
        if one.unranked != BASELINE:
            by_team.setdefault(one.team, []).append(one)
    for own in by_team.values():
        last = release([one.card for one in own], metric, step=step)[-1]
        if last.of is not None and last.value is not None:
            passed.append(_shown_as(own[last.of], metric, last.value))
    return passed


def _margin(card: Scorecard, held: Scorecard, metric: Metric, step: float | None, level: float | None) -> float:
    """By how much a new score must be better."""
    if step is not None:
        return step
    if metric.name not in card.pseudo or card.unit_ids != held.unit_ids:
        errors = 1.0 if level is None else float(stdtrit(1000, 1 - level))
        return errors / math.sqrt(max(card.units, 1))
    apart = card.pseudo[metric.name] - held.pseudo[metric.name]
    error = float(np.std(apart)) / math.sqrt(len(apart))
    if not math.isfinite(error):
        return math.inf
    if level is None:
        return error
    carrying = contributing_units(apart, center=0.0)
    return math.inf if carrying < 2 else error * float(stdtrit(carrying - 1, 1 - level))


def _rounded(value: float, grain: float) -> float:
    return float(round(value / grain) * grain)


def _shown_as(entrant: Entrant, metric: Metric, value: float) -> Entrant:
    score = entrant.card.metrics[metric.name]
    moved = value - score.value
    low, high = (
        None if bound is None else min(max(bound + moved, metric.bounds[0]), metric.bounds[1])
        for bound in (score.low, score.high)
    )
    shown = Score(value, low, high, score.interval, score.reason)
    pseudo = {name: values for name, values in entrant.card.pseudo.items() if name == metric.name}
    return replace(entrant, card=replace(entrant.card, metrics={metric.name: shown}, groups={}, pseudo=pseudo))
