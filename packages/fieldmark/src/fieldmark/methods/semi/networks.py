"""Fine-tuning that reads unlabeled photos: two views of each, contrast by class, a teacher, and the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import LearnsFrom
from fieldmark.errors import MisuseError
from fieldmark.methods.base import Fitted, truth_of
from fieldmark.methods.finetune import Finetune, as_they_are
from fieldmark.methods.semi.coarse import labels_by_rank
from fieldmark.methods.semi.heads import oracle_remark
from fieldmark.questions.targets import LabelTargets
from fieldmark.runs.label_scores import log_softmax
from fieldmark.settings import setting
from fieldmark.tables.labels import UNKNOWN
from fieldmark.training.consistency import Consistency
from fieldmark.training.objective_names import make_objective
from fieldmark.training.photos import PhotoTransform
from fieldmark.training.semi_objectives import Distillation, taught_labels
from fieldmark.training.sources import WeakAndStrong
from fieldmark.views.parts import Part, View

Codes = NDArray[np.int32]


class ReadsUnlabeled(Finetune):
    """Fine-tuning on labeled and unlabeled photos; mixup does not go with it."""

    learns_from: ClassVar[tuple[LearnsFrom, ...]] = ("train", "unlabeled")

    @classmethod
    def expand(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        usual = {"mixup": 0.0, "objective": cls.objective, "loss": "cross-entropy", "best_by": "top_1"}
        recipe = super().expand({name: value for name, value in settings.items() if name == "recipe"})
        return {**recipe, **usual, **settings}


def unlabeled_of(view: View) -> Part:
    """The unlabeled photos.

    Raises:
        MisuseError: When there are none.
    """
    if view.unlabeled is None or not len(view.unlabeled):
        raise MisuseError("There are no unlabeled photos to learn from: take finetune.")
    return view.unlabeled


def numbered(*parts: Part) -> Part:
    """Parts one after the other, with the number of each item in place of its label: photos then tell their item."""
    together = Part.concat([replace(part, targets=LabelTargets(_unknown(part))) for part in parts])
    return replace(together, targets=LabelTargets(np.arange(len(together), dtype=np.int32)))


def _unknown(part: Part) -> Codes:
    return np.full(len(part), UNKNOWN, dtype=np.int32)


def scratch_of(view: View, name: str) -> Path | None:
    """A folder of its own for one of several trainings, inside that of the run."""
    return None if view.scratch is None else view.scratch / name


@dataclass(frozen=True, kw_only=True)
class TwoViews(ReadsUnlabeled):
    """Trains a network on labels, and on the consistency of two views of unlabeled photos (FixMatch).

    The weak view is a crop, the strong one a crop changed by RandAugment. Settings are those of `finetune`; the batch
    must be a multiple of one labeled photo with its `unlabeled_each` others. Thresholds that adapt, alignment, a filter
    and coarse labels are settings of the objective (`training.consistency`).
    """

    objective: str = "consistency"

    objectives: ClassVar[tuple[str, ...]] = ("consistency", "class-aware-contrast")

    @property
    def learns_from(self) -> tuple[LearnsFrom, ...]:  # type: ignore[override]
        """Coarse labels as well, where the objective asks for them."""
        made = make_objective(self.objective, classes=1)
        coarse = isinstance(made, Consistency) and made.reads_coarse
        return ("train", "unlabeled", "coarse") if coarse else ("train", "unlabeled")

    def fit(self, view: View) -> Fitted:
        unlabeled, remarks = unlabeled_of(view), list[str]()
        objective = make_objective(self.objective, classes=len(view.labels))
        codes = np.concatenate([truth_of(view.train), _unknown(unlabeled)])
        if not (isinstance(objective, Consistency) and objective.reads_coarse):
            together = replace(numbered(view.train, unlabeled), targets=LabelTargets(codes))
            shown = replace(view, train=together, unlabeled=None)
            return self.train_network(shown, objective, remarks, as_they_are)
        allowed = labels_by_rank(view, remarks)
        if allowed is None:
            raise MisuseError(f"objective={self.objective}: the unlabeled photos have no coarse labels to go by.")
        # Row 0 allows everything; it stands for photos with a label, whose row nobody asks for.
        everything = np.ones((1, len(view.labels)), dtype=np.bool_)
        rows, row_of = np.unique(allowed, axis=0, return_inverse=True)
        objective = replace(objective, allowed=np.concatenate([everything, rows]))
        nothing = ~allowed.any(axis=1)
        remarks.append(f"{int(nothing.sum()):,} unlabeled items are of taxa without any label, and teach nothing.")
        table = np.column_stack([codes, np.concatenate([np.zeros(len(view.train)), 1 + row_of.ravel()])])

        def labels_of(part: str, given: Codes) -> NDArray[Any]:
            if part == "train":
                return table[given].astype(np.int32)
            return np.column_stack([given, np.zeros_like(given)])

        shown = replace(view, train=numbered(view.train, unlabeled), unlabeled=None)
        return self.train_network(shown, objective, remarks, labels_of)

    def training_transform(self, network: Any) -> Any:
        strong = self.transform(network)
        return WeakAndStrong(PhotoTransform(strong.size_px, strong.mean, strong.std), strong)


@dataclass(frozen=True, kw_only=True)
class ClassAware(TwoViews):
    """The same with unlabeled photos contrasted by class where the network is sure (CCSSL, Yang et al. 2022)."""

    objective: str = "class-aware-contrast"


@dataclass(frozen=True, kw_only=True)
class CoarseNetwork(TwoViews):
    """Trains a network on labels, and on kingdom and phylum of unlabeled photos: a hierarchical loss."""

    objective: str = "consistency:weight=0,coarse=1"


@dataclass(frozen=True, kw_only=True)
class DistilledNetwork(ReadsUnlabeled):
    """Self-training: a network learns from labels, and another from them and from what the first says of the rest.

    Su, Cheng and Maji, "A realistic evaluation of semi-supervised learning for fine-grained classification" (2021). The
    teacher is trained by the same settings on the labels alone. Student and teacher start from the same weights.

    Args:
        temperature: By what the logits of the teacher are divided.
        teacher_epochs: How long the teacher learns, 0 for as many epochs as the student; its epochs show labels alone.
    """

    objective: str = "distillation"
    temperature: float = setting(1.0, above=0)
    teacher_epochs: int = setting(0, least=0)

    objectives: ClassVar[tuple[str, ...]] = ("distillation",)

    def fit(self, view: View) -> Fitted:
        unlabeled, remarks = unlabeled_of(view), list[str]()
        plain = make_objective("labels", classes=len(view.labels))
        alone = replace(view, unlabeled=None, scratch=scratch_of(view, "teacher"))
        taught_by = replace(self, epochs=self.teacher_epochs or self.epochs)
        teacher = taught_by.train_network(alone, plain, remarks, as_they_are)
        said = self.scores(teacher.arrays, unlabeled.unlabeled()) / self.temperature
        remarks = [f"Teacher: {remark}" for remark in teacher.remarks]
        codes = np.concatenate([truth_of(view.train), _unknown(unlabeled)])
        table = taught_labels(codes, np.exp(log_softmax(said)).astype(np.float32))
        nobody = np.zeros((0, len(view.labels)), dtype=np.float32)

        def labels_of(part: str, given: Codes) -> NDArray[Any]:
            return table[given] if part == "train" else taught_labels(given, nobody)

        shown = replace(
            view, train=numbered(view.train, unlabeled), unlabeled=None, scratch=scratch_of(view, "student")
        )
        objective = make_objective(self.objective, classes=len(view.labels))
        assert isinstance(objective, Distillation)  # nothing else is among `objectives`
        return self.train_network(shown, objective, remarks, labels_of)


@dataclass(frozen=True, kw_only=True)
class FinetuneOracle(Finetune):
    """Fine-tuning that reads the hidden labels of in-class unlabeled photos: a bound, and not a method for use."""

    learns_from: ClassVar[tuple[LearnsFrom, ...]] = ("train", "unlabeled", "hidden labels")

    def fit(self, view: View) -> Fitted:
        if view.unlabeled is None or view.unlabeled.targets is None:
            raise MisuseError("There are no hidden labels to learn from: take finetune.")
        inside = view.unlabeled.of_known_labels()
        hidden = replace(inside, targets=LabelTargets(inside.truth))  # type: ignore[arg-type]
        fitted = super().fit(replace(view, train=Part.concat([view.train, hidden]), unlabeled=None))
        remark = oracle_remark(len(inside), len(view.unlabeled) - len(inside))
        return replace(fitted, remarks=(remark, *fitted.remarks))
