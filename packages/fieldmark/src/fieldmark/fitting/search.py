"""Settings chosen by cross-validation on train.

Every combination of the values is fitted once for each fold to the rest of train, and answers the items held out. The
answers of all folds together are scored by the metric that decides the task (or the first of its metrics that can be
measured on train); the best combination wins, the first among equals. Val keeps its part: settings that stay open, and
steps, are fitted on it in every fold.

A fold that is done lies in `OUT.search` until the run is complete, so that an interrupted search goes on, and a search
over further values computes only what is new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from fieldmark.benchmarks.declarations import Metric
from fieldmark.errors import MisuseError
from fieldmark.fitting.configuration import Configured, configured_method
from fieldmark.fitting.search_table import Searched, TrialResult
from fieldmark.fitting.train_folds import TrainFolds
from fieldmark.settings import Settings, setting
from fieldmark.splits.rules import rule_named
from fieldmark.views.open_benchmark import Opened
from fieldmark.work.grid import run_grid

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
    train = TrainFolds(opened, search.folds, search.by, seed, store, scratch)
    answered = [train.answered(trial.configured, steps) for trial in trials]
    cells = [cell for own in answered for cell in own.cells]
    for _ in run_grid("searching settings", cells, lambda fold: fold.answer(opened)):
        pass
    results: list[TrialResult] = []
    metric: Metric | None = None
    for trial, own in zip(trials, answered, strict=True):
        metric = metric or train.measurable(own.read())
        results.append(TrialResult(trial.settings, train.score(own.read(), metric), own.seconds()))
    assert metric is not None  # there is at least one trial
    return Searched(tuple(results), metric, search.space, search.folds, search.by, seed)


def _typed(given: Mapping[str, Any], configured: Configured) -> dict[str, Any]:
    """Searched settings with the values that they have in the method or in its features."""
    features: dict[str, Any] = {}
    for own in configured.features.values():
        features |= own
    return {key: getattr(configured.method, key, features.get(key, value)) for key, value in given.items()}
