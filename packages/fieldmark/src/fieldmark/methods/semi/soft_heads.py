"""Logistic regression on labels that may be soft and weigh differently; what all methods of this package fit.

    L(W) = sum_i w_i CE(t_i, softmax(x_i W)) + extra(W) + l2 / 2 |W|^2

over projected features; the bias is not penalized, and weights of labeled items sum to one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.methods.base import features_of, truth_of
from fieldmark.runs.label_scores import log_softmax
from fieldmark.views.parts import View
from fieldmark.work.large_arrays import joined_rows, logit_blocks, mean_and_spread, row_by_row, standardized, taken_rows

Matrix = NDArray[np.float32]
Codes = NDArray[np.int32]
# From logits of further items to their loss and its gradient by those logits.
ExtraLoss = Callable[[Matrix], tuple[float, Matrix]]
STRENGTHS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)


@dataclass(frozen=True)
class Projection:
    """Features standardized, then as their coordinates along the directions in which items differ most.

    Args:
        mean, spread: What features are standardized by.
        basis: One column for each direction.
    """

    mean: Matrix
    spread: Matrix
    basis: Matrix

    @classmethod
    def of(cls, features: Matrix, components: int) -> Projection:
        """The projection to at most so many principal components of these items."""
        mean, spread = mean_and_spread(features)
        spread = np.maximum(spread, 1e-6 * max(float(spread.max()), 1e-12)).astype(np.float32)
        width = features.shape[1]
        if width <= components:
            return cls(mean, spread, np.eye(width, dtype=np.float32))
        from scipy.linalg import eigh  # takes long to import and is needed here alone

        rows = standardized(features, mean, spread)
        spreads = rows.T @ rows / np.float32(len(features))
        directions = eigh(spreads, subset_by_index=[width - components, width - 1])[1]
        return cls(mean, spread, np.asarray(directions[:, ::-1], dtype=np.float32))

    def __call__(self, features: Matrix) -> Matrix:
        return row_by_row(lambda rows: ((rows - self.mean) / self.spread) @ self.basis, features)


@dataclass(frozen=True)
class SoftLesson:
    """Projected features of a view, with the labels that a method may read.

    Args:
        labeled, truth: The items of train and their labels.
        val, val_truth: Those of val; none where there is no val.
        unlabeled: Those without a label; no rows where a method is shown none.
        classes: How many labels there are.
        projection: What was done to the features.
    """

    labeled: Matrix
    truth: Codes
    val: Matrix | None
    val_truth: Codes | None
    unlabeled: Matrix
    classes: int
    projection: Projection

    @classmethod
    def of(cls, view: View, components: int) -> SoftLesson:
        """Standardizes and projects by train and unlabeled items together."""
        labeled, truth = features_of(view.train), truth_of(view.train)
        others = np.zeros((0, labeled.shape[1]), np.float32) if view.unlabeled is None else features_of(view.unlabeled)
        known = truth >= 0
        labeled, truth = taken_rows(labeled, np.flatnonzero(known)), truth[known]
        project = Projection.of(joined_rows([labeled, others]), components)
        val = None if view.val is None else project(features_of(view.val))
        val_truth = None if view.val is None else truth_of(view.val)
        return cls(project(labeled), truth, val, val_truth, project(others), len(view.labels), project)

    @property
    def one_hot(self) -> Matrix:
        """The labels of train, one column per label."""
        return taken_rows(np.eye(self.classes, dtype=np.float32), self.truth)


@dataclass(frozen=True)
class SoftTargets:
    """What unlabeled items are taught as.

    Args:
        shares: One row per unlabeled item, one column per label; rows sum to one.
        weights: How much each item counts; 0 for those that are left out.
    """

    shares: Matrix
    weights: Matrix


def logits(weights: Matrix, features: Matrix) -> Matrix:
    """What a head says of some items."""
    return np.asarray(features @ weights[:-1] + weights[-1], dtype=np.float32)


def probabilities(weights: Matrix, features: Matrix) -> Matrix:
    """The same as probabilities."""
    return np.asarray(np.exp(log_softmax(logits(weights, features))), dtype=np.float32)


def fit_head(
    lesson: SoftLesson,
    taught: SoftTargets | None,
    weight: float,
    l2: float,
    iterations: int,
    *,
    start: Matrix | None = None,
    share_of_labels: float = 1.0,
    extra: ExtraLoss | None = None,
) -> Matrix:
    """The weights of lowest loss, by L-BFGS.

    Args:
        lesson: What is learned from.
        taught: What unlabeled items are taught as, if they are.
        weight: The weight of all unlabeled items together, were each to count fully.
        l2: The strength of the penalty.
        iterations: The most steps.
        start: The weights to begin with.
        share_of_labels: The weight of all labeled items together.
        extra: A loss of the unlabeled items in place of `taught`, weighed alike.
    """
    from scipy.optimize import minimize  # takes long to import and is needed here alone

    rows, targets = [lesson.labeled], [lesson.one_hot]
    item_weights = [np.full(len(lesson.truth), share_of_labels / max(len(lesson.truth), 1), np.float32)]
    if taught is not None and (taught.weights > 0).any():
        used = np.flatnonzero(taught.weights > 0)
        rows.append(taken_rows(lesson.unlabeled, used))
        targets.append(taken_rows(taught.shares, used))
        item_weights.append((weight * taught.weights[used] / len(taught.weights)).astype(np.float32))
    features, shares, each = joined_rows(rows), joined_rows(targets), np.concatenate(item_weights)[:, None]
    shape = (features.shape[1] + 1, lesson.classes)

    def loss_and_gradient(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        own = flat.reshape(shape).astype(np.float32)
        loss, gradient = l2 / 2 * float((own[:-1] ** 2).sum()), np.zeros(shape, dtype=np.float32)
        for block in logit_blocks(len(features), lesson.classes):
            some, wanted, weighs = features[block], shares[block], each[block]
            logs = log_softmax(logits(own, some))
            loss -= float((weighs * wanted * logs).sum(dtype=np.float64))
            residual = weighs * (np.exp(logs) * wanted.sum(axis=1, keepdims=True) - wanted)
            gradient += np.vstack([some.T @ residual, residual.sum(axis=0)])
        gradient[:-1] += l2 * own[:-1]
        if extra is not None and len(lesson.unlabeled):
            more, by_logits = extra(logits(own, lesson.unlabeled))
            loss += weight * more
            by_logits = weight * by_logits
            gradient += np.vstack([lesson.unlabeled.T @ by_logits, by_logits.sum(axis=0)])
        return loss, gradient.astype(np.float64).ravel()

    first = np.zeros(shape) if start is None else start
    options = {"maxiter": iterations, "ftol": 1e-7, "gtol": 1e-5}
    optimum = minimize(
        loss_and_gradient, first.ravel().astype(np.float64), jac=True, method="L-BFGS-B", options=options
    )
    return np.asarray(optimum.x.reshape(shape), dtype=np.float32)


def val_loss(lesson: SoftLesson, weights: Matrix) -> float:
    """The mean log loss on val."""
    assert lesson.val is not None and lesson.val_truth is not None  # only where there is a val to choose by
    logs = log_softmax(logits(weights, lesson.val))
    return -float(logs[np.arange(len(lesson.val_truth)), lesson.val_truth].mean())


def choose_l2(
    name: str,
    lesson: SoftLesson,
    l2: float,
    fit: Callable[[float, Matrix | None], Matrix],
) -> tuple[Matrix, float]:
    """The head with the given strength, or with the one of lowest log loss on val, from strong to weak.

    Raises:
        MisuseError: When there is neither a strength nor a val.
    """
    if l2:
        return fit(l2, None), l2
    if lesson.val is None:
        raise MisuseError(f"{name} chooses l2 on val, and there is none: pass --set l2=VALUE.")
    best: tuple[float, Matrix, float] | None = None
    weights: Matrix | None = None
    worse = 0
    for strength in STRENGTHS:
        weights = fit(strength, weights)
        loss = val_loss(lesson, weights)
        if best is None or loss < best[0]:
            best, worse = (loss, weights, strength), 0
        else:
            worse += 1
        if worse == 2:
            break
    assert best is not None  # there is at least one strength
    return best[1], best[2]
