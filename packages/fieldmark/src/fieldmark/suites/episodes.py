"""Episodes: methods fitted to a few photos per class, again and again, to see how much the draw matters.

```
OUT/
  episodes.json                   every score of every draw, means and both intervals
  shots.png                       the primary metric against the number of photos
  draws/<entry>/<shots>-<draw>.npz  what is finished; the same command goes on from there
```

The test set and val stay whole; only train is drawn from. Two things are uncertain, and they are kept apart: which
photos were drawn for training (given this test set), and which the test set happens to hold (given these draws).

Methods that take photos in second order see them at three scales unless other features are named: with four photos per
class that was better on birds, snakes and fungi. Such features take their axes from train, so that each draw has its
own; the network looks at each photo once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Benchmark, Metric
from fieldmark.errors import InputError, MisuseError
from fieldmark.features.second_order import SECOND_ORDER
from fieldmark.features.settings import FeatureSettings
from fieldmark.fitting import answer_test, prepare, readable_inputs, with_features
from fieldmark.fitting.allowed import seen_by
from fieldmark.fitting.configuration import Configured
from fieldmark.fitting.lineage import lineage_of
from fieldmark.methods import Method
from fieldmark.methods.base import truth_of
from fieldmark.models import Model
from fieldmark.models.supply import InputEncoder, Supply
from fieldmark.scoring import Scorecard, score_predictions
from fieldmark.settings import parse_pairs
from fieldmark.stats.intervals import interval
from fieldmark.steps import make_step
from fieldmark.storage.files import appearing_file, write_json
from fieldmark.version import __version__
from fieldmark.views.open_benchmark import Opened, open_benchmark, open_release
from fieldmark.views.parts import Part, View
from fieldmark.work.grid import GridCell, address_of, run_grid

EPISODES_FILE, PLOT_FILE, DRAWS_FOLDER = "episodes.json", "shots.png", "draws"
ABOUT_INTERVALS = {
    "draws": "95 %, t over draws of the training photos: other draws, with this val and this test set",
    "test_set": "95 %, by leaving out one unit of the test set at a time: other test sets, with these draws",
}


@dataclass(frozen=True)
class MethodEntry:
    """One line of the comparison: a method with settings and steps."""

    name: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, settings: Mapping[str, Any], steps: Sequence[str] = ()) -> MethodEntry:
        """An entry as it is written on the command line.

        >>> MethodEntry.parse("knn:k=1,vote=majority", {"size": "160"}).settings
        {'size': '160', 'k': '1', 'vote': 'majority'}
        """
        method, _, pairs = text.partition(":")
        own = parse_pairs([pair for pair in pairs.split(",") if pair])
        return cls(text, method, {**settings, **own}, tuple(steps))


@dataclass(frozen=True)
class DrawSpread:
    """The mean of a score over draws, with what is uncertain about it.

    Args:
        mean: Over draws.
        draws: The interval over draws; None for one draw.
        test_set: The interval over units of the test set; None where the metric has no pseudo-values.
        values: One score per draw.
    """

    mean: float
    draws: tuple[float, float] | None
    test_set: tuple[float, float] | None
    values: tuple[float, ...]


@dataclass(frozen=True)
class Episodes:
    """What the episodes gave: for each entry, number of shots and metric, the spread."""

    benchmark: str
    entries: tuple[MethodEntry, ...]
    sees: dict[str, str]
    shots: tuple[int, ...]
    photos: dict[int, int]
    draws: int
    metrics: tuple[str, ...]
    spreads: dict[tuple[str, int, str], DrawSpread]
    facts: dict[str, Any]

    def title(self, name: str) -> str:
        """The name of an entry, marked where it is shown more than one item at a time."""
        sees = self.sees[name]
        return name if sees == "item" else f"{name} (sees the {sees})"

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data."""
        rows = [
            {
                "name": entry.name,
                "method": entry.method,
                "settings": dict(entry.settings),
                "steps": list(entry.steps),
                "sees": self.sees[entry.name],
                "shots": {
                    str(shots): {metric: asdict(self.spreads[entry.name, shots, metric]) for metric in self.metrics}
                    for shots in self.shots
                },
            }
            for entry in self.entries
        ]
        return {
            "benchmark": self.benchmark,
            **self.facts,
            "shots": list(self.shots),
            "train_photos": {str(shots): count for shots, count in self.photos.items()},
            "draws": self.draws,
            "intervals": ABOUT_INTERVALS,
            "code_version": __version__,
            "rows": rows,
        }

    def table(self, metric: str | None = None) -> list[list[str]]:
        """One row per entry, one column per number of shots: the mean in percent with its interval over draws."""
        chosen = metric or self.metrics[0]
        return [
            [self.title(entry.name), *(_percent(self.spreads[entry.name, shots, chosen]) for shots in self.shots)]
            for entry in self.entries
        ]


def run_episodes(
    benchmark: str,
    data: str | Path,
    entries: Sequence[MethodEntry],
    out: str | Path,
    *,
    shots: Sequence[int] = (1, 2, 4, 8),
    draws: int = 10,
    seed: int = 0,
    store: Path | None = None,
) -> Episodes:
    """Draws a few training photos per class, fits every entry to them, and scores it on the whole test set.

    Every entry gets the same draws, and a draw of few photos is part of the draw of more, so that lines compare.

    Args:
        benchmark: The name of the benchmark.
        data: The root of the release, with labels for test.
        entries: What is compared.
        out: The folder to write or continue.
        shots: Photos per class. A class that has fewer gives what it has.
        draws: How many draws.
        seed: Of the draws, and of parts that are drawn where the release has none.
        store: The feature store, if not the user's cache.

    Raises:
        InputError: When the release has no labels for test.
        MisuseError: When names or settings are at fault.
    """
    declared = BENCHMARKS[benchmark]
    _check(entries, shots, draws)
    # Names and settings are refused before anything is read.
    prepared = {entry.name: prepare(entry.method, entry.settings, declared.task, entry.steps) for entry in entries}
    opened = open_benchmark(declared, open_release(declared, data), seed=seed)
    entries = [_at_scales(entry, prepared[entry.name].method, opened.dataset.main_input.extractor) for entry in entries]
    prepared = {entry.name: prepare(entry.method, entry.settings, declared.task, entry.steps) for entry in entries}
    if "test" not in opened.truth or opened.view.test is None:
        raise InputError(data, found="no labels for test", expected="a release that holds them")
    prepared = {name: one.on_release(readable_inputs(opened)) for name, one in prepared.items()}
    chosen = {(n, draw): draw_photos(opened.view.train, n, [seed, draw]) for n in shots for draw in range(draws)}
    supplies = {name: _features(configured, opened, store) for name, configured in prepared.items()}
    views: dict[_Features, View] = {}
    of_draw: dict[tuple[_Features, tuple[int, int]], View] = {}  # the last one: they are not small

    def view_of(entry: MethodEntry, drawn: tuple[int, int]) -> View:
        features, configured, rows = supplies[entry.name], prepared[entry.name], chosen[drawn]
        if features.learned:
            if (features, drawn) not in of_draw:
                of_draw.clear()
                view = replace(opened.view, train=opened.view.train.take(rows))
                own = with_features(replace(opened, view=view), configured, store, features.supply)
                of_draw[features, drawn] = own
            return of_draw[features, drawn]
        if features not in views:
            views[features] = with_features(opened, configured, store)
        return replace(views[features], train=views[features].train.take(rows))

    def score(task: tuple[MethodEntry, tuple[int, int]]) -> Scorecard:
        entry, drawn = task
        view = view_of(entry, drawn)
        predictions = answer_test(opened, view, prepared[entry.name].method, entry.steps)
        truth, taxa = opened.truth["test"], opened.dataset.taxa
        return score_predictions(declared, predictions, truth, labels=view.labels, classes=taxa)

    folders = {}
    for entry in entries:
        address = address_of(_content(entry, prepared[entry.name].method, supplies[entry.name], opened, seed), 6)
        folders[entry.name] = Path(out, DRAWS_FOLDER, f"{entry.method}-{address}")
    cells = [
        GridCell(folders[entry.name] / f"{n}-{draw}.npz", (entry, (n, draw))) for n, draw in chosen for entry in entries
    ]
    for _ in run_grid("episodes", cells, score, _write_scored):
        pass
    scored: dict[tuple[str, int], list[_Scored]] = {}
    for cell in cells:
        entry, (n, _) = cell.task
        scored.setdefault((entry.name, n), []).append(_Scored.read(cell.path))
    episodes = _summary(declared, opened, entries, prepared, chosen, scored, tuple(shots), draws, seed)
    models = [model for one in dict.fromkeys(supplies.values()) for model in one.fine_tuned]
    remarks = [remark for model in models for remark in lineage_of(model, opened, data).remarks]
    episodes.facts["remarks"] = sorted(set(remarks), key=remarks.index)
    write_json(Path(out, EPISODES_FILE), episodes.to_json())
    return episodes


@dataclass(frozen=True)
class _Features:
    """The features that an entry needs: entries that need the same ones share them."""

    sources: tuple[tuple[str, FeatureSettings], ...]
    encoders: tuple[tuple[str, InputEncoder], ...]
    fine_tuned: tuple[Model, ...] = field(compare=False)
    supply: Supply = field(compare=False)

    @property
    def learned(self) -> bool:
        """Whether features take something from the photos of train."""
        return any(one.output == SECOND_ORDER for _, one in self.sources)

    def settings(self) -> Any:
        """As plain data; those of the media alone stand for themselves."""
        named = {name: asdict(one) for name, one in self.sources}
        named |= {name: encoder.about for name, encoder in self.encoders}
        return named.get("") if set(named) <= {""} else named

    def digests(self) -> list[str]:
        """Of networks that were trained here."""
        return [source.backbone.digest for source in self.supply.sources.values() if source.fine_tuned]


def _features(configured: Configured, opened: Opened, store: Path | None) -> _Features:
    dataset = opened.dataset
    settings = configured.feature_settings(dataset.inputs_by_name, dataset.main_input.extractor)
    supply = configured.supply(dataset.inputs_by_name, dataset.main_input.extractor, store)
    trained = tuple(source.fine_tuned for source in supply.sources.values() if source.fine_tuned)
    found = _Features(tuple(settings.items()), tuple(supply.encoders.items()), trained, supply)
    return replace(found, supply=supply.keeping_maps()) if found.learned else found


def _at_scales(entry: MethodEntry, method: Method, extractor: str) -> MethodEntry:
    usual = method.usual_features(str(entry.settings.get("backbone", extractor)))
    if usual.get("output") != SECOND_ORDER or {"output", "views"} & set(entry.settings):
        return entry
    return replace(entry, settings={**entry.settings, "output": SECOND_ORDER, "views": "scales"})


def _sees(method: Method, steps: Sequence[str]) -> str:
    return seen_by(method, [make_step(name) for name in steps])


@dataclass(frozen=True)
class _Scored:
    """The scores of one episode: values, and pseudo-values per unit, by metric."""

    values: dict[str, float]
    pseudo: dict[str, NDArray[np.float64]]

    @classmethod
    def read(cls, path: Path) -> _Scored:
        with np.load(path, allow_pickle=False) as stored:
            values = dict(zip(stored["metrics"].tolist(), stored["values"].tolist(), strict=True))
            return cls(values, {name: stored[f"pseudo_{name}"] for name in values if f"pseudo_{name}" in stored})


def _check(entries: Sequence[MethodEntry], shots: Sequence[int], draws: int) -> None:
    names = [entry.name for entry in entries]
    if not entries or len(set(names)) != len(names):
        raise MisuseError("Episodes need at least one method, each named once.")
    if not shots or min(shots) < 1 or len(set(shots)) != len(shots) or draws < 1:
        raise MisuseError("Episodes need numbers of photos of at least 1, each once, and at least one draw.")


def draw_photos(train: Part, shots: int, seed: Sequence[int]) -> NDArray[np.int64]:
    """The rows of so many training photos of each class, observation by observation.

    One photo is taken of each observation in turn, in a drawn order, and second ones only where a class has too few
    observations; what is left of an observation is not used at all. Fewer shots are a part of more.
    """
    rng, truth = np.random.default_rng(seed), truth_of(train)
    observation = np.unique(train.items["observation_id"].to_numpy(), return_inverse=True)[1]
    drawn = []
    for code in np.unique(truth):
        rows = rng.permutation(np.flatnonzero(truth == code))
        turn = np.zeros(len(rows), dtype=np.int64)  # the how-many-eth photo of its observation each one is
        for name in np.unique(observation[rows]):
            own = np.flatnonzero(observation[rows] == name)
            turn[own] = np.arange(len(own))
        drawn.append(rows[np.argsort(turn, kind="stable")][:shots])
    return np.concatenate(drawn)


def _write_scored(path: Path, card: Scorecard) -> None:
    pseudo: dict[str, NDArray[Any]] = {f"pseudo_{name}": values for name, values in card.pseudo.items()}
    with appearing_file(path) as partial, partial.open("wb") as file:
        values = np.array([score.value for score in card.metrics.values()])
        np.savez_compressed(file, metrics=np.array(list(card.metrics)), values=values, **pseudo)  # type: ignore[arg-type]


def _content(entry: MethodEntry, method: Method, features: _Features, opened: Opened, seed: int) -> list[Any]:
    """Everything that the scores of an entry depend on."""
    return [
        opened.benchmark.name,
        opened.benchmark.version,
        opened.dataset.digest,
        seed,
        entry.method,
        method.options,
        features.settings(),
        list(entry.steps),
        __version__,
        *features.digests(),  # the folder of a network may be trained again
    ]


def _summary(
    declared: Benchmark,
    opened: Opened,
    entries: Sequence[MethodEntry],
    prepared: Mapping[str, Configured],
    chosen: Mapping[tuple[int, int], NDArray[np.int64]],
    scored_of: Mapping[tuple[str, int], Sequence[_Scored]],
    shots: tuple[int, ...],
    draws: int,
    seed: int,
) -> Episodes:
    by_name = {metric.name: metric for metric in declared.task.metrics}
    metrics = tuple(next(iter(scored_of.values()))[0].values)
    view, truth = opened.view, opened.truth["test"]
    facts = {
        "data_digest": opened.dataset.digest,
        "simulated": opened.dataset.simulated,
        "seed": seed,
        "classes": len(view.labels),
        "val_photos": len(view.val) if view.val is not None else 0,
        "test_items": len(truth.items),
        "test_units": len(set(truth.units)),
    }
    return Episodes(
        benchmark=declared.name,
        entries=tuple(entries),
        sees={entry.name: _sees(prepared[entry.name].method, entry.steps) for entry in entries},
        shots=shots,
        photos={n: len(chosen[n, 0]) for n in shots},
        draws=draws,
        metrics=metrics,
        spreads={
            (name, n, metric): _spread(by_name[metric], scored, metric)
            for (name, n), scored in scored_of.items()
            for metric in metrics
        },
        facts=facts,
    )


def _spread(metric: Metric, scored: Sequence[_Scored], name: str) -> DrawSpread:
    values = np.array([one.values[name] for one in scored])
    mean = float(values.mean())
    # As numbers without bounds: draws are not successes and failures, so that only the t interval applies.
    over_draws = interval(mean, values, bounds=(-np.inf, np.inf))
    over_units = None
    if all(name in one.pseudo for one in scored):
        units = np.mean([one.pseudo[name] for one in scored], axis=0)
        over_units = interval(mean, units, bounds=metric.bounds)
    return DrawSpread(
        mean=round(mean, 6),
        draws=_ends(over_draws.low, over_draws.high),
        test_set=None if over_units is None else _ends(over_units.low, over_units.high),
        values=tuple(round(float(value), 6) for value in values),
    )


def _ends(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (round(low, 6), round(high, 6))


def _percent(spread: DrawSpread) -> str:
    value = f"{100 * spread.mean:.1f}"
    if spread.draws is None:
        return f"{value} [no interval]"
    return f"{value} [{100 * spread.draws[0]:.1f}, {100 * spread.draws[1]:.1f}]"


def plot_shots(episodes: Mapping[str, Any], path: Path, *, metric: str | None = None, title: str = "") -> None:
    """Draws a score against the number of photos per class; see `fieldmark.reports.charts.shots`."""
    from fieldmark.registry import require

    module: Any = require("fieldmark.reports.charts.shots", "A plot")
    module.plot_shots(episodes, path, metric=metric, title=title)


__all__ = ["DrawSpread", "Episodes", "MethodEntry", "plot_shots", "run_episodes"]
