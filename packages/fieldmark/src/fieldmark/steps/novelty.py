"""How strange an item looks to a classifier: pure functions of logits and features, higher for stranger.

Scores of the first kind read the logits alone; the others compare an item with the training features. All of them come
from one pass over the network. Tested against pytorch-ood.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldmark.work.large_arrays import (
    class_sums,
    matrix_blocks,
    principal_squares,
    row_blocks,
    row_by_row,
    taken_rows,
)

Floats = NDArray[np.float64]
Array = NDArray[Any]

# How far covariances are drawn towards a ball, in the space where classes are round.
ROUND_SHRINKAGE = 0.2
# Training items that are kept to find the nearest of; of more, some of each class.
MOST_NEIGHBORS = 20_000
# Items whose distances to all classes or to all training items are held at once.
BLOCK_ITEMS = 1024


def max_softmax(logits: Array) -> Floats:
    """1 - max p: Hendrycks and Gimpel, "A baseline for detecting misclassified and OOD examples" (2017).

    >>> max_softmax(np.array([[0.0, 0.0], [0.0, 50.0]])).round(3)
    array([0.5, 0. ])
    """
    rest = np.exp(logits - logits.max(axis=1, keepdims=True).astype(np.float64))
    rest[np.arange(len(rest)), logits.argmax(axis=1)] = 0
    beside = rest.sum(axis=1)  # 1 - p of sharp answers, which the difference would round to the same zero
    return np.asarray(beside / (1 + beside))


def max_logit(logits: Array) -> Floats:
    """-max z: Hendrycks et al., "Scaling out-of-distribution detection for real-world settings" (2022)."""
    return np.asarray(-logits.max(axis=1), dtype=np.float64)


def energy(logits: Array) -> Floats:
    """-log sum exp z: Liu et al., "Energy-based out-of-distribution detection" (2020)."""
    highest = logits.max(axis=1, keepdims=True).astype(np.float64)
    return np.asarray(-(highest[:, 0] + np.log(np.exp(logits - highest).sum(axis=1))))


def entropy(logits: Array) -> Floats:
    """-sum p log p, the entropy of the stated probabilities."""
    log_probability = logits + energy(logits)[:, None]
    return np.asarray(-(np.exp(log_probability) * np.maximum(log_probability, -700)).sum(axis=1))


def nearest_mean(features: Array, means: Array) -> Floats:
    """The Euclidean distance to the nearest class mean, as in the organizers' code."""
    return np.sqrt(_over_blocks(lambda block: _squared_distances(block, means).min(axis=1), features))


def neighbor_distance(features: Array, stored: Array, k: int) -> Floats:
    """The distance to the k-th nearest training item, all of unit length.

    Sun et al., "Out-of-distribution detection with deep nearest neighbors" (2022).
    """
    k = min(k, len(stored))

    def kth(block: Array) -> Array:
        asked, highest = unit(block), np.zeros((len(block), 0), dtype=np.float32)
        for some in matrix_blocks(len(stored), max(stored.shape[1], len(block))):
            highest = np.concatenate([highest, asked @ unit(stored[some]).T], axis=1)
            highest = np.partition(highest, max(highest.shape[1] - k, 0), axis=1)[:, -k:]
        return np.asarray(np.sqrt(np.maximum(2 - 2 * highest.min(axis=1), 0)))

    return _over_blocks(kth, features)


class Whitening(NamedTuple):
    """W with W W^T the inverse of a covariance: under it, Mahalanobis distances are Euclidean.

    Args:
        axes: The axes along which training items differ, one column each.
        gains: What rows are multiplied by along each, on top of `rest`.
        rest: What they are multiplied by in all directions; 0 where the axes are all there are.
    """

    axes: Array
    gains: Array
    rest: Array

    def __call__(self, rows: Array) -> Array:
        along = rows @ self.axes
        along *= self.gains
        return np.asarray(rows * self.rest + along @ self.axes.T if self.rest else along)

    def kept(self, name: str) -> dict[str, Array]:
        """Its arrays, as they are kept under a name."""
        return {f"{name}.{part}": np.asarray(array, dtype=np.float32) for part, array in self._asdict().items()}

    @classmethod
    def of(cls, learned: Mapping[str, Array], name: str) -> Whitening:
        """The one that was kept under a name; models of before keep a matrix."""
        if name in learned:
            return cls(learned[name], np.ones(1, np.float32), np.zeros((), np.float32))
        return cls(*(learned[f"{name}.{part}"] for part in cls._fields))


def mahalanobis(features: Array, whitening: Whitening, whitened_means: Array) -> Floats:
    """The squared Mahalanobis distance to the nearest class mean under one covariance.

    Lee et al., "A simple unified framework for detecting out-of-distribution samples" (2018).
    """
    return _over_blocks(lambda block: _squared_distances(whitening(block), whitened_means).min(axis=1), features)


def relative_mahalanobis(features: Array, learned: Mapping[str, Array]) -> Floats:
    """How much farther from the nearest class than from all classes together: unit-length features, two covariances.

    Ren et al., "A simple fix to Mahalanobis distance for improving near-OOD detection" (2021).
    """
    rows = unit(features)
    nearest = mahalanobis(rows, Whitening.of(learned, "round"), learned["round_means"])
    return nearest - mahalanobis(rows, Whitening.of(learned, "overall"), learned["overall_mean"])


def round_neighbor(features: Array, learned: Mapping[str, Array]) -> Floats:
    """The distance to the nearest training item, by direction, in the space where classes are round."""
    return neighbor_distance(_made_round(features, learned), learned["round_stored"], 1)


def _made_round(features: Array, learned: Mapping[str, Array]) -> Array:
    return np.asarray(Whitening.of(learned, "round")(unit(features)) - learned["round_center"])


def residual(features: Array, origin: Array, principal: Array) -> Floats:
    """The length of what lies outside the principal subspace of the training features, seen from an origin."""

    def outside(block: Array) -> Array:
        apart = block - origin
        along = apart @ principal
        squares = [np.einsum("ij,ij->i", one, one, dtype=np.float64) for one in (apart, along)]
        return np.asarray(np.sqrt(np.maximum(squares[0] - squares[1], 0)))

    return _over_blocks(outside, features)


def _residual(features: Array, learned: Mapping[str, Array]) -> Floats:
    if "left" in learned:  # models of before keep the other axes
        return _over_blocks(
            lambda block: np.linalg.norm((block - learned["origin"]) @ learned["left"], axis=1), features
        )
    return residual(features, learned["origin"], learned["principal"])


def vim(logits: Array, residuals: Array, alpha: float) -> Floats:
    """Returns alpha |residual| - log sum exp z: Wang et al., "ViM: OOD with virtual-logit matching" (2022)."""
    return np.asarray(alpha * residuals + energy(logits))


def class_means(features: Array, truth: Array) -> Floats:
    """The mean of each class that occurs, in the order of their codes."""
    classes, place = np.unique(truth, return_inverse=True)
    return np.asarray(class_sums(np.asarray, features, place, len(classes)) / np.bincount(place)[:, None])


def whitening(features: Array, truth: Array, *, shrinkage: float | None = None) -> tuple[Whitening, Floats]:
    """The map under which the covariance within classes becomes the identity, and the class means under it.

    Args:
        features: Training features.
        truth: Their classes.
        shrinkage: How far the covariance is drawn towards a multiple of the identity; None takes the oracle
            approximation of Chen et al. (2010), which keeps it invertible with fewer items than features.
    """
    means = class_means(features, truth)
    place, (n, d) = np.unique(truth, return_inverse=True)[1], features.shape
    squares, axes = principal_squares(lambda block: features[block] - means[place[block]], n, d)
    values = squares / n
    average = float(values.sum()) / d
    if shrinkage is None:
        squared = float((values**2).sum()) / d
        bottom = (n + 1) * (squared - average**2)
        shrinkage = 1.0 if bottom <= 0 else min((squared + d * average**2) / bottom, 1.0)

    def gain(variance: Floats) -> Floats:
        spread = (1 - shrinkage) * variance + shrinkage * average
        return np.asarray(1 / np.sqrt(np.maximum(spread, 1e-10 * max(average, 1e-10))))

    rest = np.zeros(()) if axes.shape[1] == d else gain(np.zeros(()))
    white = Whitening(axes, gain(values) - rest, rest)
    return white, white(means)


def principal_axes(features: Array, origin: Array, dimension: int) -> Floats:
    """The first `dimension` principal directions, seen from the origin, one column each."""
    axes = principal_squares(lambda block: features[block] - origin, *features.shape)[1]
    return np.asarray(axes[:, -dimension:])


def matched_scale(largest_logits: Array, residuals: Array) -> float:
    """The alpha of ViM: mean of the largest training logit over the mean residual."""
    return float(largest_logits.mean() / max(float(residuals.mean()), 1e-12))


def around_zero(logits: Array) -> Floats:
    """Logits of mean zero in each row, whose largest is never negative.

    A classifier determines its logits up to a number per item; those of softmax regression come with mean zero, so
    that nothing changes there. Log-probabilities are never positive, and would turn the sign of the alpha of ViM.
    """
    return np.asarray(logits - logits.mean(axis=1, keepdims=True, dtype=np.float64))


def logit_origin(weights: Array, bias: Array) -> Floats:
    """The point from which logits weights @ x + bias look as if they had no bias: -pinv(weights) bias."""
    return np.asarray(-np.linalg.pinv(weights.astype(np.float64)) @ bias)


class Seen(NamedTuple):
    """An item as the scores see it: rows of logits and features, and what was learned from train."""

    logits: Array
    features: Array
    learned: Mapping[str, Array]


# Every score under its name, from what `learn` keeps. The order decides between scores that are equally good on val.
SCORES: dict[str, Callable[[Seen], Floats]] = {
    "max-softmax": lambda seen: max_softmax(seen.logits),
    "max-logit": lambda seen: max_logit(seen.logits),
    "energy": lambda seen: energy(seen.logits),
    "entropy": lambda seen: entropy(seen.logits),
    "nearest-mean": lambda seen: nearest_mean(seen.features, seen.learned["means"]),
    "knn": lambda seen: neighbor_distance(seen.features, seen.learned["stored"], seen.learned["k"].item()),
    "mahalanobis": lambda seen: mahalanobis(
        seen.features, Whitening.of(seen.learned, "white"), seen.learned["white_means"]
    ),
    "residual": lambda seen: _residual(seen.features, seen.learned),
    "vim": lambda seen: vim(seen.logits, SCORES["residual"](seen), seen.learned["alpha"].item()),
    "relative-mahalanobis": lambda seen: relative_mahalanobis(seen.features, seen.learned),
    "round-neighbor": lambda seen: round_neighbor(seen.features, seen.learned),
}


def learn(
    names: tuple[str, ...], features: Array, truth: Array, largest_logits: Callable[[], Array], origin: Array, k: int
) -> dict[str, Array]:
    """What the named scores must keep of the training items.

    Args:
        names: The scores.
        features: Those of the training items.
        truth: Their labels.
        largest_logits: Gives the largest logit of each, where a score needs it; scaled as those that scores will see,
            and in rows of mean zero (`around_zero`).
        origin: Where ViM looks from.
        k: The neighbor whose distance the score `knn` takes.
    """
    kept: dict[str, Array] = {}
    if "nearest-mean" in names:
        kept["means"] = class_means(features, truth).astype(np.float32)
    if "knn" in names:
        kept |= {"stored": row_by_row(lambda rows: rows.astype(np.float16), features), "k": np.array(k)}
    if "mahalanobis" in names:
        white, means = whitening(features, truth)
        kept |= {**white.kept("white"), "white_means": means.astype(np.float32)}
    if "residual" in names or "vim" in names:
        # The paper takes 512 directions of about 1,000; with few training items they would hold everything.
        dimension = min(512, features.shape[1] // 2, max((len(features) - 1) // 2, 1))
        principal = principal_axes(features, origin, dimension)
        # Logits that are all alike say nothing: any alpha above zero leaves the residual.
        alpha = matched_scale(largest_logits(), residual(features, origin, principal)) or 1.0
        kept |= {"origin": origin.astype(np.float32), "alpha": np.array(alpha)}
        kept |= {"principal": principal.astype(np.float32)}
    if "relative-mahalanobis" in names or "round-neighbor" in names:
        rows = row_by_row(unit, features)
        white, means = whitening(rows, truth, shrinkage=ROUND_SHRINKAGE)
        kept |= {**white.kept("round"), "round_center": (means.mean(axis=0)).astype(np.float32)}
        if "relative-mahalanobis" in names:
            overall, mean = whitening(rows, np.zeros_like(truth), shrinkage=ROUND_SHRINKAGE)
            kept |= {**overall.kept("overall"), "overall_mean": mean.astype(np.float32)}
            kept["round_means"] = means.astype(np.float32)
        if "round-neighbor" in names:
            few = rows if len(rows) <= MOST_NEIGHBORS else taken_rows(rows, _of_each_class(truth, MOST_NEIGHBORS))
            kept["round_stored"] = row_by_row(lambda some: unit(_made_round(some, kept)).astype(np.float16), few)
    return kept


def _of_each_class(truth: Array, most: int) -> NDArray[np.int64]:
    """At most so many items, evenly from those in the order of their classes."""
    order = np.argsort(truth, kind="stable")
    return np.sort(order[np.linspace(0, len(order) - 1, most).round().astype(np.int64)])


def unit(features: Array) -> Array:
    """Rows scaled to length one; rows of zeros stay zero."""
    rows = np.asarray(features, dtype=np.float32)
    # In blocks, since a copy of all rows is squared otherwise.
    lengths = np.empty((len(rows), 1), dtype=np.float32)
    for block in row_blocks(rows):
        lengths[block] = np.linalg.norm(rows[block], axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, np.finfo(np.float32).tiny))


def _squared_distances(rows: Array, points: Array) -> Array:
    # Long vectors at small distances: single precision would lose the difference.
    rows, points = rows.astype(np.float64), points.astype(np.float64)
    squares = (rows**2).sum(axis=1)[:, None] - 2 * rows @ points.T + (points**2).sum(axis=1)
    return np.asarray(np.maximum(squares, 0))


def _over_blocks(score: Callable[[Array], Array], rows: Array) -> Floats:
    """A score of each row, a block of rows at a time, so that memory does not grow with items times classes."""
    blocks = [score(rows[start : start + BLOCK_ITEMS]) for start in range(0, len(rows), BLOCK_ITEMS)]
    return np.concatenate(blocks).astype(np.float64) if blocks else np.zeros(0)
