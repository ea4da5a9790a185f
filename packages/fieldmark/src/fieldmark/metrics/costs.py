"""Metrics that price mistakes unequally; lower is better, except for `venom_score`.

Labels are codes from 0 with -1 for unknown. `dangerous` and `venomous` hold one flag per class; unknown counts as not
dangerous, as an answer and, where nobody says otherwise, as a truth. Values are returned unrounded; where organizers
round, the docstring says how.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fieldmark.metrics.classification import (
    Codes,
    Mask,
    Values,
    macro_f1,
    macro_f1_without_each_unit,
    mean_without_each_unit,
    unknown_as_class,
)

Track = Literal[1, 2, 3, 4]


def mean_cost(truth: Codes, predicted: Codes, *, cost: NDArray[np.float64]) -> float:
    """The mean over items of W[truth, answer], for any cost matrix W that fits in memory.

    Args:
        truth: The true class of each item.
        predicted: The first answer for each item.
        cost: One row per true class, one column per answer. Where -1 occurs it addresses the last row or column, which
            then belongs to unknown.

    >>> mean_cost(np.array([0, 1, -1]), np.array([1, 1, 0]), cost=np.array([[0.0, 1, 2], [3, 0, 4], [10, 10, 0]]))
    3.6666666666666665
    """
    return float(cost[truth, predicted].mean())


def mean_cost_without_each_unit(truth: Codes, predicted: Codes, unit: Codes, *, cost: NDArray[np.float64]) -> Values:
    """The mean cost with each unit left out in turn."""
    return mean_without_each_unit(np.asarray(cost[truth, predicted], dtype=np.float64), unit)


def poison_cost(
    truth: Codes,
    predicted: Codes,
    *,
    dangerous: Mask,
    truly_dangerous: Mask | None = None,
    c_p: float = 100.0,
    c_e: float = 1.0,
) -> float:
    """The mean over items of W^{p/e}: what confusing poisonous and edible species costs.

    W = 0 where truth and answer are alike, `c_p` where a dangerous species is taken for a harmless one, and `c_e` where
    a harmless one is taken for dangerous. Confusing two species of a kind costs nothing.

    Args:
        truth: The true class of each item.
        predicted: The first answer for each item.
        dangerous: One flag per class.
        truly_dangerous: One flag per item, for truths that are no class: whether a species is dangerous does not
            depend on whether it is known. None takes the flag of the true class, and unknown as harmless.
        c_p: What a dangerous species taken for a harmless one costs.
        c_e: What a harmless species taken for a dangerous one costs.

    >>> poison_cost(np.array([0, 1, 1]), np.array([1, 0, 1]), dangerous=np.array([True, False]))
    33.666666666666664
    >>> death_cap = np.array([True])  # not among the classes, and taken for an edible one
    >>> poison_cost(np.array([-1]), np.array([1]), dangerous=np.array([True, False]), truly_dangerous=death_cap)
    100.0
    """
    return float(_poison_costs(truth, predicted, dangerous, c_p, c_e, truly_dangerous).mean())


def poison_cost_without_each_unit(
    truth: Codes,
    predicted: Codes,
    unit: Codes,
    *,
    dangerous: Mask,
    truly_dangerous: Mask | None = None,
    c_p: float = 100.0,
    c_e: float = 1.0,
) -> Values:
    """The mean poison cost with each unit left out in turn."""
    return mean_without_each_unit(_poison_costs(truth, predicted, dangerous, c_p, c_e, truly_dangerous), unit)


def unknown_cost(
    truth: Codes, predicted: Codes, *, c_u: float = 10.0, c_k: float = 1.0, c_known_as_unknown: float | None = None
) -> float:
    """The mean over items of W^{k/u}: what missing the unknown costs.

    W = 0 for a right answer, `c_u` where an unknown item gets a known class, and `c_k` for any other mistake. The paper
    prices a known item taken for unknown like any other mistake (None); the organizers' evaluator of 2023 and 2024
    takes 0.1 for it.

    >>> unknown_cost(np.array([-1, 0, 0, 0]), np.array([0, -1, 1, 0]))
    3.0
    >>> unknown_cost(np.array([-1, 0, 0, 0]), np.array([0, -1, 1, 0]), c_known_as_unknown=0.1)
    2.775
    """
    return float(_unknown_costs(truth, predicted, c_u, c_k, c_known_as_unknown).mean())


def unknown_cost_without_each_unit(
    truth: Codes,
    predicted: Codes,
    unit: Codes,
    *,
    c_u: float = 10.0,
    c_k: float = 1.0,
    c_known_as_unknown: float | None = None,
) -> Values:
    """The mean cost of missing the unknown with each unit left out in turn."""
    return mean_without_each_unit(_unknown_costs(truth, predicted, c_u, c_k, c_known_as_unknown), unit)


def fungiclef_track(truth: Codes, predicted: Codes, *, dangerous: Mask, track: Track) -> float:
    """The tracks of FungiCLEF 2023 and 2024, with one item per observation.

    1. Classification error: the share of wrong answers, where unknown is a class like any other.
    2. Poison cost with 100 and 1.
    3. The sum of the two.
    4. Error with a price for unknown: 10 for an unknown item that gets a known class, 0.1 for a known one taken for
       unknown, 1 for any other mistake.

    The organizers round to four decimals.

    >>> truth, predicted, dangerous = np.array([0, 1, -1, 2]), np.array([1, -1, -1, 2]), np.array([True, False, False])
    >>> [fungiclef_track(truth, predicted, dangerous=dangerous, track=track) for track in (1, 2, 3, 4)]
    [0.5, 25.0, 25.5, 0.275]
    """
    return float(_track_costs(truth, predicted, dangerous, track).mean())


def fungiclef_track_without_each_unit(
    truth: Codes, predicted: Codes, unit: Codes, *, dangerous: Mask, track: Track
) -> Values:
    """A track of FungiCLEF with each unit left out in turn."""
    return mean_without_each_unit(_track_costs(truth, predicted, dangerous, track), unit)


# What SnakeCLEF 2023 charges for a mistake, by whether the true species and the answer are venomous.
_VENOM_COSTS = np.array([[1.0, 2.0], [5.0, 2.0]])


def venom_cost(truth: Codes, predicted: Codes, *, venomous: Mask) -> float:
    """Track 2 of SnakeCLEF 2023: the *sum* over observations of what a mistake costs.

    A harmless snake taken for another harmless one costs 1, for a venomous one 2; a venomous snake taken for a harmless
    one costs 5, for another venomous one 2.

    >>> venom_cost(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 2]), venomous=np.array([False, True, True]))
    9.0
    """
    return float(_venom_costs(truth, predicted, venomous).sum())


def venom_cost_without_each_unit(truth: Codes, predicted: Codes, unit: Codes, *, venomous: Mask) -> Values:
    """The summed venom cost with each unit left out in turn: the sum over the other units."""
    costs = _venom_costs(truth, predicted, venomous)
    return np.asarray(costs.sum() - np.bincount(unit, weights=costs))


def venom_score(truth: Codes, predicted: Codes, *, venomous: Mask, rounded: bool = False) -> float:
    """Track 1 of SnakeCLEF 2023, in percent; higher is better.

    (F + 1 (100 - p_hh) + 2 (100 - p_hv) + 5 (100 - p_vh) + 2 (100 - p_vv)) / 11, where F is macro-F1 over the union of
    truth and answers, and p_ab is the share of snakes of kind a (harmless, venomous) that get a wrong species of kind
    b; all in percent. NaN where the truth lacks a kind. A true -1 stands for a harmless snake that is not counted among
    the harmless ones a share is taken of, as in the organizers' code.

    Args:
        truth: The true species of each observation.
        predicted: The answer for each.
        venomous: One flag per class.
        rounded: Whether F, each share and the score are rounded to two decimals, as the organizers do.

    >>> truth, predicted, venomous = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([False, True])
    >>> round(venom_score(truth, predicted, venomous=venomous), 3)
    63.636
    """
    digits = 2 if rounded else None
    n_classes = len(venomous)
    coded, given = (unknown_as_class(labels, n_classes=n_classes) for labels in (truth, predicted))
    f1 = 100 * macro_f1(coded, given, n_classes=n_classes + 1, over="union")
    mistakes, of_kind = _venom_counts(truth, predicted, np.zeros_like(truth), venomous)
    if (of_kind == 0).any():
        return float("nan")
    shares = 100 * mistakes[0] / of_kind[0, :, None]
    if digits is not None:
        f1, shares = np.round(f1, digits), np.round(shares, digits)
    score = (f1 + (_VENOM_COSTS * (100 - shares)).sum()) / (1 + _VENOM_COSTS.sum())
    return float(score if digits is None else np.round(score, digits))


def venom_score_without_each_unit(
    truth: Codes, predicted: Codes, unit: Codes, *, venomous: Mask, rounded: bool = False
) -> Values:
    """Track 1 of SnakeCLEF 2023 with each unit left out in turn; NaN where a kind is lost with it.

    The values are never `rounded`: what one observation changes would drown in the rounding.
    """
    n_classes = len(venomous)
    coded, given = (unknown_as_class(labels, n_classes=n_classes) for labels in (truth, predicted))
    f1 = 100 * macro_f1_without_each_unit(coded, given, unit, n_classes=n_classes + 1, over="union")
    mistakes, of_kind = _venom_counts(truth, predicted, unit, venomous)
    mistakes, of_kind = mistakes.sum(axis=0) - mistakes, of_kind.sum(axis=0) - of_kind
    shares = 100 * mistakes / np.where(of_kind > 0, of_kind, np.nan)[:, :, None]
    return np.asarray((f1 + (_VENOM_COSTS * (100 - shares)).sum(axis=(1, 2))) / (1 + _VENOM_COSTS.sum()))


def _flagged(labels: Codes, flags: Mask) -> Mask:
    """The flag of each label's class; unknown has none."""
    # The flag appended at the end is what -1 addresses.
    return np.append(np.asarray(flags, dtype=bool), False)[labels]


def _poison_costs(
    truth: Codes, predicted: Codes, dangerous: Mask, c_p: float, c_e: float, truly_dangerous: Mask | None = None
) -> Values:
    said_dangerous = _flagged(predicted, dangerous)
    is_dangerous = _flagged(truth, dangerous) if truly_dangerous is None else np.asarray(truly_dangerous, dtype=bool)
    return np.where(is_dangerous & ~said_dangerous, c_p, np.where(~is_dangerous & said_dangerous, c_e, 0.0))


def _unknown_costs(truth: Codes, predicted: Codes, c_u: float, c_k: float, c_known_as_unknown: float | None) -> Values:
    as_unknown = c_k if c_known_as_unknown is None else c_known_as_unknown
    mistake = np.where(truth < 0, c_u, np.where(predicted < 0, as_unknown, c_k))
    return np.asarray(np.where(truth == predicted, 0.0, mistake), dtype=np.float64)


def _track_costs(truth: Codes, predicted: Codes, dangerous: Mask, track: Track) -> Values:
    error: Values = (truth != predicted).astype(np.float64)
    if track == 1:
        return error
    if track == 4:
        return _unknown_costs(truth, predicted, 10.0, 1.0, 0.1)
    poison = _poison_costs(truth, predicted, dangerous, 100.0, 1.0)
    return poison if track == 2 else error + poison


def _venom_costs(truth: Codes, predicted: Codes, venomous: Mask) -> Values:
    kinds = _flagged(truth, venomous).astype(np.int8), _flagged(predicted, venomous).astype(np.int8)
    return np.asarray(np.where(truth == predicted, 0.0, _VENOM_COSTS[kinds]), dtype=np.float64)


def _venom_counts(
    truth: Codes, predicted: Codes, unit: Codes, venomous: Mask
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per unit: mistakes by kind of truth and kind of answer, and observations by kind of truth (unknown left out)."""
    n_units = int(unit.max()) + 1
    kind, said = _flagged(truth, venomous), _flagged(predicted, venomous)
    wrong, known = truth != predicted, truth >= 0
    mistakes = np.bincount((unit * 4 + kind * 2 + said)[wrong], minlength=4 * n_units).reshape(n_units, 2, 2)
    of_kind = np.bincount((unit * 2 + kind)[known], minlength=2 * n_units).reshape(n_units, 2)
    return mistakes, of_kind
