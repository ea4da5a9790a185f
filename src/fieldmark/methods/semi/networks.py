"""Fine-tuning that reads unlabeled photos: two views of each, contrast by class, and the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fieldmark.benchmarks.declarations import LearnsFrom
from fieldmark.errors import MisuseError
from fieldmark.labels import UNKNOWN
from fieldmark.methods.base import Fitted
from fieldmark.methods.finetune import Finetune
from fieldmark.methods.semi.heads import oracle_remark
from fieldmark.questions.targets import LabelTargets
from fieldmark.training.photos import PhotoTransform
from fieldmark.training.sources import WeakAndStrong
from fieldmark.views import Part, View


@dataclass(frozen=True, kw_only=True)
class TwoViews(Finetune):
    """Trains a network on labels, and on the consistency of two views of unlabeled photos (FixMatch).

    The weak view is a crop, the strong one a crop changed by RandAugment. Settings are those of `finetune`; mixup does
    not go with it, and the batch must be a multiple of one labeled photo with its `unlabeled_each` others.
    """

    objective: str = "consistency"

    learns_from: ClassVar[tuple[LearnsFrom, ...]] = ("train", "unlabeled")
    objectives: ClassVar[tuple[str, ...]] = ("consistency", "class-aware-contrast")

    @classmethod
    def expand(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        usual = {"mixup": 0.0, "objective": cls.objective, "loss": "cross-entropy", "best_by": "top_1"}
        recipe = super().expand({name: value for name, value in settings.items() if name == "recipe"})
        return {**recipe, **usual, **settings}

    def fit(self, view: View) -> Fitted:
        if view.unlabeled is None:
            raise MisuseError("There are no unlabeled photos to learn from: take finetune.")
        unknown = LabelTargets(np.full(len(view.unlabeled), UNKNOWN, dtype=np.int32))
        unlabeled = replace(view.unlabeled, targets=unknown)
        return super().fit(replace(view, train=Part.concat([view.train, unlabeled]), unlabeled=None))

    def training_transform(self, network: Any) -> Any:
        strong = self.transform(network)
        return WeakAndStrong(PhotoTransform(strong.size_px, strong.mean, strong.std), strong)


@dataclass(frozen=True, kw_only=True)
class ClassAware(TwoViews):
    """The same with unlabeled photos contrasted by class where the network is sure (CCSSL, Yang et al. 2022)."""

    objective: str = "class-aware-contrast"


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
