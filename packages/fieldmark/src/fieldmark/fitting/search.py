"""Settings chosen by cross-validation on train.

Every combination of the values is fitted once for each fold to the rest of train, and answers the items held out. The
answers of all folds together are scored by the metric that decides the task (or the first of its metrics that can be
measured on train); the best combination wins, the first among equals. Val keeps its part: settings that stay open, and
steps, are fitted on it in every fold.

A fold that is done lies in `OUT.search` until the run is complete, so that an interrupted search goes on, and a search
over further values computes only what is new.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from fieldmark.benchmarks.declarations import Metric
from fieldmark.errors import MisuseError
from fieldmark.fitting.configuration import Configured, configured_method
from fieldmark.fitting.fit_part import answer_test, readable_inputs, supplied_view, supply_of
from fieldmark.fitting.search_table import Searched, TrialResult
from fieldmark.questions.truth import Truth
from fieldmark.runs.predictions import read_predictions
from fieldmark.scoring import Scorecard, score_predictions
from fieldmark.settings import Settings, setting
from fieldmark.splits.rules import rule_named
from fieldmark.storage.files import write_json
from fieldmark.version import __version__
from fieldmark.views.open_benchmark import Opened
from fieldmark.views.parts import View
from fieldmark.work.blocks import blocks_of
from fieldmark.work.grid import GridCell, address_of, run_grid

OWN_SPACE = "auto"


@dataclass(frozen=True)
class Search(Settings):
    """What to search, and how.

    Args:
        space: The values of each setting, in the order of preference among equals; empty for those that the method
            suggests.
        folds: How many folds.
        by: What stays together: unit, site, day, block:METRES, cells:METRES, or a column of the items.
    """

    space: Mapping[str, Sequence[Any]]
    folds: int = setting(5, least=2)
    by: str = "unit"

    def check_settings(self) -> None:
        if rule_named(self.by).keeps_classes_whole:
            raise MisuseError("A search cannot hold out whole classes: no setting can name what was never shown.")


def parse_search(pairs: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The space that `--search` asks for; empty for that of the method.

    >>> parse_search(["k=1,5", "vote=weighted,majority"]), parse_search(["auto"])
    ({'k': ('1', '5'), 'vote': ('weighted', 'majority')}, {})
    """
    space: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        key, equals, values = pair.partition("=")
        given = tuple(dict.fromkeys(value.strip() for value in values.split(",") if value.strip()))
        if pair.strip() == OWN_SPACE and len(pairs) == 1:
            return {}
        if not equals or not key.strip() or not given:
            example = "--search l2=0.01,0.1,1, or --search auto alone for what the method suggests"
            raise MisuseError(f"--search {pair}: found no key=value,value, expected for example {example}.")
        space[key.strip()] = given
    return space


@dataclass(frozen=True)
class Trial:
    """One combination of settings, with the method made from it."""

    settings: Mapping[str, Any]
    configured: Configured


def plan(name: str, settings: Mapping[str, Any], search: Search, seed: int) -> tuple[Search, list[Trial]]:
    """All combinations, each checked before anything is read; and the search with the space that is meant.

    Raises:
        MisuseError: For settings that do not exist, or that are both set and searched.
    """
    first = configured_method(name, settings, seed).method
    asked = search.space or first.search_space
    if not asked:
        raise MisuseError(f"The method {name!r} suggests nothing to search: name it, such as --search KEY=VALUE,VALUE.")
    both = sorted(set(asked) & set(settings))
    if both and search.space:
        raise MisuseError(f"{both[0]} is both set and searched: leave out --set {both[0]} or --search {both[0]}.")
    asked = {key: values for key, values in asked.items() if key not in settings}
    if not asked:
        raise MisuseError(f"All that the method {name!r} suggests to search is set: {', '.join(both)}.")
    trials = []
    for values in product(*asked.values()):
        given = dict(zip(asked, values, strict=True))
        configured = configured_method(name, {**settings, **given}, seed)
        trials.append(Trial(_typed(given, configured), configured))
    space = {key: list(dict.fromkeys(trial.settings[key] for trial in trials)) for key in asked}
    return replace(search, space=space), trials


def run_search(
    search: Search,
    trials: Sequence[Trial],
    opened: Opened,
    *,
    steps: Sequence[str] | None,
    seed: int,
    store: Path | None,
    scratch: Path,
) -> Searched:
    """Runs every trial on every fold and scores it.

    Args:
        search: How train is cut.
        trials: What is tried.
        opened: The benchmark.
        steps: The steps after the method, as for `fit`.
        seed: The seed of the folds.
        store: Where features are kept.
        scratch: The folder for what is done; it stays where the search is interrupted.
    """
    trials = [replace(one, configured=one.configured.on_release(readable_inputs(opened))) for one in trials]
    table = opened.items["train"]
    truth = replace(opened.truth_of_train(), groups=pl.DataFrame())
    numbers = opened.view.fold_numbers(search.by, search.folds, seed, table=table)
    views: dict[str, tuple[View, dict[str, str]]] = {}
    cells: list[GridCell[_Fold]] = []
    for trial in trials:
        about = _features(trial.configured, opened)
        if about not in views:
            supply = supply_of(trial.configured, opened, store)
            digests = {name: source.backbone.digest for name, source in supply.sources.items()}
            views[about] = supplied_view(opened, supply), digests
        view, digests = views[about]
        folder = scratch / address_of(_content(search, trial, opened, steps, seed, digests))
        paths = [folder / f"fold-{fold + 1}.parquet" for fold in range(search.folds)]
        cells += [GridCell(path, _Fold(trial, view, numbers == fold, path)) for fold, path in enumerate(paths)]
    for _ in run_grid("searching settings", cells, lambda fold: fold.answer(opened, steps)):
        pass
    results: list[TrialResult] = []
    metric: Metric | None = None
    for trial, own in zip(trials, blocks_of(cells, search.folds), strict=True):
        answers = [read_predictions(cell.path) for cell in own]
        seconds = sum(json.loads(cell.path.with_suffix(".json").read_text(encoding="utf-8"))["seconds"] for cell in own)
        metric = metric or _measurable(opened, answers, truth)
        results.append(TrialResult(trial.settings, _score(opened, answers, truth, metric), seconds))
    assert metric is not None  # there is at least one trial
    return Searched(tuple(results), metric, search.space, search.folds, search.by, seed)


@dataclass(frozen=True)
class _Fold:
    """One fold of a trial: what is held out of the view, and where the answers go."""

    trial: Trial
    view: View
    held_out: Any
    path: Path

    def answer(self, opened: Opened, steps: Sequence[str] | None) -> None:
        """Fits to the rest of train, answers what is held out, and keeps the answers."""
        start = time.perf_counter()
        rest, asked = self.view.hold_out(self.held_out)
        scratch = self.path.parent / f"{self.path.stem}.training"
        rest = replace(rest, test=asked.unlabeled(), scratch=scratch)
        answers = answer_test(opened, rest, self.trial.configured.method, steps)
        write_json(self.path.with_suffix(".json"), {"seconds": time.perf_counter() - start})
        answers.write(self.path)  # last: a fold whose answers are there is done


def _score(opened: Opened, answers: Sequence[Any], truth: Truth, metric: Metric) -> Scorecard:
    """The answers of all folds together under one metric."""
    task = opened.benchmark.task
    alone = replace(opened.benchmark, task=replace(task, metrics=(metric,), decides="", by=()))
    pooled = type(answers[0]).concat(answers).select(truth.items)
    labels, taxa = opened.view.labels, opened.dataset.taxa
    return score_predictions(alone, pooled, truth, labels=labels, split="train", classes=taxa)


def _measurable(opened: Opened, answers: Sequence[Any], truth: Truth) -> Metric:
    """The metric that decides the task, or the first of its metrics that can be measured on train.

    Train holds no unknown items, so that how well those are told apart cannot be measured there.
    """
    task = opened.benchmark.task
    for metric in (task.deciding, *task.metrics):
        score = _score(opened, answers, truth, metric).metrics.get(metric.name)
        if score is not None and not math.isnan(score.value):
            return metric
    raise MisuseError(f"No metric of {opened.benchmark.name} can be measured on train, so that nothing can be chosen.")


def _typed(given: Mapping[str, Any], configured: Configured) -> dict[str, Any]:
    """Searched settings with the values that they have in the method or in its features."""
    features: dict[str, Any] = {}
    for own in configured.features.values():
        features |= own
    return {key: getattr(configured.method, key, features.get(key, value)) for key, value in given.items()}


def _features(configured: Configured, opened: Opened) -> str:
    """The features of a trial as text: trials with the same share them."""
    dataset = opened.dataset
    settings = configured.feature_settings(dataset.inputs_by_name, dataset.main_input.extractor)
    features = {name: asdict(one) for name, one in settings.items()}
    features |= {name: encoder.about for name, encoder in configured.encoders(dataset.inputs_by_name).items()}
    return json.dumps(features, sort_keys=True, default=str)


def _content(
    search: Search,
    trial: Trial,
    opened: Opened,
    steps: Sequence[str] | None,
    seed: int,
    networks: Mapping[str, str],
) -> dict[str, Any]:
    """Everything that the answers of a trial depend on."""
    return {
        "benchmark": [opened.benchmark.name, opened.benchmark.version, opened.dataset.digest],
        "split": opened.split.digest if opened.split is not None else None,
        # As in saved models, settings added later go unsaid at their defaults, so that trials made before them count.
        "method": [trial.configured.name, trial.configured.method.options],
        "features": [_features(trial.configured, opened), dict(networks)],
        "steps": None if steps is None else list(steps),
        "folds": [search.folds, search.by, seed],
        "code": __version__,
    }
