"""What metrics rest on: how far each item would move the score if it alone went from right to wrong.

Each function takes what the metric reads and the number of items, and returns one weight per item; only ratios matter.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks.measures.readers import Arguments

Weights = NDArray[np.float64]
CostKind = Literal["dangerous", "venomous", "unknown"]


def on_chosen(arguments: Arguments, n_items: int) -> Weights:
    """Those that `among` flags, alike."""
    return np.asarray(arguments["among"], dtype=np.float64)


def on_classes(arguments: Arguments, n_items: int) -> Weights:
    """Every true class alike, and in it every item; unknown (-1) is a class."""
    return _alike_in(arguments["truth"])


def on_known(arguments: Arguments, n_items: int) -> Weights:
    """The known items, alike."""
    return (np.asarray(arguments["truth"]) >= 0).astype(np.float64)


def on_unknown(arguments: Arguments, n_items: int) -> Weights:
    """The unknown items, alike."""
    return (np.asarray(arguments["truth"]) < 0).astype(np.float64)


def on_classes_of_groups(arguments: Arguments, n_items: int) -> Weights:
    """Every group alike, in it every true class, and in that every item."""
    truth, group = np.asarray(arguments["truth"]), np.asarray(arguments["group"])
    pair = group.astype(np.int64) * (int(truth.max()) + 2) + truth + 1
    _, first, number = np.unique(pair, return_index=True, return_inverse=True)
    classes = np.bincount(group[first], minlength=int(group.max()) + 1)
    return np.asarray(1 / (np.bincount(number)[number] * classes[group]))


def on_groups_alike(arguments: Arguments, n_items: int) -> Weights:
    """Every group of items alike, and in it every item."""
    return _alike_in(arguments["group"])


def on_known_and_unknown(arguments: Arguments, n_items: int) -> Weights:
    """Half on the known items, half on the others."""
    return _alike_in(arguments["is_known"])


def on_individuals(arguments: Arguments, n_items: int) -> Weights:
    """Every dataset alike, in it known and new individuals half and half, and in that every photo of an individual."""
    where = np.asarray(arguments["dataset"]) * 2 + np.asarray(arguments["is_new"])
    _, first, number = np.unique(arguments["identity"], return_index=True, return_inverse=True)
    return np.asarray(1 / (np.bincount(where[first])[where] * np.bincount(number)[number]))


def on_presences_and_absences(arguments: Arguments, n_items: int) -> Weights:
    """Every species that has both alike: half on its presences, half on its absences."""
    cls, present = np.asarray(arguments["cls"]), np.asarray(arguments["present"])
    n_classes = int(cls.max(initial=-1)) + 1
    there, away = (np.bincount(cls[kind], minlength=n_classes) for kind in (present, ~present))
    scored = ((there > 0) & (away > 0))[cls]
    weight = np.where(scored, 1 / np.maximum(np.where(present, there[cls], away[cls]), 1), 0.0)
    return np.asarray(np.bincount(arguments["item"], weights=weight, minlength=n_items), dtype=np.float64)


def on_decisions(arguments: Arguments, n_items: int) -> Weights:
    """As presences and absences; a species that lacks one of them rests on the other alone."""
    cls, holds = np.asarray(arguments["cls"]), np.asarray(arguments["holds"])
    weight = _alike_in(cls * 2 + holds)
    return np.asarray(np.bincount(arguments["item"], weights=weight, minlength=n_items), dtype=np.float64)


def on_true_segments(arguments: Arguments, n_items: int) -> Weights:
    """The segments with a true class, alike."""
    return (np.bincount(arguments["true_segment"], minlength=n_items) > 0).astype(np.float64)


def on_listed_pairs(arguments: Arguments, n_items: int) -> Weights:
    """Each item by its pairs, true or listed."""
    pairs = np.concatenate([arguments["item"], arguments["true_item"]])
    return np.bincount(pairs, minlength=n_items).astype(np.float64)


def on_pixels_of_parts(arguments: Arguments, n_items: int) -> Weights:
    """Every part alike, and in it the photos by its pixels."""
    union = np.asarray(arguments["union"], dtype=np.float64)
    union = union if arguments["background"] else union[:, [part != "background" for part in arguments["parts"]]]
    total = union.sum(axis=0)
    return np.asarray((union[:, total > 0] / total[total > 0]).sum(axis=1))


def on_costs(arguments: Arguments, n_items: int, *, kind: CostKind, dear: float, other: float) -> Weights:
    """Each item by the most that a mistake about it costs: `dear` for those of a kind, `other` for the others."""
    truth = np.asarray(arguments["truth"])
    if f"truly_{kind}" in arguments:  # said of each item, unknown species included
        return np.where(arguments[f"truly_{kind}"], dear, other)
    flags = truth < 0 if kind == "unknown" else np.append(np.asarray(arguments[kind], dtype=bool), False)[truth]
    return np.where(flags, dear, other)


def on_venom(arguments: Arguments, n_items: int) -> Weights:
    """Seven of eleven parts on venomous snakes, three on harmless ones, one on every species alike."""
    truth = np.asarray(arguments["truth"])
    venomous = np.append(np.asarray(arguments["venomous"], dtype=bool), False)[truth]
    known, classes = truth >= 0, _alike_in(truth)
    kinds = np.where(venomous, 7.0, 3.0) * _alike_in(np.where(known, venomous, 2)) * known
    return np.asarray(kinds + classes / classes.sum())


def _alike_in(group: NDArray[np.generic]) -> Weights:
    _, number = np.unique(group, return_inverse=True)
    return np.asarray(1 / np.bincount(number)[number])
