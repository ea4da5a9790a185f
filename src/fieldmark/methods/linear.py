"""Multinomial logistic regression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.foundation.progress import progress
from fieldmark.methods.base import Arrays, Fitted, Need, OnFeatures, features_of, truth_of
from fieldmark.methods.joined import Joined, input_names, needs_of
from fieldmark.runs.label_scores import Scale, log_softmax
from fieldmark.views import Part, View

Weights = NDArray[np.float32]  # one row per feature and a last one for the bias, one column per label

# Logits of this many items are held at once, so that memory does not grow with items x labels.
BLOCK_ITEMS = 16_384
STRENGTHS = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)


@dataclass(frozen=True)
class Linear(OnFeatures):
    """Minimizes mean cross-entropy + l2 / 2 * |W|^2 over standardized features; the bias is not penalized.

    Args:
        l2: The strength of the penalty. 0 tries several, from strong to weak, and takes the one of lowest log loss on
            val; the search ends when two weaker ones in a row are no better.
        iterations: The most steps of L-BFGS for each strength.
        inputs: The inputs whose features stand side by side, with commas between them ("photo,habitat,date"); empty for
            the media alone. Items that lack one have its mean.
    """

    l2: float = 0.0
    iterations: int = 100
    inputs: str = ""

    scale: ClassVar[Scale] = "logit"
    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {"l2": STRENGTHS}
    added_settings: ClassVar[tuple[str, ...]] = ("inputs",)

    def __post_init__(self) -> None:
        if self.l2 < 0 or self.iterations < 1:
            raise MisuseError("linear needs l2 of at least 0 and at least one iteration.")
        input_names(self.inputs)

    @property
    def needs(self) -> tuple[Need, ...]:
        return needs_of(input_names(self.inputs))

    def fit(self, view: View) -> Fitted:
        names = input_names(self.inputs)
        joined = Joined.fit(names, view.train) if names else None
        read = joined or features_of
        features, truth = read(view.train), truth_of(view.train)
        mean, spread = features.mean(axis=0), features.std(axis=0)
        spread = np.maximum(spread, 1e-6 * max(float(spread.max()), 1e-12))
        train = (features - mean) / spread
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
            val = (read(view.val) - mean) / spread
            best, l2 = self._search(train, truth, val if basis is None else val @ basis, truth_of(view.val), weights)
        if basis is not None:
            best = np.vstack([basis @ best[:-1], best[-1:]])
        arrays = {"weights": best, "mean": mean, "spread": spread, **(joined.arrays if joined else {})}
        return Fitted(replace(self, l2=l2), arrays)

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        weights = arrays["weights"]
        names = input_names(self.inputs)
        features = Joined.of(names, arrays)(part) if names else features_of(part)
        standardized = (features - arrays["mean"]) / arrays["spread"]
        return np.asarray(standardized @ weights[:-1] + weights[-1], dtype=np.float32)

    def _search(
        self,
        train: NDArray[np.float32],
        truth: NDArray[np.int32],
        val: NDArray[np.float32],
        val_truth: NDArray[np.int32],
        weights: Weights,
    ) -> tuple[Weights, float]:
        best, best_l2, best_loss, worse = weights, STRENGTHS[0], np.inf, 0
        with progress("fitting linear", len(STRENGTHS)) as tick:
            for number, l2 in enumerate(STRENGTHS):
                weights = _minimize(train, truth, weights, l2, self.iterations)
                log_probability = log_softmax(val @ weights[:-1] + weights[-1])
                loss = -float(log_probability[np.arange(len(val_truth)), val_truth].mean())
                if loss < best_loss:
                    best, best_l2, best_loss, worse = weights, l2, loss, 0
                else:
                    worse += 1
                done = worse == 2
                tick(len(STRENGTHS) - number if done else 1)
                if done:
                    break
        return best, best_l2


def _minimize(
    features: NDArray[np.float32], truth: NDArray[np.int32], start: Weights, l2: float, iterations: int
) -> Weights:
    """The weights of lowest penalized loss, found by L-BFGS from `start`."""
    from scipy.optimize import minimize  # takes long to import and is needed here alone

    def loss_and_gradient(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = flat.reshape(start.shape).astype(np.float32)
        loss = l2 / 2 * float((weights[:-1] ** 2).sum())
        gradient = np.vstack([l2 * weights[:-1], np.zeros_like(weights[-1:])])
        for first in range(0, len(truth), BLOCK_ITEMS):
            block, labels = features[first : first + BLOCK_ITEMS], truth[first : first + BLOCK_ITEMS]
            rows = np.arange(len(labels))
            log_probability = log_softmax(block @ weights[:-1] + weights[-1])
            loss -= float(log_probability[rows, labels].sum(dtype=np.float64)) / len(truth)
            residual = np.exp(log_probability)
            residual[rows, labels] -= 1
            residual /= len(truth)
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
