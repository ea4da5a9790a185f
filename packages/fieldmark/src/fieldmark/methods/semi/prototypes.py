"""Prototypes that learn from unlabeled photos: moved by them, or beside what their taxa look like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import LearnsFrom
from fieldmark.errors import MisuseError
from fieldmark.features.embeddings import powered_rows, unit_rows
from fieldmark.methods.base import ON_VAL, Arrays, Fitted, choices, features_of, truth_of
from fieldmark.methods.covariance import SHARES, Covariance, loss_on_val
from fieldmark.methods.prototypes import BorrowedClasses, Prototypes
from fieldmark.methods.semi.coarse import labels_by_rank
from fieldmark.methods.semi.heads import certainty, propagate
from fieldmark.methods.semi.soft_heads import Matrix, SoftTargets
from fieldmark.questions.targets import Shape
from fieldmark.settings import setting
from fieldmark.views.parts import View
from fieldmark.work.large_arrays import class_sums, joined_rows, matrix_blocks, row_by_row

T = TypeVar("T")
Beside = Callable[[Arrays], Arrays]
CHOSEN = -1.0
# 0 keeps the prototypes of the labels.
WEIGHTS = (0.0, 0.1, 0.3, 1.0)
TAXON_WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5)


@dataclass(frozen=True)
class UnlabeledPrototypes(Prototypes):
    """`prototypes` moved by labels that spread over a graph of neighbors.

    Labels reach unlabeled photos as in `label-propagation`, but in the space in which classes are round. A prototype is
    then the mean of what the labels gave (worth as many photos as its posterior is sure) and of the photos that its
    label reached, each by how sure that is.

    Args:
        neighbors: How many neighbors each photo has in the graph.
        reach: How far labels spread, below 1.
        weight: How much a photo that a label surely reached counts, in training photos; -1 takes the one of lowest log
            loss on val, none at all among them.
    """

    neighbors: int = setting(10, least=1)
    reach: float = setting(0.8, above=0, below=1)
    weight: float = setting(CHOSEN, least=0, also=(CHOSEN,))

    targets: ClassVar[tuple[Shape, ...]] = ("codes",)
    learns_from: ClassVar[tuple[LearnsFrom, ...]] = ("train", "unlabeled")
    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {"weight": WEIGHTS[1:]}

    def fit(self, view: View) -> Fitted:
        view = replace(view, train=view.train.of_known_labels())
        if view.unlabeled is None or not len(view.unlabeled):
            labels_only = super().fit(view)
            told = "There are no unlabeled items: these are the prototypes of the labels."
            return replace(labels_only, remarks=(*labels_only.remarks, told))
        classes = BorrowedClasses.of(view, self.power)
        shrinkage, borrow = self.choose(view, classes)
        chosen = replace(self, shrinkage=shrinkage, borrow=borrow)
        remarks: list[str] = []
        taught = chosen._taught(view, classes, remarks)
        moved = chosen._moved(view, classes, taught)
        chosen, beside = chosen.of_taxa(view, chosen.learned(classes, moved(0.0), len(view.labels)))

        def learned(weight: float) -> Arrays:
            return beside(chosen.learned(classes, moved(weight), len(view.labels)))

        weight = best_on_val(chosen, view, WEIGHTS if self.weight == CHOSEN else (self.weight,), learned)
        chosen = replace(chosen, weight=weight)
        lessons: Arrays = {
            "taught_as": taught.shares.argmax(axis=1).astype(np.int32),
            "taught_weight": weight * taught.weights,
        }
        return Fitted(chosen, learned(weight) | lessons, tuple(remarks), choices(self, chosen, ON_VAL))

    def allowed(self, view: View, remarks: list[str]) -> NDArray[np.bool_] | None:
        """Which labels each unlabeled item may have; None where nothing is known of them."""
        return None

    def of_taxa(self, view: View, labels_only: Arrays) -> tuple[Self, Beside]:
        """What taxa add to discriminants of labels; the method with its choices, and what adds it."""
        return self, lambda arrays: arrays

    def _taught(self, view: View, classes: BorrowedClasses, remarks: list[str]) -> SoftTargets:
        assert view.unlabeled is not None  # asked before
        center = classes.posterior(self.borrow).means.mean(axis=0)

        def made_round(rows: Matrix) -> Matrix:
            apart = powered_rows(rows, self.power).astype(np.float64) - center
            return unit_rows(classes.covariance.whitened(apart, self.shrinkage).astype(np.float32))

        rows = joined_rows([row_by_row(made_round, features_of(part)) for part in (view.train, view.unlabeled)])
        taught = propagate(rows, truth_of(view.train), len(view.labels), self.neighbors, self.reach)
        allowed = self.allowed(view, remarks)
        if allowed is None:
            return taught
        shares = taught.shares * allowed
        total = shares.sum(axis=1, keepdims=True)
        shares = np.asarray(shares / np.maximum(total, 1e-30), dtype=np.float32)
        return SoftTargets(shares, certainty(shares) * (total[:, 0] > 0))

    def _moved(
        self, view: View, classes: BorrowedClasses, taught: SoftTargets
    ) -> Callable[[float], NDArray[np.float64]]:
        """The prototypes with unlabeled photos of some weight."""
        assert view.unlabeled is not None  # asked before
        photos, posterior = features_of(view.unlabeled), classes.posterior(self.borrow)
        sure = max(self.borrow * classes.estimated.photos, 1e-12) / np.maximum(posterior.variance, 1e-12)
        worth = np.clip(sure, classes.tree.counts, 1e6) if self.borrow else classes.tree.counts
        reached, added = np.zeros(len(posterior.means)), np.zeros_like(posterior.means)
        for block in matrix_blocks(*photos.shape):
            shares = (taught.shares[block] * taught.weights[block, None])[:, classes.present].astype(np.float64)
            reached += shares.sum(axis=0)
            added += shares.T @ powered_rows(photos[block], self.power)

        def means(weight: float) -> NDArray[np.float64]:
            total = worth[:, None] * posterior.means + weight * added
            return np.asarray(total / (worth + weight * reached)[:, None])

        return means


@dataclass(frozen=True)
class CoarsePrototypes(UnlabeledPrototypes):
    """The same where coarse labels of unlabeled photos, such as the phylum, are known.

    Photos of all labels, asked about or not, teach what taxa look like: discriminants of the finest stated rank, as in
    `lda`. A label gets its own discriminant and that of its taxon, as if both were independent witnesses. And labels
    spread to no photo of another taxon than their own.

    Args:
        taxon_weight: How much the discriminants of taxa count; -1 takes the one of lowest log loss on val.
        taxon_shrinkage: Of the covariance within taxa; 0 takes the one of lowest log loss on val.
    """

    taxon_weight: float = setting(CHOSEN, least=0, also=(CHOSEN,))
    taxon_shrinkage: float = setting(0.0, least=0, most=1)

    learns_from: ClassVar[tuple[LearnsFrom, ...]] = ("train", "unlabeled", "coarse")

    def allowed(self, view: View, remarks: list[str]) -> NDArray[np.bool_] | None:
        return labels_by_rank(view, remarks)

    def of_taxa(self, view: View, labels_only: Arrays) -> tuple[Self, Beside]:
        taxa = CoarseTaxa.of(view, self.power)
        if taxa is None:
            return self, lambda arrays: arrays

        def beside(weight: float, shrinkage: float, arrays: Arrays) -> Arrays:
            of_taxa = taxa.discriminants(arrays["present"], shrinkage)
            added = {name: arrays[name] + np.float32(weight) * values for name, values in of_taxa.items()}
            return {**arrays, **added}

        weights = TAXON_WEIGHTS if self.taxon_weight == CHOSEN else (self.taxon_weight,)
        shares = (self.taxon_shrinkage,) if self.taxon_shrinkage else SHARES
        offered = list(product(weights, shares))
        weight, shrinkage = best_on_val(self, view, offered, lambda one: beside(*one, labels_only))
        chosen = replace(self, taxon_weight=weight, taxon_shrinkage=shrinkage)
        return chosen, partial(beside, weight, shrinkage)


def best_on_val(method: Prototypes, view: View, offered: Sequence[T], learned: Callable[[T], Arrays]) -> T:
    """What gives the lowest log loss on val.

    Raises:
        MisuseError: When there is something to choose, and no val.
    """
    if len(offered) == 1:
        return offered[0]
    if view.val is None:
        wanted = [name for name in ("weight", "taxon_weight") if getattr(method, name, None) == CHOSEN]
        if getattr(method, "taxon_shrinkage", 1) == 0:
            wanted.append("taxon_shrinkage")
        told = " ".join(f"--set {name}=0.3" for name in wanted)
        raise MisuseError(f"What unlabeled items count is chosen on val, and there is none: pass {told}.")
    val, truth = view.val, truth_of(view.val)
    return min(offered, key=lambda one: loss_on_val(method.scores(learned(one), val), truth))


@dataclass(frozen=True)
class CoarseTaxa:
    """What the taxa of one rank look like.

    Args:
        taxon_of: The taxon of each label; -1 where it is not known.
        means: The mean of each taxon.
        seen: Which taxa have photos.
        covariance: Of photos around the mean of their taxon.
    """

    taxon_of: NDArray[np.integer]
    means: NDArray[np.float64]
    seen: NDArray[np.bool_]
    covariance: Covariance

    @classmethod
    def of(cls, view: View, power: float) -> CoarseTaxa | None:
        """Those of the finest rank that is stated and tells labels apart; None without any."""
        if view.unlabeled is None or view.unlabeled.targets is None:
            return None
        ranks, stated = view.taxonomy.ranks, view.unlabeled.targets.coarse
        known = [(len(np.unique(ranks[rank][1])), rank) for rank in stated if rank in ranks]
        if max(known, default=(0, ""))[0] < 2:
            return None
        rank = max(known)[1]
        taxon_of = ranks[rank][1]
        taxa = np.concatenate([taxon_of[truth_of(view.train)], stated[rank]])
        rows = np.flatnonzero(taxa >= 0)
        photos = joined_rows([features_of(view.train), features_of(view.unlabeled)])[rows]
        taxa, prepare = taxa[rows], partial(powered_rows, power=power)
        counts = np.bincount(taxa, minlength=int(taxon_of.max()) + 1)
        means = class_sums(prepare, photos, taxa, len(counts)) / np.maximum(counts, 1)[:, None]
        covariance = Covariance.of(
            lambda block: prepare(photos[block]) - means[taxa[block]],
            photos.shape,
            len(photos) - int((counts > 0).sum()),
        )
        return cls(taxon_of, means, counts > 0, covariance)

    def discriminants(self, labels: NDArray[np.integer], shrinkage: float) -> Arrays:
        """Weights and bias of the taxon of each label; zeros where it is not known."""
        weights, bias = self.covariance.discriminants(self.means, shrinkage)
        taxon = self.taxon_of[labels]
        told = (taxon >= 0) & self.seen[taxon]
        return {"weights": np.where(told[:, None], weights[taxon], 0), "bias": np.where(told, bias[taxon], 0)}
