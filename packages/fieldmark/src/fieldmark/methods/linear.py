"""Logistic regression: multinomial where one label holds, and one for each label where several may."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fieldmark.errors import MisuseError
from fieldmark.methods.base import (
    ON_VAL,
    Arrays,
    Fitted,
    Need,
    OnFeatures,
    choices,
    features_of,
    lists_labels,
    targets_of,
    truth_of,
)
from fieldmark.methods.joined import Joined, input_names, needs_of
from fieldmark.runs.label_scores import Scale, log_softmax
from fieldmark.settings import setting
from fieldmark.views.parts import Part, View
from fieldmark.work.large_arrays import logit_blocks, mean_and_spread, scored_rows, standardized
from fieldmark.work.progress import progress

Weights = NDArray[np.float32]  # one row per feature and a last one for the bias, one column per label

STRENGTHS = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)


@dataclass(frozen=True)
class LabelLists:
    """The labels of items that list several.

    Args:
        holds: A sparse matrix of items by labels, 1 where a label holds.
        asked: The same, dense: whether somebody looked; None where everything was.
    """

    holds: Any
    asked: NDArray[np.bool_] | None

    def __getitem__(self, rows: slice) -> LabelLists:
        return LabelLists(self.holds[rows], None if self.asked is None else self.asked[rows])


Truth = NDArray[np.int32] | LabelLists


@dataclass(frozen=True)
class Linear(OnFeatures):
    """Minimizes mean cross-entropy + l2 / 2 * |W|^2 over standardized features; the bias is not penalized.

    Where items list labels without one that stands for them (all species of a place), the cross-entropy is the sum over
    labels of that of yes and no, and the answer is the chance of each.

    Args:
        l2: The strength of the penalty. 0 tries several, from strong to weak, and takes the one of lowest log loss on
            val; the search ends when two weaker ones in a row are no better.
        iterations: The most steps of L-BFGS for each strength.
        inputs: The inputs whose features stand side by side, with commas between them ("photo,habitat,date"); empty for
            the media alone. Items that lack one have its mean.
        several: Whether labels are answered by themselves; found by `fit`.
    """

    l2: float = setting(0.0, least=0)
    iterations: int = setting(100, least=1)
    inputs: str = ""
    several: bool = False

    second_order: ClassVar[bool] = True
    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {"l2": STRENGTHS}
    added_settings: ClassVar[tuple[str, ...]] = ("inputs", "several")
    follows_from_task: ClassVar[tuple[str, ...]] = ("several",)

    def check_settings(self) -> None:
        input_names(self.inputs)

    @property
    def scale(self) -> Scale:
        return "score" if self.several else "logit"

    @property
    def needs(self) -> tuple[Need, ...]:
        return needs_of(input_names(self.inputs))

    def fit(self, view: View) -> Fitted:
        names = input_names(self.inputs)
        joined = Joined.fit(names, view.train) if names else None
        read = joined or features_of
        several = lists_labels(view.train) or lists_labels(view.val)
        features, truth = read(view.train), _truth(view.train, len(view.labels), several=several)
        mean, spread = mean_and_spread(features)
        spread = np.maximum(spread, 1e-6 * max(float(spread.max()), 1e-12))
        train = standardized(features, mean, spread)
        # The minimum lies in the span of the training items: with fewer items than features the search runs there.
        basis = np.linalg.qr(train.T)[0] if len(train) < train.shape[1] else None
        if basis is not None:
            train = train @ basis
        weights = np.zeros((train.shape[1] + 1, len(view.labels)), dtype=np.float32)
        if self.l2:
            best, l2 = _minimize(train, truth, weights, self.l2, self.iterations), self.l2
        elif view.val is None:
            raise MisuseError("linear chooses l2 on val, and there is none: pass --set l2=VALUE.")
        else:
            val = standardized(read(view.val), mean, spread)
            val_truth = _truth(view.val, len(view.labels), several=several)
            best, l2 = self._search(train, truth, val if basis is None else val @ basis, val_truth, weights)
        if basis is not None:
            best = np.vstack([basis @ best[:-1], best[-1:]])
        arrays = {"weights": best, "mean": mean, "spread": spread, **(joined.arrays if joined else {})}
        chosen = replace(self, l2=l2, several=several)
        return Fitted(chosen, arrays, chosen=choices(self, chosen, ON_VAL))

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        weights = arrays["weights"]
        names = input_names(self.inputs)
        features = Joined.of(names, arrays)(part) if names else features_of(part)
        mean, spread = arrays["mean"], arrays["spread"]

        def answered(rows: NDArray[np.float32]) -> NDArray[np.float32]:
            logits = np.asarray((rows - mean) / spread @ weights[:-1], dtype=np.float32)
            logits += weights[-1]
            return np.asarray(expit(logits), dtype=np.float32) if self.several else logits

        return scored_rows(answered, features, weights.shape[1])

    def _search(
        self,
        train: NDArray[np.float32],
        truth: Truth,
        val: NDArray[np.float32],
        val_truth: Truth,
        weights: Weights,
    ) -> tuple[Weights, float]:
        best, best_l2, best_loss, worse = weights, STRENGTHS[0], np.inf, 0
        with progress("fitting linear", len(STRENGTHS)) as tick:
            for number, l2 in enumerate(STRENGTHS):
                weights = _minimize(train, truth, weights, l2, self.iterations)
                loss = sum(
                    _loss_and_residual(val[block] @ weights[:-1] + weights[-1], val_truth[block])[0]
                    for block in logit_blocks(len(val), weights.shape[1])
                )
                if loss < best_loss:
                    best, best_l2, best_loss, worse = weights, l2, loss, 0
                else:
                    worse += 1
                done = worse == 2
                tick(len(STRENGTHS) - number if done else 1)
                if done:
                    break
        return best, best_l2


def _truth(part: Part, n_labels: int, *, several: bool) -> Truth:
    """One code per item; or where several labels may hold, the list of each."""
    if not several:
        return truth_of(part)
    from scipy.sparse import csr_array

    targets = targets_of(part)
    ones = np.ones(len(targets.row), dtype=np.float32)
    holds = csr_array((ones, (targets.row, targets.code)), shape=(len(part), n_labels))
    return LabelLists(holds, targets.asked)


def _loss_and_residual(logits: NDArray[np.float32], truth: Truth) -> tuple[float, NDArray[np.float32]]:
    """The summed cross-entropy of some items, and its gradient by their logits."""
    if isinstance(truth, np.ndarray):
        rows = np.arange(len(truth))
        log_probability = log_softmax(logits)
        residual = np.exp(log_probability)
        residual[rows, truth] -= 1
        return -float(log_probability[rows, truth].sum(dtype=np.float64)), residual
    holds = truth.holds.toarray()
    losses, residual = np.logaddexp(np.float32(0), logits) - logits * holds, expit(logits) - holds
    if truth.asked is not None:
        losses, residual = np.where(truth.asked, losses, 0), np.where(truth.asked, residual, 0)
    return float(losses.sum(dtype=np.float64)), np.asarray(residual, dtype=np.float32)


def _minimize(features: NDArray[np.float32], truth: Truth, start: Weights, l2: float, iterations: int) -> Weights:
    """The weights of lowest penalized loss, found by L-BFGS from `start`."""
    from scipy.optimize import minimize  # takes long to import and is needed here alone

    items = len(features)

    def loss_and_gradient(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = flat.reshape(start.shape).astype(np.float32)
        loss = l2 / 2 * float((weights[:-1] ** 2).sum())
        gradient = np.vstack([l2 * weights[:-1], np.zeros_like(weights[-1:])])
        for rows in logit_blocks(items, start.shape[1]):
            block = features[rows]
            summed, residual = _loss_and_residual(block @ weights[:-1] + weights[-1], truth[rows])
            loss += summed / items
            residual /= items
            gradient[:-1] += block.T @ residual
            gradient[-1] += residual.sum(axis=0)
        return loss, gradient.astype(np.float64).ravel()

    optimum = minimize(
        loss_and_gradient,
        start.ravel().astype(np.float64),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": iterations, "ftol": 1e-7, "gtol": 1e-5},
    )
    return np.asarray(optimum.x.reshape(start.shape), dtype=np.float32)
