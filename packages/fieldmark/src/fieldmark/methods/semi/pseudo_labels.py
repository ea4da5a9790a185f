"""Unlabeled items taught as what the head is sure of: thresholds, alignment and filters between guess and label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.methods.base import ON_VAL, ChosenSetting
from fieldmark.methods.semi.heads import LabelsOnly, SemiHead
from fieldmark.methods.semi.soft_heads import (
    Matrix,
    SoftLesson,
    SoftTargets,
    fit_head,
    logits,
    probabilities,
    val_loss,
)
from fieldmark.runs.label_scores import log_softmax
from fieldmark.settings import Settings, setting
from fieldmark.views.parts import View

Thresholds = Literal["fixed", "softmatch", "freematch"]
SMALLEST = 1e-12


@dataclass(frozen=True)
class Guessing(Settings):
    """How guesses become labels.

    Args:
        threshold: How sure a head must be, for fixed thresholds.
        thresholds: "fixed"; "softmatch" (Chen et al. 2023: every guess counts, by a Gaussian around the mean
            confidence); "freematch" (Wang et al. 2023: the mean confidence, lower for classes that are seldom guessed).
        align: Whether guesses are scaled so that classes are as frequent as among the labels (distribution alignment,
            Berthelot et al. 2020).
        keep: The share of unlabeled items that is kept, those most like a class (by the highest logit); the others are
            taken to be out of class.
    """

    threshold: float = setting(0.95, least=0, most=1)
    thresholds: Thresholds = "fixed"
    align: bool = False
    keep: float = setting(1.0, above=0, most=1)

    def shares(self, guesses: Matrix, label_shares: Matrix, allowed: NDArray[np.bool_] | None) -> Matrix:
        """The guesses after alignment, with labels that are not allowed for an item ruled out."""
        if self.align:
            guesses = guesses * (label_shares / np.maximum(guesses.mean(axis=0), SMALLEST))
        if allowed is not None:
            # An item of a phylum that no label belongs to is surely out of class: nothing is allowed for it.
            guesses = np.asarray(guesses * allowed, dtype=np.float32)
        total = guesses.sum(axis=1, keepdims=True)
        return np.asarray(guesses / np.maximum(total, SMALLEST), dtype=np.float32)

    def weights(self, shares: Matrix, highest_logit: Matrix) -> Matrix:
        """How much each item counts."""
        sure, answer = shares.max(axis=1), shares.argmax(axis=1)
        if self.thresholds == "fixed":
            weights = (sure >= self.threshold).astype(np.float32)
        elif self.thresholds == "softmatch":
            mean, variance = float(sure.mean()), max(float(sure.var()), SMALLEST)
            weights = np.exp(-(np.minimum(sure - mean, 0.0) ** 2) / (2 * variance)).astype(np.float32)
        else:
            often = shares.mean(axis=0)
            weights = (sure >= sure.mean() * (often / max(float(often.max()), SMALLEST))[answer]).astype(np.float32)
        weights = weights * (shares.sum(axis=1) > 0.5)  # nothing is allowed for the others
        if self.keep < 1:
            weights = weights * (highest_logit >= np.quantile(highest_logit, 1 - self.keep))
        return np.asarray(weights, dtype=np.float32)


def hard(shares: Matrix) -> Matrix:
    """Every row as the one label that is most likely."""
    return np.asarray(np.eye(shares.shape[1], dtype=np.float32)[shares.argmax(axis=1)])


def taught_hard(shares: Matrix, weights: Matrix) -> SoftTargets:
    """Items taught as their most likely label."""
    return SoftTargets(hard(shares), weights)


@dataclass(frozen=True)
class PseudoLabel(SemiHead):
    """Teaches unlabeled items as what the head is sure of, several times over (Lee 2013).

    Args:
        threshold, thresholds, align, keep: See `guessing.Guessing`; a threshold of 0 is chosen on val.
        weight: The weight of unlabeled items beside the labels.
        rounds: How often guesses are made anew.
    """

    threshold: float = setting(0.0, least=0, most=1)
    thresholds: Thresholds = "fixed"
    align: bool = False
    keep: float = setting(1.0, above=0, most=1)
    weight: float = setting(1.0, least=0)
    rounds: int = setting(3, least=1)

    CANDIDATES: ClassVar[tuple[float, ...]] = (0.95, 0.8, 0.6, 0.4)

    def learn(
        self, view: View, lesson: SoftLesson, labels_only: LabelsOnly, remarks: list[str]
    ) -> tuple[Matrix, float, SoftTargets | None]:
        allowed = self.allowed(view, remarks)
        search = self._searches_threshold
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

    @property
    def _searches_threshold(self) -> bool:
        return not self.threshold and self.thresholds == "fixed"

    def further_choices(self, lesson: SoftLesson) -> tuple[ChosenSetting, ...]:
        return (ChosenSetting("threshold", ON_VAL),) if self._searches_threshold and len(lesson.unlabeled) else ()

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
class FixMatch(PseudoLabel):
    """Consistency of two views of the features (after Sohn et al. 2020): the answer to the plain features, where it is
    sure, is the label of strongly augmented features (dropout and noise).

    On frozen features there are no two photos to compare: the strong view drops a share of the features and adds noise.
    For views of the photo itself, train the network (`finetune` with objective=consistency).

    Args:
        dropout: The share of features that the strong view sets to their mean.
        noise: The noise of the strong view, in spreads of a feature.
        steps: How many steps of Adam.
        rate: Their length.
        seed: The seed of dropout and noise.
    """

    threshold: float = 0.0
    dropout: float = setting(0.3, least=0, below=1)
    noise: float = setting(0.3, least=0)
    steps: int = setting(200, least=1)
    rate: float = setting(0.01, above=0)
    seed: int = 0

    @property
    def _searches_threshold(self) -> bool:
        return not self.threshold and self.thresholds == "fixed"

    def further_choices(self, lesson: SoftLesson) -> tuple[ChosenSetting, ...]:
        return (ChosenSetting("threshold", ON_VAL),) if self._searches_threshold and len(lesson.unlabeled) else ()

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
