"""Methods for few labels and many unlabeled photos, on frozen features (seconds; `finetune` trains whole networks).

All of them fit one head, a multinomial logistic regression (`soft_heads`), whose penalty is chosen on val, and differ
in what the unlabeled photos are taught as. Nothing is ever chosen on test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import LearnsFrom
from fieldmark.features.embeddings import unit_rows
from fieldmark.methods.base import ON_VAL, Arrays, ChosenSetting, Fitted, OnFeatures, choices, features_of, truth_of
from fieldmark.methods.semi.soft_heads import (
    STRENGTHS,
    Codes,
    Matrix,
    Projection,
    SoftLesson,
    SoftTargets,
    choose_l2,
    fit_head,
    logits,
)
from fieldmark.questions.targets import Shape
from fieldmark.runs.label_scores import Scale, log_softmax
from fieldmark.settings import setting
from fieldmark.views.parts import Part, View
from fieldmark.work.large_arrays import Nearest, joined_rows, products_with, row_by_row

BLOCK_ITEMS = 2048
STEPS = 30


class LabelsOnly(NamedTuple):
    """The head that the labels alone give, and its penalty."""

    head: Matrix
    l2: float


@dataclass(frozen=True)
class SemiHead(OnFeatures):
    """A head on features; subclasses say what unlabeled items are taught as.

    Args:
        l2: The strength of the penalty; 0 chooses it on val.
        iterations: The most steps of L-BFGS.
        components: Features are reduced to at most so many principal components of labeled and unlabeled items.
    """

    l2: float = setting(0.0, least=0)
    iterations: int = setting(100, least=1)
    components: int = setting(256, least=1)

    second_order: ClassVar[bool] = True
    scale: ClassVar[Scale] = "logit"
    targets: ClassVar[tuple[Shape, ...]] = ("codes",)
    learns_from: ClassVar[tuple[LearnsFrom, ...]] = ("train", "unlabeled")
    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {"l2": STRENGTHS}

    @property
    def called(self) -> str:
        """What messages call it."""
        return type(self).__name__

    def fit(self, view: View) -> Fitted:
        if "unlabeled" not in self.learns_from:
            view = replace(view, unlabeled=None)
        lesson = SoftLesson.of(view, self.components)
        head, l2 = choose_l2(self.called, lesson, self.l2, lambda own, start: self._labels_only(lesson, own, start))
        remarks: list[str] = []
        taught: SoftTargets | None = None
        if len(lesson.unlabeled):
            head, l2, taught = self.learn(view, lesson, LabelsOnly(head, l2), remarks)
        elif "unlabeled" in self.learns_from:
            remarks.append("There are no unlabeled items: this is the supervised head.")
        project = lesson.projection
        arrays: Arrays = {"weights": head, "mean": project.mean, "spread": project.spread, "basis": project.basis}
        if taught is not None:
            arrays |= {"taught_as": taught.shares.argmax(axis=1).astype(np.int32), "taught_weight": taught.weights}
        chosen = replace(self, l2=l2)
        told = (*choices(self, chosen, ON_VAL), *self.further_choices(lesson))
        return Fitted(chosen, arrays, tuple(remarks), told)

    def further_choices(self, lesson: SoftLesson) -> tuple[ChosenSetting, ...]:
        """What learning from unlabeled items chooses besides the penalty."""
        return ()

    def _labels_only(self, lesson: SoftLesson, l2: float, start: Matrix | None) -> Matrix:
        return fit_head(lesson, None, 0.0, l2, self.iterations, start=start)

    def learn(
        self, view: View, lesson: SoftLesson, labels_only: LabelsOnly, remarks: list[str]
    ) -> tuple[Matrix, float, SoftTargets | None]:
        """The head that has learned from unlabeled items as well, its penalty, and what they were taught as.

        What does not learn from them keeps the head of the labels.
        """
        return labels_only.head, labels_only.l2, None

    def student(
        self, lesson: SoftLesson, taught: SoftTargets, weight: float, share_of_labels: float = 1.0
    ) -> tuple[Matrix, float]:
        """The head that labels and taught items give, with its penalty."""
        return choose_l2(
            self.called,
            lesson,
            self.l2,
            lambda l2, start: fit_head(
                lesson, taught, weight, l2, self.iterations, start=start, share_of_labels=share_of_labels
            ),
        )

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        project = Projection(arrays["mean"], arrays["spread"], arrays["basis"])
        return logits(arrays["weights"], project(features_of(part)))


@dataclass(frozen=True)
class Supervised(SemiHead):
    """Labels alone: what every use of unlabeled photos is measured against."""

    learns_from: ClassVar[tuple[LearnsFrom, ...]] = ("train",)


def oracle_remark(inside: int, outside: int) -> str:
    """What a run of an oracle says about itself, by how many unlabeled items are in-class and how many are not."""
    return (
        f"An oracle: it read the hidden labels of {inside:,} in-class unlabeled items; "
        f"{outside:,} out-of-class ones were left out."
    )


@dataclass(frozen=True)
class Oracle(SemiHead):
    """Reads the hidden labels of unlabeled photos, of in-class ones only: a bound, and not a method for use."""

    learns_from: ClassVar[tuple[LearnsFrom, ...]] = ("train", "unlabeled", "hidden labels")

    def learn(
        self, view: View, lesson: SoftLesson, labels_only: LabelsOnly, remarks: list[str]
    ) -> tuple[Matrix, float, SoftTargets | None]:
        assert view.unlabeled is not None  # asked before
        codes = truth_of(view.unlabeled)
        inside = codes >= 0
        remarks.append(oracle_remark(int(inside.sum()), int((~inside).sum())))
        shares = np.eye(lesson.classes, dtype=np.float32)[np.maximum(codes, 0)]
        # Every photo counts alike, labeled from the start or not.
        weight = len(codes) / max(len(lesson.truth), 1)
        taught = SoftTargets(shares, inside.astype(np.float32))
        head, l2 = self.student(lesson, taught, weight)
        return head, l2, taught


@dataclass(frozen=True)
class SelfTraining(SemiHead):
    """Distillation: a student learns the labels, and what a teacher that knows only them says of unlabeled items.

        L = (1 - alpha) x CE(labels) + alpha x CE(teacher at a temperature, student)

    As in Su, Cheng and Maji (2021), whose temperature is 1 and alpha 0.7.

    Args:
        alpha: The share of the teacher.
        temperature: Above 1 softens what the teacher says.
        rounds: How often the student becomes the next teacher.
    """

    alpha: float = setting(0.7, least=0, below=1)
    temperature: float = setting(1.0, above=0)
    rounds: int = setting(1, least=1)

    def learn(
        self, view: View, lesson: SoftLesson, labels_only: LabelsOnly, remarks: list[str]
    ) -> tuple[Matrix, float, SoftTargets | None]:
        head, l2 = labels_only
        taught = None
        for _ in range(self.rounds):
            softened = log_softmax(logits(head, lesson.unlabeled) / np.float32(self.temperature))
            taught = SoftTargets(np.exp(softened).astype(np.float32), np.ones(len(lesson.unlabeled), np.float32))
            head, l2 = self.student(lesson, taught, self.alpha, share_of_labels=1 - self.alpha)
        return head, l2, taught


@dataclass(frozen=True)
class LabelPropagation(SemiHead):
    """Spreads labels over a graph of nearest neighbors, then fits a head to what was spread (Iscen et al. 2019).

    Args:
        neighbors: How many neighbors each item has in the graph.
        reach: How far labels spread, below 1 (alpha of Zhou et al. 2003).
        weight: The weight of unlabeled items beside the labels; each counts by how sure its spread labels are.
    """

    neighbors: int = setting(15, least=1)
    reach: float = setting(0.9, above=0, below=1)
    weight: float = setting(1.0, least=0)

    def learn(
        self, view: View, lesson: SoftLesson, labels_only: LabelsOnly, remarks: list[str]
    ) -> tuple[Matrix, float, SoftTargets | None]:
        assert view.unlabeled is not None  # asked before
        train = view.train.of_known_labels()
        raw = joined_rows([features_of(train), features_of(view.unlabeled)])
        taught = propagate(raw, lesson.truth, lesson.classes, self.neighbors, self.reach)
        head, l2 = self.student(lesson, taught, self.weight)
        return head, l2, taught


def propagate(features: Matrix, truth: Codes, classes: int, neighbors: int, reach: float) -> SoftTargets:
    """What labels reach the unlabeled items, and how surely.

    Zhou et al. 2003: F = (1 - reach) sum of (reach S)^t Y with S the normalized graph of nearest neighbors by cosine,
    here for the first 30 steps. An item counts by one minus the entropy of what reached it, over the highest possible.

    Args:
        features: Labeled items first, then unlabeled ones.
        truth: The labels of the former.
        classes: How many labels there are.
        neighbors: How many neighbors each item has.
        reach: How far labels spread.
    """
    from scipy.sparse import coo_matrix  # takes long to import and is needed here alone

    rows, number = row_by_row(unit_rows, features), len(features)
    near = min(neighbors, number - 1)
    places, likeness = [], []
    for first in range(0, number, BLOCK_ITEMS):
        asked = np.arange(first, min(first + BLOCK_ITEMS, number))
        nearest = Nearest(len(asked), near)
        for block, cosine in products_with(rows, rows[first : first + BLOCK_ITEMS]):
            same = np.flatnonzero((asked >= block.start) & (asked < block.stop))
            cosine[same, asked[same] - block.start] = -np.inf  # nobody is a neighbor of itself
            nearest.see(cosine, block.start)
        places.append(nearest.items)
        likeness.append(np.clip(nearest.values, 0, None) ** 3)
    to, values = np.concatenate(places).ravel(), np.concatenate(likeness).ravel()
    graph = coo_matrix((values, (np.repeat(np.arange(number), near), to)), shape=(number, number)).tocsr()
    graph = graph + graph.T
    degree = np.maximum(np.asarray(graph.sum(axis=1)).ravel(), 1e-12)
    scaled = graph.multiply(1 / np.sqrt(degree)[:, None]).multiply(1 / np.sqrt(degree)[None, :]).tocsr()
    given = np.zeros((number, classes), dtype=np.float32)
    given[np.arange(len(truth)), truth] = 1
    given /= np.maximum(given.sum(axis=0), 1)  # every class sends out as much
    spread = given.copy()
    for _ in range(STEPS):
        spread = reach * (scaled @ spread) + given
    reached = np.asarray(spread[len(truth) :], dtype=np.float32)
    total = reached.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, reached / np.maximum(total, 1e-30), 1 / classes).astype(np.float32)
    return SoftTargets(shares, certainty(shares))


def certainty(shares: Matrix) -> Matrix:
    """One minus the entropy of each row, over the highest possible."""
    entropy = -(shares * np.log(np.maximum(shares, 1e-12))).sum(axis=1)
    return np.asarray(np.clip(1 - entropy / np.log(max(shares.shape[1], 2)), 0, 1), dtype=np.float32)
