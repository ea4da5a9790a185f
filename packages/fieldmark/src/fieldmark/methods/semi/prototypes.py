"""Prototypes that unlabeled photos pull towards themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import LearnsFrom
from fieldmark.errors import MisuseError
from fieldmark.features.embeddings import powered_rows, unit_rows
from fieldmark.methods.base import ON_VAL, Arrays, Fitted, choices, features_of, truth_of
from fieldmark.methods.covariance import loss_on_val
from fieldmark.methods.prototypes import MEASURES, BorrowedClasses, Prototypes
from fieldmark.methods.semi.coarse import labels_by_rank
from fieldmark.methods.semi.heads import certainty, propagate
from fieldmark.methods.semi.soft_heads import Matrix, SoftTargets
from fieldmark.questions.targets import Shape
from fieldmark.settings import setting
from fieldmark.views.parts import Part, View
from fieldmark.work.large_arrays import joined_rows, row_by_row

CHOSEN = -1.0
# 0 keeps the prototypes of the labels.
WEIGHTS = (0.0, 0.3, 1.0, 3.0)


@dataclass(frozen=True)
class UnlabeledPrototypes(Prototypes):
    """`prototypes` by cosine, which labels spread over a graph of neighbors move.

    Labels reach unlabeled photos as in `label-propagation`, but in the space in which classes are round. A prototype is
    then the mean of what the labels gave (worth as many photos as its posterior is sure) and of the photos that its
    label reached, each by how sure that is.

    Args:
        neighbors: How many neighbors each photo has in the graph.
        reach: How far labels spread, below 1.
        weight: How much a photo that a label surely reached counts, in training photos; -1 takes the one of lowest log
            loss on val, none at all among them.
    """

    measure: str = setting("cosine", choices=MEASURES)
    neighbors: int = setting(10, least=1)
    reach: float = setting(0.8, above=0, below=1)
    weight: float = setting(CHOSEN, least=0, also=(CHOSEN,))

    targets: ClassVar[tuple[Shape, ...]] = ("codes",)
    learns_from: ClassVar[tuple[LearnsFrom, ...]] = ("train", "unlabeled")
    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {"weight": WEIGHTS[1:]}

    def check_settings(self) -> None:
        if self.measure != "cosine":
            raise MisuseError("Prototypes moved by unlabeled photos are compared by cosine: leave measure=cosine.")

    def fit(self, view: View) -> Fitted:
        view = replace(view, train=view.train.of_known_labels())
        labels_only = super().fit(view)
        if view.unlabeled is None or not len(view.unlabeled):
            told = "There are no unlabeled items: these are the prototypes of the labels."
            return replace(labels_only, remarks=(*labels_only.remarks, told))
        assert isinstance(labels_only.method, UnlabeledPrototypes)
        chosen, remarks = labels_only.method, list(labels_only.remarks)
        space = RoundSpace.of(view, chosen)
        taught = chosen._taught(view, space, remarks)
        moved = _Moved.of(space, taught, view.unlabeled)

        def learned(weight: float) -> Arrays:
            weights, bias = space.discriminants(moved.prototypes(weight))
            return labels_only.arrays | {"weights": weights, "bias": bias}

        weight = chosen._weight(view, learned)
        lessons: Arrays = {
            "taught_as": taught.shares.argmax(axis=1).astype(np.int32),
            "taught_weight": weight * taught.weights,
        }
        chosen = replace(chosen, weight=weight)
        return Fitted(chosen, learned(weight) | lessons, tuple(remarks), choices(self, chosen, ON_VAL))

    def allowed(self, view: View, remarks: list[str]) -> NDArray[np.bool_] | None:
        """Which labels each unlabeled item may have; None where nothing is known of them."""
        return None

    def _taught(self, view: View, space: RoundSpace, remarks: list[str]) -> SoftTargets:
        assert view.unlabeled is not None  # asked before
        rows = joined_rows([space(features_of(part)) for part in (view.train, view.unlabeled)])
        taught = propagate(rows, truth_of(view.train), len(view.labels), self.neighbors, self.reach)
        allowed = self.allowed(view, remarks)
        if allowed is None:
            return taught
        shares = taught.shares * allowed
        total = shares.sum(axis=1, keepdims=True)
        shares = np.asarray(shares / np.maximum(total, 1e-30), dtype=np.float32)
        return SoftTargets(shares, certainty(shares) * (total[:, 0] > 0))

    def _weight(self, view: View, learned: Callable[[float], Arrays]) -> float:
        if self.weight != CHOSEN:
            return self.weight
        if view.val is None:
            raise MisuseError("The weight of unlabeled items is chosen on val, and there is none: pass --set weight=1.")
        val, truth = view.val, truth_of(view.val)
        return min(WEIGHTS, key=lambda weight: loss_on_val(self.scores(learned(weight), val), truth))


@dataclass(frozen=True)
class CoarsePrototypes(UnlabeledPrototypes):
    """The same, with labels that reach no photo of another kingdom or phylum than their own."""

    learns_from: ClassVar[tuple[LearnsFrom, ...]] = ("train", "unlabeled", "coarse")

    def allowed(self, view: View, remarks: list[str]) -> NDArray[np.bool_] | None:
        return labels_by_rank(view, remarks)


@dataclass(frozen=True)
class RoundSpace:
    """The space in which classes are round, seen from the mean of all prototypes.

    Args:
        classes: The labels with photos.
        shrinkage, borrow, power: As in `Prototypes`, chosen.
        means: The prototypes of the labels, as features.
        worth: How many photos each of them is worth.
    """

    classes: BorrowedClasses
    shrinkage: float
    borrow: float
    power: float
    means: NDArray[np.float64]
    worth: NDArray[np.float64]

    @classmethod
    def of(cls, view: View, method: Prototypes) -> RoundSpace:
        classes = BorrowedClasses.of(view, method.power)
        posterior = classes.posterior(method.borrow)
        sure = max(method.borrow * classes.estimated.photos, 1e-12) / np.maximum(posterior.variance, 1e-12)
        counts = classes.tree.counts
        worth = np.clip(sure, counts, 1e6) if method.borrow else counts
        return cls(classes, method.shrinkage, method.borrow, method.power, posterior.means, worth)

    @property
    def center(self) -> NDArray[np.float64]:
        return np.asarray(self.means.mean(axis=0))

    def whitened(self, rows: NDArray[np.floating]) -> NDArray[np.float64]:
        """Powered features of unit length, in this space."""
        return self.classes.covariance.whitened(rows.astype(np.float64) - self.center, self.shrinkage)

    def __call__(self, features: Matrix) -> Matrix:
        """Photos in this space, at unit length."""
        return row_by_row(
            lambda rows: unit_rows(self.whitened(powered_rows(rows, self.power)).astype(np.float32)), features
        )

    def discriminants(self, prototypes: NDArray[np.float64]) -> tuple[Matrix, Matrix]:
        """Weights and bias, on powered features of unit length, of the cosine to prototypes in this space."""
        directions = prototypes / np.maximum(np.linalg.norm(prototypes, axis=1, keepdims=True), 1e-12)
        weights = self.classes.covariance.whitened(directions, self.shrinkage)
        return weights.astype(np.float32), -(weights @ self.center).astype(np.float32)


@dataclass(frozen=True)
class _Moved:
    """What the labels gave, and what the photos they reached add to it."""

    given: NDArray[np.float64]
    added: NDArray[np.float64]

    @classmethod
    def of(cls, space: RoundSpace, taught: SoftTargets, unlabeled: Part) -> _Moved:
        photos = space(features_of(unlabeled))
        # Photos have unit length here, which leaves the mean of a label shorter: by the typical length of a photo.
        own = space.whitened(space.means)
        scatter = own.shape[1]  # of photos around their mean, whitened: one in each direction
        length = np.sqrt((own**2).sum(axis=1).mean() + scatter)
        shares = (taught.shares * taught.weights[:, None])[:, space.classes.present]
        return cls(space.worth[:, None] * own / length, np.asarray(shares.T @ photos, dtype=np.float64))

    def prototypes(self, weight: float) -> NDArray[np.float64]:
        """The prototypes with unlabeled photos of some weight."""
        return self.given + weight * self.added
