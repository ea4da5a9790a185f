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
from fieldmark.errors import MisuseError
from fieldmark.methods.base import Arrays, Fitted, OnFeatures, features_of, truth_of
from fieldmark.methods.semi.guessing import Guessing, Thresholds, taught_hard
from fieldmark.methods.semi.propagating import propagate
from fieldmark.methods.semi.soft_heads import (
    STRENGTHS,
    Matrix,
    Projection,
    SoftLesson,
    SoftTargets,
    choose_l2,
    fit_head,
    logits,
    probabilities,
    val_loss,
)
from fieldmark.questions.targets import Shape
from fieldmark.runs.label_scores import Scale, log_softmax
from fieldmark.views import Part, View


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

    l2: float = 0.0
    iterations: int = 100
    components: int = 256

    scale: ClassVar[Scale] = "logit"
    targets: ClassVar[tuple[Shape, ...]] = ("codes",)
    learns_from: ClassVar[tuple[LearnsFrom, ...]] = ("train", "unlabeled")
    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {"l2": STRENGTHS}

    def __post_init__(self) -> None:
        if self.l2 < 0 or self.iterations < 1 or self.components < 1:
            raise MisuseError("l2 must be at least 0, and there must be an iteration and a component at least.")

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
        return Fitted(replace(self, l2=l2), arrays, tuple(remarks))

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
class PseudoLabel(SemiHead):
    """Teaches unlabeled items as what the head is sure of, several times over (Lee 2013).

    Args:
        threshold, thresholds, align, keep: See `guessing.Guessing`; a threshold of 0 is chosen on val.
        weight: The weight of unlabeled items beside the labels.
        rounds: How often guesses are made anew.
    """

    threshold: float = 0.0
    thresholds: Thresholds = "fixed"
    align: bool = False
    keep: float = 1.0
    weight: float = 1.0
    rounds: int = 3

    CANDIDATES: ClassVar[tuple[float, ...]] = (0.95, 0.8, 0.6, 0.4)

    def __post_init__(self) -> None:
        super().__post_init__()
        Guessing(self.threshold, self.thresholds, self.align, self.keep)
        if self.weight < 0 or self.rounds < 1:
            raise MisuseError("weight must be at least 0, and there must be at least one round.")

    def learn(
        self, view: View, lesson: SoftLesson, labels_only: LabelsOnly, remarks: list[str]
    ) -> tuple[Matrix, float, SoftTargets | None]:
        allowed = self.allowed(view, remarks)
        search = not self.threshold and self.thresholds == "fixed"
        if search and lesson.val is None:
            raise MisuseError(f"{self.called} chooses threshold on val, and there is none: pass --set threshold=0.95.")
        guessing, chosen = self._guessing, ""
        if search:  # by one round each
            tried = [replace(guessing, threshold=one) for one in self.CANDIDATES]
            guessing = min(
                tried, key=lambda one: val_loss(lesson, self._rounds(lesson, labels_only, one, allowed, 1)[0])
            )
            chosen = f", threshold {guessing.threshold:g} by val"
        head, taught = self._rounds(lesson, labels_only, guessing, allowed, self.rounds)
        head, l2 = self.finish(lesson, head, taught, labels_only)
        remarks.append(
            f"{int((taught.weights > 0).sum()):,} of {len(taught.weights):,} unlabeled items were taught{chosen}."
        )
        return head, l2, taught

    def finish(
        self, lesson: SoftLesson, head: Matrix, taught: SoftTargets, labels_only: LabelsOnly
    ) -> tuple[Matrix, float]:
        """The last head, with a penalty of its own: taught items may want another than labels alone."""
        return self.student(lesson, taught, self.weight)

    @property
    def _guessing(self) -> Guessing:
        return Guessing(self.threshold, self.thresholds, self.align, self.keep)

    def _rounds(
        self,
        lesson: SoftLesson,
        labels_only: LabelsOnly,
        guessing: Guessing,
        allowed: NDArray[np.bool_] | None,
        rounds: int,
    ) -> tuple[Matrix, SoftTargets]:
        """The head after some rounds with the penalty of labels alone, and what items were taught as in the last."""
        head, taught = labels_only.head, SoftTargets(lesson.one_hot[:0], np.zeros(0, np.float32))
        for _ in range(rounds):
            taught = self._guessed(lesson, head, guessing, allowed)
            head = fit_head(lesson, taught, self.weight, labels_only.l2, self.iterations, start=head)
        return head, taught

    def _guessed(
        self, lesson: SoftLesson, head: Matrix, guessing: Guessing, allowed: NDArray[np.bool_] | None
    ) -> SoftTargets:
        said = logits(head, lesson.unlabeled)
        label_shares = np.asarray(lesson.one_hot.mean(axis=0), dtype=np.float32)
        shares = guessing.shares(np.exp(log_softmax(said)).astype(np.float32), label_shares, allowed)
        return taught_hard(shares, guessing.weights(shares, said.max(axis=1)))

    def allowed(self, view: View, remarks: list[str]) -> NDArray[np.bool_] | None:
        """Which labels each unlabeled item may have; None where nothing is known of them."""
        return None


@dataclass(frozen=True)
class CoarsePseudoLabel(PseudoLabel):
    """Pseudo-labels that the stated phylum of a photo allows; photos of a phylum without labels are left out."""

    learns_from: ClassVar[tuple[LearnsFrom, ...]] = ("train", "unlabeled", "coarse")

    def allowed(self, view: View, remarks: list[str]) -> NDArray[np.bool_] | None:
        return labels_by_rank(view, remarks)


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
class SelfTraining(SemiHead):
    """Distillation: a student learns the labels, and what a teacher that knows only them says of unlabeled items.

        L = (1 - alpha) x CE(labels) + alpha x CE(teacher at a temperature, student)

    As in Su, Cheng and Maji (2021), whose temperature is 1 and alpha 0.7.

    Args:
        alpha: The share of the teacher.
        temperature: Above 1 softens what the teacher says.
        rounds: How often the student becomes the next teacher.
    """

    alpha: float = 0.7
    temperature: float = 1.0
    rounds: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.alpha < 1 or self.temperature <= 0 or self.rounds < 1:
            raise MisuseError("self-training needs alpha from 0 to below 1, a temperature above 0, at least one round.")

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

    neighbors: int = 15
    reach: float = 0.9
    weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.neighbors < 1 or not 0 < self.reach < 1 or self.weight < 0:
            raise MisuseError("label-propagation needs neighbors, a reach between 0 and 1, a weight of at least 0.")

    def learn(
        self, view: View, lesson: SoftLesson, labels_only: LabelsOnly, remarks: list[str]
    ) -> tuple[Matrix, float, SoftTargets | None]:
        assert view.unlabeled is not None  # asked before
        train = view.train.of_known_labels()
        raw = np.concatenate([features_of(train), features_of(view.unlabeled)])
        taught = propagate(raw, lesson.truth, lesson.classes, self.neighbors, self.reach)
        head, l2 = self.student(lesson, taught, self.weight)
        return head, l2, taught


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


@dataclass(frozen=True)
class FixMatch(PseudoLabel):
    """Consistency of two views of the features (after Sohn et al. 2020): the answer to the plain features, where it is
    sure, is the label of features that were dropped out and shaken.

    On frozen features there are no two photos to compare: the strong view drops a share of the features and adds noise.
    For views of the photo itself, train the network (`finetune` with objective=consistency).

    Args:
        dropout: The share of features that the strong view sets to their mean.
        noise: The noise of the strong view, in spreads of a feature.
        steps: How many steps of Adam.
        rate: Their length.
        seed: The seed of what is dropped and shaken.
    """

    threshold: float = 0.0
    dropout: float = 0.3
    noise: float = 0.3
    steps: int = 200
    rate: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.dropout < 1 or self.noise < 0 or self.steps < 1 or self.rate <= 0:
            raise MisuseError(
                "fixmatch needs dropout from 0 to below 1, noise of at least 0, steps and a rate above 0."
            )

    def finish(
        self, lesson: SoftLesson, head: Matrix, taught: SoftTargets, labels_only: LabelsOnly
    ) -> tuple[Matrix, float]:
        return head, labels_only.l2

    def _rounds(
        self,
        lesson: SoftLesson,
        labels_only: LabelsOnly,
        guessing: Guessing,
        allowed: NDArray[np.bool_] | None,
        rounds: int,
    ) -> tuple[Matrix, SoftTargets]:
        """The weights after all steps, or the best of every twentieth by val; guesses are made anew at each step."""
        rng = np.random.default_rng(self.seed)
        weights = labels_only.head.copy()
        first, second = np.zeros_like(weights), np.zeros_like(weights)
        best: tuple[float, Matrix] | None = None
        taught = SoftTargets(lesson.one_hot[:0], np.zeros(0, np.float32))
        for step in range(1, self.steps + 1):
            taught = self._guessed(lesson, weights, guessing, allowed)
            gradient = self._gradient(lesson, weights, taught, labels_only.l2, rng)
            first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
            length = self.rate / np.sqrt(second / (1 - 0.999**step) + 1e-12)
            weights = np.asarray(weights - length * first / (1 - 0.9**step), dtype=np.float32)
            if lesson.val is not None and step % 20 == 0:
                loss = val_loss(lesson, weights)
                if best is None or loss < best[0]:
                    best = loss, weights
        return (weights if best is None else best[1]), taught

    def _gradient(
        self, lesson: SoftLesson, weights: Matrix, taught: SoftTargets, l2: float, rng: np.random.Generator
    ) -> Matrix:
        def view_of(features: Matrix) -> Matrix:
            kept = rng.random(features.shape, dtype=np.float32) >= self.dropout
            return features * kept + np.float32(self.noise) * rng.standard_normal(features.shape, dtype=np.float32)

        residual = (probabilities(weights, lesson.labeled) - lesson.one_hot) / np.float32(len(lesson.truth))
        gradient = np.vstack([lesson.labeled.T @ residual + np.float32(l2) * weights[:-1], residual.sum(axis=0)])
        used = taught.weights > 0
        if used.any():
            strong = view_of(lesson.unlabeled[used])
            off = (probabilities(weights, strong) - taught.shares[used]) * taught.weights[used][:, None]
            off = np.float32(self.weight) * off / np.float32(len(used))
            gradient = gradient + np.vstack([strong.T @ off, off.sum(axis=0)])
        return np.asarray(gradient, dtype=np.float32)
