"""Expectation and maximization over the photos asked about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Sees
from fieldmark.errors import MisuseError
from fieldmark.methods.base import ON_VAL, Arrays, Fitted, OnFeatures, choices, features_of, truth_of, unit_rows
from fieldmark.methods.covariance import Covariance, Matrix
from fieldmark.methods.prototypes import BorrowedClasses, Prototypes, over_all_labels
from fieldmark.runs.label_scores import Scale, log_softmax
from fieldmark.settings import setting, setting_of
from fieldmark.views.parts import Part, View
from fieldmark.work.large_arrays import matrix_blocks, row_by_row, scored_rows

CONFIDENCES = tuple(float(c) for c in np.geomspace(1e-3, 10, 41))


@dataclass(frozen=True)
class Transductive(OnFeatures):
    """`prototypes` whose means move towards the photos they explain: a Gaussian mixture fitted to all that is asked.

    It sees the whole test set, and a photo's answer depends on which others are asked about with it. Each round gives
    every photo its probabilities of the labels, and every label the mean of its prior knowledge (worth as many
    photos as its posterior is sure) and of the photos given to it, each worth `weight` training photos. The logits
    are multiplied by a confidence that is right on val before the first round. Sizes of classes are not constrained in
    any way; with `frequencies` "estimated" they become the prior of the next round, smoothed by one photo per label.

    One photo alone is answered about as `prototypes` answers it by distance, on plain features.

    Args:
        shrinkage, borrow: As in `prototypes`.
        weight: How much a photo asked about counts, in training photos.
        frequencies: "flat" takes all labels for equally likely, "estimated" learns their frequencies as well.
        iterations: How many rounds.
        confidence: What logits are multiplied by; 0 takes the one of lowest log loss on val.
    """

    shrinkage: float = setting_of(Prototypes, "shrinkage")
    borrow: float = setting_of(Prototypes, "borrow")
    weight: float = setting(0.3, least=0)
    frequencies: str = setting("flat", choices=("flat", "estimated"))
    iterations: int = setting(15, least=0)
    confidence: float = setting(0.0, least=0)

    second_order: ClassVar[bool] = True
    sees: ClassVar[Sees] = "test set"
    scale: ClassVar[Scale] = "logit"

    def fit(self, view: View) -> Fitted:
        plain = Prototypes(self.shrinkage, self.borrow, measure="distance", power=1.0)
        classes = BorrowedClasses.of(view, plain.power)
        shrinkage, borrow = plain.choose(view, classes)
        posterior, covariance = classes.posterior(borrow), classes.covariance
        sure = max(borrow * classes.estimated.photos, 1e-12) / np.maximum(posterior.variance, 1e-12)
        learned = {
            "means": posterior.means,
            "photos_worth": np.minimum(sure, 1e6),
            "axes": covariance.axes,
            "spectrum": covariance.spectrum,
            "average": np.array(covariance.average),
            "present": classes.present,
            "n_labels": np.array(len(view.labels)),
        }
        chosen = replace(self, shrinkage=shrinkage, borrow=borrow)
        chosen = replace(chosen, confidence=self.confidence or chosen._calibrate(learned, view))
        return Fitted(chosen, learned, chosen=choices(self, chosen, ON_VAL))

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        photos, start = self._whitened(arrays, features_of(part))
        means, log_frequency = start, np.zeros(len(start))
        worth, n_labels = arrays["photos_worth"], arrays["n_labels"].item()
        for _ in range(self.iterations):
            given, moved = np.zeros(len(start)), np.zeros_like(start)
            for block in matrix_blocks(len(photos), max(photos.shape[1], len(start))):
                logits = self.confidence * _logits(photos[block], means) + log_frequency
                share = np.exp(log_softmax(logits))
                given += share.sum(axis=0)
                moved += share.T @ photos[block]
            if self.frequencies == "estimated":
                log_frequency = np.log((given + 1) / (len(photos) + len(given)))
            pulled = worth[:, None] * start + self.weight * moved
            means = pulled / (worth + self.weight * given)[:, None]

        def scores(some: Matrix) -> NDArray[np.float32]:
            logits = self.confidence * _logits(some, means) + log_frequency
            return over_all_labels(logits, arrays["present"], n_labels)

        return scored_rows(scores, photos, n_labels)

    def _whitened(self, arrays: Arrays, features: NDArray[np.float32]) -> tuple[Matrix, Matrix]:
        """Photos and means in the coordinates in which classes are round; photos in a file where they do not fit."""
        covariance = Covariance(arrays["axes"], arrays["spectrum"], arrays["average"].item())
        photos = row_by_row(
            lambda rows: covariance.whitened(unit_rows(rows).astype(np.float64), self.shrinkage), features
        )
        return photos, covariance.whitened(arrays["means"], self.shrinkage)

    def _calibrate(self, learned: Arrays, view: View) -> float:
        if view.val is None:
            raise MisuseError("em chooses its confidence on val, and there is none: pass --set confidence=VALUE.")
        photos, means = self._whitened(learned, features_of(view.val))
        n_labels = len(view.labels)
        logits = scored_rows(
            lambda some: over_all_labels(_logits(some, means), learned["present"], n_labels), photos, n_labels
        )
        rows, truth = np.arange(len(view.val)), truth_of(view.val)

        def loss(confidence: float) -> float:
            return -float(log_softmax(confidence * logits.astype(np.float64))[rows, truth].mean())

        return min(CONFIDENCES, key=loss)


def _logits(photos: Matrix, means: Matrix) -> Matrix:
    """Log-densities of classes of unit variance, up to what all classes share."""
    return np.asarray(photos @ means.T - 0.5 * (means**2).sum(axis=1))
