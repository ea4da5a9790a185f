"""What each modality is worth: every one alone, each left out, and all together, on the same units.

```
OUT/
  ablation.json       every run with its scores, and its paired differences from all modalities and from the first alone
  settings.json       what was asked, so that other settings are not taken for the same
  all/                the folder of a run, see `fieldmark.fitting.harness`
  only-NAME/          one modality alone
  without-NAME/       all but one
  members/            fitted classifiers of single modalities, which runs of the method `fusion` share
```
An interrupted ablation goes on where it was; a run that is there with the same settings is not made again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError, MisuseError, did_you_mean
from fieldmark.fitting import Search, fit, prepare, readable_inputs
from fieldmark.methods.modalities import ALL, TOGETHER, is_readable, modalities_of
from fieldmark.runs.provenance import ABLATION_FILE, RUN_FILE, Run
from fieldmark.scoring import SCORECARD_FILE, Score, Scorecard
from fieldmark.scoring.scorecard import units_rested_on
from fieldmark.splits.files import read_split
from fieldmark.stats import comparison
from fieldmark.stats.comparison import Difference
from fieldmark.storage.addresses import recorded_place
from fieldmark.storage.files import only_writer, write_json
from fieldmark.tables.inputs import Input
from fieldmark.views.open_benchmark import Opened, open_benchmark, open_release
from fieldmark.work.grid import GridCell, run_grid

SETTINGS_FILE, MEMBERS_FOLDER, WHOLE = "settings.json", "members", "all"
ONLY, WITHOUT = "only-", "without-"


@dataclass(frozen=True)
class AblationRow:
    """One run of an ablation.

    Args:
        name: The name of its folder.
        modalities: What it reads.
        score: Under the metric that was asked for.
        less_all: This run minus the one with all modalities, paired over units; None for that one.
        less_first: This run minus the first modality alone; None for that one.
    """

    name: str
    modalities: tuple[str, ...]
    score: Score
    less_all: Difference | None
    less_first: Difference | None

    def to_json(self) -> dict[str, Any]:
        """The row as plain data."""
        apart = {"less_all": self.less_all, "less_first": self.less_first}
        told = {name: None if one is None else one.to_json() for name, one in apart.items()}
        return {"run": self.name, "modalities": list(self.modalities), **asdict(self.score), **told}


@dataclass(frozen=True)
class Ablation:
    """All runs of an ablation by one metric.

    Args:
        benchmark, split, metric: What was compared.
        method: Which method put the modalities together.
        modalities: All of them, the main one first.
        units: How many independent units all runs share.
        rows: All modalities, each alone, each left out.
        simulated: Whether the data are.
        folder: Where the runs lie.
    """

    benchmark: str
    split: str
    metric: str
    method: str
    modalities: tuple[str, ...]
    units: int
    rows: tuple[AblationRow, ...]
    simulated: bool
    folder: Path

    @property
    def is_share(self) -> bool:
        """Whether the metric reads well in percent."""
        return next(m for m in BENCHMARKS[self.benchmark].task.metrics if m.name == self.metric).is_share

    def to_json(self) -> dict[str, Any]:
        """The ablation as plain data."""
        about = {name: getattr(self, name) for name in ("benchmark", "split", "metric", "method", "units", "simulated")}
        return {**about, "modalities": list(self.modalities), "rows": [row.to_json() for row in self.rows]}

    def table(self) -> list[dict[str, str]]:
        """The table that people read, one row per run."""
        scale, digits = (100.0, 1) if self.is_share else (1.0, 3)
        first = self.modalities[0]
        return [
            {
                "run": row.name,
                self.metric: _bounds(row.score.value, row.score.low, row.score.high, scale, digits, signed=False),
                "less all": _apart(row.less_all, scale, digits),
                f"less {first} alone": _apart(row.less_first, scale, digits),
            }
            for row in self.rows
        ]


def ablate(
    benchmark: str,
    data: str | Path,
    out: str | Path,
    *,
    modalities: Sequence[str] = (),
    method: str = "fusion",
    settings: Mapping[str, Any] | None = None,
    steps: Sequence[str] | None = None,
    metric: str | None = None,
    seed: int = 0,
    split: str | Path | None = None,
    search: Search | None = None,
    store: str | Path | None = None,
    overwrite: bool = False,
) -> Ablation:
    """Fits a method to every modality alone, to all but each one, and to all, and compares them on the same units.

    Args:
        benchmark: The name of the benchmark.
        data: The root of the release.
        out: The folder for all runs; existing runs with the same settings are kept.
        modalities: At least two, each an input or several joined by `+`; all that the release has and the task allows
            if not given. The first is the main one, with which the others are compared.
        method: A method with the setting `inputs`: fusion, joint, tabular or linear.
        settings: Settings of the method and of its features, for every run.
        steps: The steps after the method, as for `fit`.
        metric: The metric; the primary one if not given.
        seed: The random seed.
        split: A split file in place of the split of the benchmark.
        search: Settings to choose by cross-validation on train, for every run by itself.
        store: The feature store, if not the user's cache.
        overwrite: Whether existing runs are repeated.

    Raises:
        InputError: When the release or the split is invalid, or `out` contains something else.
        MisuseError: When names or settings are.
    """
    declared = BENCHMARKS[benchmark]
    comparable = [one.name for one in declared.task.metrics]
    if metric is not None and metric not in comparable:
        raise MisuseError(f"{benchmark} has no metric called {metric!r}. {did_you_mean(metric, comparable)}")
    given = dict(settings or {})
    if "inputs" in given:
        raise MisuseError("An ablation sets inputs itself: name them with --modalities.")
    names = tuple(TOGETHER.join(group) for group in modalities_of(",".join(modalities)))
    configured = prepare(method, {**given, "inputs": _inputs(method, names) or ALL}, declared.task, steps)
    cut_by = read_split(Path(split)) if split is not None else None
    opened = open_benchmark(declared, open_release(declared, data), seed=seed, split=cut_by)
    takes: Callable[[Input], bool] = getattr(configured.method, "takes", is_readable)
    names = names or tuple(name for name, one in readable_inputs(opened).items() if takes(one))
    _refuse_unfit(names, given, opened)
    folder = Path(out)
    asked_for = _settings(benchmark, data, method, given, steps, seed, split, search)
    _refuse_other(folder, asked_for, overwrite=overwrite)
    runs = runs_of(names)
    folder.mkdir(parents=True, exist_ok=True)
    with only_writer(folder):
        write_json(folder / SETTINGS_FILE, asked_for)

        def fit_run(name: str) -> None:
            fit(
                benchmark, data, method, folder / name,
                settings={**_own(given, runs[name]), "inputs": _inputs(method, runs[name])},
                steps=steps, seed=seed, split=split, search=search, store=store,
                overwrite=(folder / name).exists(), shared=folder / MEMBERS_FOLDER,
            )  # fmt: skip

        def is_done(cell: GridCell[str]) -> bool:
            return not overwrite and _is_there(folder / cell.task, _inputs(method, runs[cell.task]))

        cells = [GridCell(folder / name / RUN_FILE, name) for name in runs]
        for _ in run_grid("ablation", cells, fit_run, is_done=is_done):
            pass
        cards = {name: Scorecard.read(folder / name / SCORECARD_FILE) for name in runs}
        result = _compared(cards, runs, names, metric or comparable[0], method, folder)
        write_json(folder / ABLATION_FILE, result.to_json())
        shutil.rmtree(folder / MEMBERS_FOLDER, ignore_errors=True)
    return result


def runs_of(modalities: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The runs of an ablation by their names, each with what it reads.

    With two modalities, leaving out one is the other alone.

    >>> runs_of(["photo", "date"])
    {'all': ('photo', 'date'), 'only-photo': ('photo',), 'only-date': ('date',)}
    """
    runs = {WHOLE: tuple(modalities)} | {f"{ONLY}{name}": (name,) for name in modalities}
    if len(modalities) > 2:
        runs |= {f"{WITHOUT}{name}": tuple(one for one in modalities if one != name) for name in modalities}
    return runs


def _own(given: Mapping[str, Any], read: Sequence[str]) -> dict[str, Any]:
    """The settings without those of inputs that a run does not read."""
    names = {name for one in read for name in one.split(TOGETHER)}
    return {key: value for key, value in given.items() if "." not in key or key.partition(".")[0] in names}


def _settings(
    benchmark: str,
    data: str | Path,
    method: str,
    given: Mapping[str, Any],
    steps: Sequence[str] | None,
    seed: int,
    split: str | Path | None,
    search: Search | None,
) -> dict[str, Any]:
    """Everything that the runs of an ablation have in common, as plain data."""
    return {
        "benchmark": benchmark,
        "version": BENCHMARKS[benchmark].version,
        "data": recorded_place(data),
        "method": method,
        "settings": {key: str(value) for key, value in given.items()},
        "steps": None if steps is None else list(steps),
        "seed": seed,
        "split": None if split is None else read_split(Path(split)).digest,
        "search": None if search is None else json.loads(json.dumps(asdict(search), default=str)),
    }


def _refuse_other(folder: Path, asked_for: Mapping[str, Any], *, overwrite: bool) -> None:
    """Refuses a folder that holds something else, or an ablation with other settings."""
    if not folder.exists() or not any(folder.iterdir()):
        return
    path = folder / SETTINGS_FILE
    hint = "Name another folder with --out."
    if not path.exists():
        raise InputError(folder, found="something else", expected="nothing, or an ablation to go on with", hint=hint)
    before = json.loads(path.read_text(encoding="utf-8"))
    if before != asked_for and not overwrite:
        other = next(key for key in asked_for if before.get(key) != asked_for[key])
        raise InputError(
            path,
            found=f"an ablation with {other} = {before.get(other)}",
            expected=f"{other} = {asked_for[other]}",
            hint="Name another folder with --out, or pass --overwrite to make its runs again.",
        )


def _is_there(place: Path, inputs: str) -> bool:
    """Whether a run with the same modalities was finished before."""
    return (place / RUN_FILE).exists() and Run.read(place).options.get("inputs") == inputs


def _inputs(method: str, modalities: Sequence[str]) -> str:
    """The setting `inputs` of a run; linear puts all inputs side by side and knows no modalities of several."""
    joined = ",".join(modalities)
    return joined.replace(TOGETHER, ",") if method == "linear" else joined


def _refuse_unfit(modalities: Sequence[str], given: Mapping[str, Any], opened: Opened) -> None:
    """Refuses fewer than two modalities, inputs that nobody has, and settings of inputs that are not asked for."""
    if len(modalities) < 2:
        raise MisuseError(f"An ablation needs at least two modalities; found {', '.join(modalities) or 'none'}.")
    allowed = [name for name in opened.dataset.inputs_by_name if name in opened.benchmark.task.inputs]
    inputs = [name for one in modalities for name in one.split(TOGETHER)]
    for name in inputs:
        if name not in allowed:
            raise MisuseError(f"{opened.dataset.release.root} has no input {name!r}. {did_you_mean(name, allowed)}")
    for key in given:
        owner, dot, setting = key.partition(".")
        if dot and owner not in inputs:
            told = ", ".join(inputs)
            raise MisuseError(f"There is no input called {owner!r} to set {setting} of; the modalities are {told}.")


def _compared(
    cards: Mapping[str, Scorecard],
    runs: Mapping[str, tuple[str, ...]],
    names: tuple[str, ...],
    metric: str,
    method: str,
    folder: Path,
) -> Ablation:
    whole = cards[WHOLE]
    rows = []
    for name, card in cards.items():
        if card.unit_ids != whole.unit_ids or card.split != whole.split:
            hint = "Delete it, or pass --overwrite."
            raise InputError(folder / name, found="a score on other units", expected="those of all/", hint=hint)
        rows.append(
            AblationRow(
                name,
                runs[name],
                card.metrics[metric],
                None if name == WHOLE else _difference(card, whole, metric),
                None if name == f"{ONLY}{names[0]}" else _difference(card, cards[f"{ONLY}{names[0]}"], metric),
            )
        )
    simulated = bool(whole.provenance.get("simulated"))
    return Ablation(whole.benchmark, whole.split, metric, method, names, whole.units, tuple(rows), simulated, folder)


def _difference(card: Scorecard, other: Scorecard, metric: str) -> Difference | None:
    """One run minus another, unit by unit; None for a metric that has no values by unit."""
    if metric not in card.pseudo:
        return None
    declared = next(one for one in BENCHMARKS[card.benchmark].task.metrics if one.name == metric)
    values = np.array([card.metrics[metric].value, other.metrics[metric].value])
    pseudo = np.stack([card.pseudo[metric], other.pseudo[metric]])
    rests_on = units_rested_on(one.metrics[metric] for one in (card, other))
    up = declared.higher_is_better
    return comparison.compare(values, pseudo, higher_is_better=up, rests_on=rests_on).differences[0]


def _apart(apart: Difference | None, scale: float, digits: int) -> str:
    if apart is None:
        return ""
    return _bounds(apart.value, apart.interval.low, apart.interval.high, scale, digits, signed=True)


def _bounds(value: float, low: float | None, high: float | None, scale: float, digits: int, *, signed: bool) -> str:
    form = f"{'+' if signed else ''}.{digits}f"
    around = "" if low is None or high is None else f" [{scale * low:{form}}, {scale * high:{form}}]"
    return f"{scale * value:{form}}{around}"
