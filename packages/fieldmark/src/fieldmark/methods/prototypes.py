"""Prototypes that borrow from their relatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.features.embeddings import powered_rows
from fieldmark.methods.base import ON_VAL, Arrays, Fitted, OnFeatures, choices, features_of, truth_of
from fieldmark.methods.covariance import SHARES, Covariance, loss_on_val
from fieldmark.methods.hierarchy import Matrix, Posterior, RankTree, Variances
from fieldmark.runs.label_scores import Scale
from fieldmark.settings import setting
from fieldmark.views.parts import Part, View
from fieldmark.work.large_arrays import class_sums, matrix_blocks, scored_rows

# From the nearest relatives to the farthest; ranks that the taxonomy does not know are skipped.
RANKS = ("genus", "family")
BORROW = (0.5, 1.0, 2.0, 4.0)
MEASURES = ("cosine", "distance")


@dataclass(frozen=True)
class Prototypes(OnFeatures):
    """Gaussian classes whose means borrow from genus, family and all, with one shrunk covariance.

    The mean of a species is the posterior under `methods.hierarchy`: a species with one photo is drawn towards its
    genus, the genus towards its family, and a species with many photos hardly moves. How much is estimated from the
    training photos themselves (empirical Bayes), times `borrow`. The covariance is that of the photos around these
    means, shrunk as in `lda`. All labels count as equally likely; one without training photos gets the lowest score,
    however well its genus is known.

    Features can be raised to a power first, so that no few of them decide (`power=0.5`).

    Args:
        shrinkage: Of the covariance, from 0 to 1; 0 takes the one of lowest log loss on val.
        borrow: How strongly photos are doubted, as a multiple of the estimate; 0 keeps the plain means, -1 takes the
            one of lowest log loss on val.
        measure: "distance" where the covariance is a ball (the log-density), or "cosine" there, seen from the mean of
            all labels: the mean of one photo lies farther out than that of ten, which by distance counts against it.
        power: What features are raised to, signs kept, before they are brought to unit length; 1 leaves them.
    """

    shrinkage: float = setting(0.0, least=0, most=1)
    borrow: float = setting(-1.0, least=0, also=(-1,))
    measure: str = setting("distance", choices=MEASURES)
    power: float = setting(1.0, above=0, most=1)

    second_order: ClassVar[bool] = True
    scale: ClassVar[Scale] = "logit"
    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {"shrinkage": SHARES, "borrow": (1.0, 0.5, 2.0, 4.0)}

    def fit(self, view: View) -> Fitted:
        classes = BorrowedClasses.of(view, self.power)
        shrinkage, borrow = self.choose(view, classes)
        chosen = replace(self, shrinkage=shrinkage, borrow=borrow)
        learned = chosen.learned(classes, classes.posterior(borrow).means, len(view.labels))
        return Fitted(chosen, learned, chosen=choices(self, chosen, ON_VAL))

    def learned(self, classes: BorrowedClasses, means: Matrix, n_labels: int) -> Arrays:
        """What a model keeps, with these means."""
        weights, bias = self._discriminants(classes, means, self.shrinkage)
        counted: Arrays = {"n_labels": np.array(n_labels), "power": np.array(self.power)}
        return {"weights": weights, "bias": bias, "present": classes.present, **counted}

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        present, n_labels = arrays["present"], arrays["n_labels"].item()
        return _scores(features_of(part), arrays["weights"], arrays["bias"], present, n_labels, power_of(arrays))

    def _discriminants(
        self, classes: BorrowedClasses, means: Matrix, shrinkage: float
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        by = classes.covariance.cosine_discriminants if self.measure == "cosine" else classes.covariance.discriminants
        return by(means, shrinkage)

    def choose(self, view: View, classes: BorrowedClasses) -> tuple[float, float]:
        """The settings as they are given, or those of lowest log loss on val."""
        shares = (self.shrinkage,) if self.shrinkage else SHARES
        amounts = BORROW if self.borrow == -1 else (self.borrow,)
        if len(shares) * len(amounts) == 1:
            return shares[0], amounts[0]
        if view.val is None:
            raise MisuseError(
                "prototypes chooses shrinkage and borrow on val, and there is none: pass --set shrinkage=VALUE "
                "--set borrow=VALUE (1 is the estimate)."
            )
        features, truth = features_of(view.val), truth_of(view.val)

        def loss(settings: tuple[float, float]) -> float:
            weights, bias = self._discriminants(classes, classes.posterior(settings[1]).means, settings[0])
            scores = _scores(features, weights, bias, classes.present, len(view.labels), self.power)
            return loss_on_val(scores, truth)

        return min(product(shares, amounts), key=loss)


@dataclass(frozen=True)
class BorrowedClasses:
    """The labels with training photos, as Gaussians with borrowed means.

    Args:
        present: The labels with photos.
        tree: They and their relatives.
        estimated: The variances at each level of it.
        covariance: Of the photos around the means of their labels.
    """

    present: NDArray[np.int64]
    tree: RankTree
    estimated: Variances
    covariance: Covariance

    @classmethod
    def of(cls, view: View, power: float) -> BorrowedClasses:
        """Takes means, relatives and covariance from the training photos of a view, features raised to a power."""
        features, truth = features_of(view.train), truth_of(view.train)
        unit_rows = partial(powered_rows, power=power)
        present, species, counts = np.unique(truth, return_inverse=True, return_counts=True)
        means = class_sums(unit_rows, features, species, len(present)) / counts[:, None]

        def deviations(block: slice, center: Matrix) -> Matrix:
            return np.asarray(unit_rows(features[block]) - center[species[block]])

        scatter = sum(float((deviations(block, means) ** 2).sum()) for block in matrix_blocks(*features.shape))
        all_ranks = view.taxonomy.ranks
        ranks = [all_ranks[rank][1][present] for rank in RANKS if rank in all_ranks]
        tree = RankTree(ranks, counts, means, scatter)
        estimated = tree.estimate()
        around: Matrix = tree.posterior(estimated)[0].means
        covariance = Covariance.of(lambda block: deviations(block, around), features.shape, len(features))
        return cls(present.astype(np.int64), tree, estimated, covariance)

    def posterior(self, borrow: float) -> Posterior:
        """What is known about the means of the labels."""
        return self.tree.posterior(replace(self.estimated, photos=borrow * self.estimated.photos))[0]


def power_of(arrays: Arrays) -> float:
    """What a fitted model raises features to; those of earlier versions know of none."""
    return float(arrays["power"]) if "power" in arrays else 1.0


def _scores(
    features: NDArray[np.float32],
    weights: NDArray[np.float32],
    bias: NDArray[np.float32],
    present: NDArray[np.integer],
    n_labels: int,
    power: float,
) -> NDArray[np.float32]:
    def scores(rows: NDArray[np.float32]) -> NDArray[np.float32]:
        return over_all_labels(powered_rows(rows, power) @ weights.T + bias, present, n_labels)

    return scored_rows(scores, features, n_labels)


def over_all_labels(logits: NDArray[np.floating], present: NDArray[np.integer], n_labels: int) -> NDArray[np.float32]:
    """Logits of the labels with photos among those of all; the others get less than the lowest."""
    scores = np.repeat(logits.min(axis=1, keepdims=True) - 1, n_labels, axis=1).astype(np.float32)
    scores[:, present] = logits
    return scores
