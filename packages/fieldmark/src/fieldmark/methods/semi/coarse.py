"""Unlabeled items of which a coarse label, such as the phylum, is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import LearnsFrom
from fieldmark.methods.semi.heads import LabelsOnly, SemiHead
from fieldmark.methods.semi.pseudo_labels import PseudoLabel
from fieldmark.methods.semi.soft_heads import (
    Matrix,
    SoftLesson,
    SoftTargets,
    choose_l2,
    fit_head,
)
from fieldmark.runs.label_scores import log_softmax
from fieldmark.views.parts import View


def labels_by_rank(view: View, remarks: list[str]) -> NDArray[np.bool_] | None:
    """For each unlabeled item the labels that its coarse labels allow; None where no rank tells labels apart."""
    if view.unlabeled is None or view.unlabeled.targets is None:
        remarks.append("There are no coarse labels.")
        return None
    allowed: NDArray[np.bool_] | None = None
    for rank, codes in view.unlabeled.targets.coarse.items():
        if rank not in view.taxonomy.ranks:
            continue
        taxon_of = view.taxonomy.ranks[rank][1]
        own = (taxon_of[None, :] == codes[:, None]) | (codes < 0)[:, None]
        allowed = own if allowed is None else allowed & own
    if allowed is None or allowed.all():
        remarks.append("The coarse labels tell no labels apart here.")
    return allowed


@dataclass(frozen=True)
class CoarsePseudoLabel(PseudoLabel):
    """Pseudo-labels that the stated phylum of a photo allows; photos of a phylum without labels are left out."""

    learns_from: ClassVar[tuple[LearnsFrom, ...]] = ("train", "unlabeled", "coarse")

    def allowed(self, view: View, remarks: list[str]) -> NDArray[np.bool_] | None:
        return labels_by_rank(view, remarks)


@dataclass(frozen=True)
class Coarse(SemiHead):
    """A hierarchical loss: unlabeled items of a phylum must be one of its labels, whichever.

        L = CE(labels) + weight x mean over unlabeled items and ranks of -log sum of p over the labels of its taxon

    Items of a taxon that no label belongs to take no part.

    Args:
        weight: The weight of unlabeled items beside the labels.
    """

    weight: float = 1.0

    learns_from: ClassVar[tuple[LearnsFrom, ...]] = ("train", "unlabeled", "coarse")

    def learn(
        self, view: View, lesson: SoftLesson, labels_only: LabelsOnly, remarks: list[str]
    ) -> tuple[Matrix, float, SoftTargets | None]:
        allowed = labels_by_rank(view, remarks)
        if allowed is None or allowed.all():
            return labels_only.head, labels_only.l2, None
        told = np.asarray(allowed.any(axis=1) & ~allowed.all(axis=1))

        def extra(said: Matrix) -> tuple[float, Matrix]:
            logs = log_softmax(said)
            chances = np.exp(logs)
            inside = np.maximum((chances * allowed).sum(axis=1, keepdims=True), 1e-30)
            loss = -float(np.log(inside[told]).sum()) / len(told)
            slope = (chances - chances * allowed / inside) * told[:, None] / len(told)
            return loss, np.asarray(slope, dtype=np.float32)

        head, l2 = choose_l2(
            self.called,
            lesson,
            self.l2,
            lambda own, start: fit_head(
                lesson,
                None,
                self.weight,
                own,
                self.iterations,
                start=start if start is not None else labels_only.head,
                extra=extra,
            ),
        )
        return head, l2, None
