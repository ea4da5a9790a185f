"""Train cut into folds: methods answer each fold, fitted to the rest, and the answers are kept and scored.

`fit --search` and `fit --method auto` choose by these answers. Each fold of a method is a cell of a grid, known by the
file of its answers, so that what is done is not done again.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit, logit

from fieldmark.benchmarks.declarations import Metric
from fieldmark.errors import MisuseError
from fieldmark.fitting.allowed import allowed_steps
from fieldmark.fitting.configuration import Configured
from fieldmark.fitting.fit_part import (
    answered,
    applied,
    final_fit,
    fit_on_train,
    readable_inputs,
    shown_to,
    supplied_view,
    supply_of,
)
from fieldmark.fitting.place_folds import DISTANCE, HeldOutBackground, folds_by_distance
from fieldmark.methods.base import Fitted
from fieldmark.methods.places.ensemble import on_one_scale, spread_of
from fieldmark.questions.truth import Truth
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.predictions import read_predictions
from fieldmark.scoring import Scorecard, score_predictions
from fieldmark.steps.base import Step
from fieldmark.storage.files import write_json
from fieldmark.version import __version__
from fieldmark.views.open_benchmark import Opened
from fieldmark.views.parts import View
from fieldmark.work.grid import GridCell, address_of

# Chances nearer to 0 and 1 than this are taken to be as near.
CERTAIN = (1e-7, 1 - 1e-7)


@dataclass(frozen=True)
class TrainFolds:
    """Folds of the train part of a benchmark, which keep together what belongs together.

    Args:
        opened: The benchmark.
        folds: How many folds.
        by: What stays together: unit, site, day, block:METRES, cells:METRES, or a column of the items.
        seed: Of the folds.
        store: Where features are kept.
        scratch: The folder of the answers.
        refit: Whether a method learns from val as well before it answers a fold, as it does before it answers test
            where val was drawn from train: its score is then that of nearly as many items as the final model has.

    Where train holds records of presence alone, the background of each fold (the points nearer to its records than to
    others) is held out with it, and some of it is asked about as places where nothing is known to live, if `background`
    says so: held-out records would otherwise be told apart from those of other species only.
    """

    opened: Opened
    folds: int
    by: str
    seed: int
    store: Path | None
    scratch: Path
    refit: bool = False
    background: bool = False
    _views: dict[str, tuple[View, dict[str, str]]] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The fold of each item of train."""
        if self.by == DISTANCE:
            return folds_by_distance(self.opened.view, self.folds, self.seed)
        return self.opened.view.fold_numbers(self.by, self.folds, self.seed, table=self.opened.items["train"])

    @cached_property
    def region(self) -> HeldOutBackground | None:
        """How the background is held out; None where it is not."""
        return HeldOutBackground.of(self.opened.view, self.numbers, self.by, self.seed) if self.background else None

    @cached_property
    def asked_numbers(self) -> NDArray[np.int64]:
        """The fold of each item of the truth: of train, and of the background that is asked about."""
        return self.numbers if self.region is None else np.concatenate([self.numbers, self.region.asked_folds])

    @cached_property
    def truth(self) -> Truth:
        """The truth of train, and of the background that is asked about."""
        truth = replace(self.opened.truth_of_train(), groups=pl.DataFrame())
        if self.region is None:
            return truth
        assert self.opened.view.unlabeled is not None  # it has the background
        further = self.opened.view.unlabeled.take(self.region.asked).item_ids
        return replace(truth, items=(*truth.items, *further), units=(*truth.units, *further))

    def settled(self, configured: Configured) -> Configured:
        """A method with the settings that follow from the release."""
        return configured.on_release(readable_inputs(self.opened))

    def supplied(self, configured: Configured) -> tuple[View, dict[str, str]]:
        """The view with the features of a method, made once for all that share them, and the digests of networks."""
        about = features_text(configured, self.opened)
        if about not in self._views:
            supply = supply_of(configured, self.opened, self.store)
            digests = {name: source.backbone.digest for name, source in supply.sources.items()}
            self._views[about] = supplied_view(self.opened, supply), digests
        return self._views[about]

    def answered(self, configured: Configured, steps: Sequence[str] | None, *, half: bool = False) -> AnsweredFolds:
        """The answers of a method to each fold; none are made yet, but its features are.

        Args:
            configured: The method.
            steps: Its steps.
            half: Whether it learns from half of the other folds alone, which tells what more photos are worth.
        """
        configured = self.settled(configured)
        view, digests = self.supplied(configured)
        folder = self.scratch / address_of(self._content(configured, steps, digests)) / ("half" if half else "")
        paths = [folder / f"fold-{fold + 1}.parquet" for fold in range(self.folds)]
        cells = [
            GridCell(
                path, HeldOutFold(configured, steps, view, fold, *self._cut(fold, half), path, self.refit, self.region)
            )
            for fold, path in enumerate(paths)
        ]
        return AnsweredFolds(tuple(cells))

    def _cut(self, fold: int, half: bool) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which items of train are held out, and which are left out."""
        held_out = self.numbers == fold
        later = (self.numbers - fold) % self.folds
        return held_out, (later > self.folds // 2) if half else np.zeros_like(held_out)

    def learned_from(self, fold: int, *, half: bool = False) -> int:
        """From how many items a method learns before it answers a fold, those of val among them where it does."""
        held_out, left_out = self._cut(fold, half)
        return int((~(held_out | left_out)).sum()) + self.of_val

    @property
    def of_val(self) -> int:
        """How many items of val are learned from in the end."""
        val = self.opened.view.val
        return len(val) if self.refit and self.opened.val_is_drawn and val is not None else 0

    def score(self, answers: Sequence[Any], metric: Metric, folds: Sequence[int] | None = None) -> Scorecard:
        """The answers of some folds together (all, if none are named) under one metric."""
        task = self.opened.benchmark.task
        alone = replace(self.opened.benchmark, task=replace(task, metrics=(metric,), decides="", by=()))
        truth = self.truth if folds is None else self.truth.take(np.isin(self.asked_numbers, list(folds)))
        pooled = type(answers[0]).concat(answers).select(truth.items)
        labels, taxa = self.opened.view.labels, self.opened.dataset.taxa
        return score_predictions(alone, pooled, truth, labels=labels, split="train", classes=taxa)

    def on_one_scale(self, answers: Sequence[LabelScores], weights: Sequence[float]) -> LabelScores:
        """The mean of chances of presence of one fold, each brought to one scale over the background first."""
        of_train = set(self.opened.view.train.item_ids)
        there = np.array([item not in of_train for item in answers[0].items])
        ratios = [np.asarray(logit(np.clip(one.scores.astype(float), *CERTAIN)), dtype=np.float32) for one in answers]
        moments = [spread_of(one[there] if there.any() else one) for one in ratios]
        return answers[0].with_columns(expit(on_one_scale(ratios, moments, np.array(weights))), "score")

    def measurable(self, answers: Sequence[Any], folds: Sequence[int] | None = None) -> Metric:
        """The metric that decides the task, or the first of its metrics that can be measured on train.

        Train holds no unknown items, so that how well those are told apart cannot be measured there.
        """
        task = self.opened.benchmark.task
        for metric in (task.deciding, *task.metrics):
            score = self.score(answers, metric, folds).metrics.get(metric.name)
            if score is not None and not math.isnan(score.value):
                return metric
        name = self.opened.benchmark.name
        raise MisuseError(f"No metric of {name} can be measured on train, so that nothing can be chosen.")

    def _content(
        self, configured: Configured, steps: Sequence[str] | None, networks: Mapping[str, str]
    ) -> dict[str, Any]:
        """Everything that the answers depend on."""
        opened = self.opened
        return {
            "benchmark": [opened.benchmark.name, opened.benchmark.version, opened.dataset.digest],
            "split": opened.split.digest if opened.split is not None else None,
            # As in saved models, settings added later go unsaid at their defaults, so that earlier trials count.
            "method": [configured.name, configured.method.options],
            "features": [features_text(configured, opened), dict(networks)],
            "steps": None if steps is None else list(steps),
            "folds": [self.folds, self.by, self.seed],
            "code": __version__,
            **({"refit": True} if self.refit else {}),
            **({"background": True} if self.background else {}),
            **({"of": len(opened.view.train)} if self.by != "unit" else {}),
        }


@dataclass(frozen=True)
class AnsweredFolds:
    """The folds of one method as cells of a grid."""

    cells: tuple[GridCell[HeldOutFold], ...]

    def read(self, folds: Sequence[int] | None = None) -> list[Any]:
        """The answers to some folds, or to all."""
        return [read_predictions(self.cells[fold].path) for fold in self._meant(folds)]

    def seconds(self, folds: Sequence[int] | None = None) -> float:
        """How long they took."""
        texts = (self.cells[one].path.with_suffix(".json").read_text(encoding="utf-8") for one in self._meant(folds))
        return float(sum(json.loads(text)["seconds"] for text in texts))

    def _meant(self, folds: Sequence[int] | None) -> Sequence[int]:
        return range(len(self.cells)) if folds is None else folds


@dataclass(frozen=True)
class HeldOutFold:
    """One fold that is held out of a view, what is left out besides, who answers it, and where the answers go."""

    configured: Configured
    steps: Sequence[str] | None
    view: View
    fold: int
    held_out: NDArray[np.bool_]
    left_out: NDArray[np.bool_]
    path: Path
    refit: bool = False
    region: HeldOutBackground | None = None

    def answer(self, opened: Opened) -> None:
        """Fits to the rest of train, answers what is held out, and keeps the answers."""
        start = time.perf_counter()
        task, method = opened.benchmark.task, self.configured.method
        rest, asked = self.view.hold_out(self.held_out)
        if self.left_out.any():
            rest = replace(rest, train=rest.train.take(~self.left_out[~self.held_out]))
        if self.region is not None:
            rest, asked = self.region.held_out(rest, asked, self.fold)
        scratch = self.path.parent / f"{self.path.stem}.training"
        rest = replace(rest, test=asked.unlabeled(), scratch=scratch)
        steps = allowed_steps(self.configured.name, method, task, self.steps)
        fitted_steps: tuple[Step, ...] = ()
        if self.refit and not steps and opened.val_is_drawn and not method.chooses_on_val:
            # Nothing is fitted on val: the method need not learn without it first.
            rest = rest.with_val_in_train() if method.learns_from_val else rest
            fitted = Fitted.to(method, shown_to(method, rest, opened.hidden))
        else:
            fitted, fitted_steps, *_ = fit_on_train(method, steps, rest, opened)
            if self.refit:
                fitted, _ = final_fit(fitted, replace(rest, scratch=scratch / "refit"), opened)
        predictions = answered(fitted, asked.unlabeled(), rest.labels, task)
        answers = applied(fitted_steps, predictions, asked.items, task, None)
        write_json(self.path.with_suffix(".json"), {"seconds": time.perf_counter() - start})
        answers.write(self.path)  # last: a fold whose answers are there is done


def features_text(configured: Configured, opened: Opened) -> str:
    """The features of a method as text: methods with the same share them."""
    dataset = opened.dataset
    settings = configured.feature_settings(dataset.inputs_by_name, dataset.main_input.extractor)
    features = {name: asdict(one) for name, one in settings.items()}
    features |= {name: encoder.about for name, encoder in configured.encoders(dataset.inputs_by_name).items()}
    return json.dumps(features, sort_keys=True, default=str)
