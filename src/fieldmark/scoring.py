"""Task + run + truth -> scorecard. There is no second scorer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS, Benchmark
from fieldmark.datasets import open_dataset
from fieldmark.errors import InputError, MisuseError
from fieldmark.files import write_json
from fieldmark.labels import UNKNOWN, Labels
from fieldmark.runs.predictions import Predictions
from fieldmark.runs.provenance import RUN_FILE, Run
from fieldmark.stats.intervals import interval, pseudo_values
from fieldmark.tables import read_csv
from fieldmark.version import __version__
from fieldmark.views import Truth, open_benchmark

SCORECARD_FILE = "scorecard.json"
RUN_CSV = "run.csv"
LEVEL = 0.95


@dataclass(frozen=True)
class Score:
    """One value with its interval, or with the reason why there is none."""

    value: float
    low: float | None
    high: float | None
    interval: str
    reason: str | None = None


@dataclass(frozen=True)
class Scorecard:
    """What a run scored, how sure that is, and what it was computed from.

    Args:
        benchmark, version, split: What was scored, on which part.
        items, units, classes: How many answers, how many independent units behind them, how many classes.
        metrics: The values with their intervals, the primary metric first.
        conventions: In words, for each metric and for the intervals.
        provenance: Method, what it saw, and whether the data are simulated (None where not known).
        pseudo: One pseudo-value per unit and metric, for comparisons; kept out of the JSON.
        unit_ids: The units behind the pseudo-values.
    """

    benchmark: str
    version: str
    split: str
    items: int
    units: int
    classes: int
    metrics: dict[str, Score]
    conventions: dict[str, str]
    provenance: dict[str, Any] = field(default_factory=dict)
    pseudo: dict[str, NDArray[np.float64]] = field(default_factory=dict, repr=False, compare=False)
    unit_ids: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """The scorecard as plain data, without the pseudo-values."""
        data = asdict(self)
        del data["pseudo"], data["unit_ids"]
        for score in data["metrics"].values():
            if score["reason"] is None:
                del score["reason"]
        return data

    def write(self, path: Path) -> None:
        """Writes the scorecard as JSON, and its pseudo-values beside it as Parquet."""
        write_json(path, self.to_json())
        pl.DataFrame({"unit": self.unit_ids, **self.pseudo}).write_parquet(path.with_suffix(".units.parquet"))

    @classmethod
    def read(cls, path: Path) -> Scorecard:
        """Reads a scorecard and its pseudo-values."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            data["metrics"] = {name: Score(**score) for name, score in data["metrics"].items()}
            units = pl.read_parquet(path.with_suffix(".units.parquet"))
        except FileNotFoundError as error:
            hint = "Make one with `fieldmark fit` or `fieldmark score`."
            raise InputError(path, found="no such file", expected="a scorecard", hint=hint) from error
        pseudo = {name: units[name].to_numpy() for name in units.columns if name != "unit"}
        return cls(**data, pseudo=pseudo, unit_ids=tuple(units["unit"]))


def score_predictions(
    benchmark: Benchmark, predictions: Predictions, truth: Truth, *, split: str = "test", run: Run | None = None
) -> Scorecard:
    """Scores predictions against the truth.

    Args:
        benchmark: What was asked.
        predictions: The answers, at least for every item of the truth.
        truth: The true labels and the independent units.
        split: The part that is scored.
        run: Where the predictions came from, if known.
    """
    unit_ids, unit = np.unique(np.array(truth.units, dtype=str), return_inverse=True)
    depth = max([int(metric.options.get("k", 1)) for metric in benchmark.task.metrics])
    ranked = predictions.select(truth.items).top(depth)
    fields = {
        "truth": _codes(truth, predictions.labels),
        "ranked": ranked,
        "predicted": ranked[:, 0],
        "n_classes": len(predictions.labels),
    }
    scores: dict[str, Score] = {}
    pseudo: dict[str, NDArray[np.float64]] = {}
    for metric in benchmark.task.metrics:
        arguments = {name: fields[name] for name in metric.reads} | dict(metric.options)
        value = metric.value(**arguments)
        pseudo[metric.name] = pseudo_values(value, metric.without_each_unit(**arguments, unit=unit.astype(np.int32)))
        bounds = interval(value, pseudo[metric.name], level=LEVEL, proportion=metric.proportion)
        scores[metric.name] = Score(value, bounds.low, bounds.high, bounds.method, bounds.reason)
    return Scorecard(
        benchmark=benchmark.name,
        version=benchmark.version,
        split=split,
        items=len(truth.items),
        units=len(unit_ids),
        classes=len(predictions.labels),
        metrics=scores,
        conventions=_conventions(benchmark),
        provenance=_provenance(run),
        pseudo=pseudo,
        unit_ids=tuple(unit_ids),
    )


def score(
    name: str,
    run: Path | str | Predictions,
    *,
    data: Path | str | None = None,
    truth: Path | str | pl.DataFrame | Mapping[str, Any] | None = None,
    classes: Path | str | pl.DataFrame | Mapping[str, Any] | None = None,
    split: str = "test",
    seed: int | None = None,
) -> Scorecard:
    """Scores a run.

    Args:
        name: The benchmark.
        run: A run file, the folder of a run, or predictions.
        data: The release that holds the truth; or:
        truth: A table (or CSV file) with `id`, `label` and, where rows are not independent, `unit`.
        classes: A table (or CSV file) with `label`: the classes of the benchmark. Without it, those of the truth.
        split: The part of the release that is scored.
        seed: The seed of drawn parts; without it, the one in the run's folder, or 0.

    Raises:
        InputError: When the run or the truth is at fault.
    """
    benchmark = BENCHMARKS[name]
    if (data is None) == (truth is None):
        raise MisuseError("A score needs the truth from one place: either --data ROOT or --truth FILE.")
    provenance = None
    if not isinstance(run, Predictions):
        folder = Path(run) if Path(run).is_dir() else Path(run).parent
        run = folder / RUN_CSV if Path(run).is_dir() else Path(run)
        if run.name == RUN_CSV and (folder / RUN_FILE).exists():
            provenance = Run.read(folder)
            seed = provenance.seed if seed is None else seed
    if data is not None:
        opened = open_benchmark(benchmark, open_dataset(benchmark.dataset, data, benchmark.subset), seed=seed or 0)
        if split not in opened.truth:
            raise InputError(data, found=f"no labels for {split}", expected="a release that holds them")
        known, labels = opened.truth[split], opened.view.labels
    else:
        known, labels = _given_truth(truth, classes)
    if not isinstance(run, Predictions):
        run = benchmark.task.run.read(run, known.items, labels)
    return score_predictions(benchmark, run, known, split=split, run=provenance)


def _given_truth(truth: Any, classes: Any) -> tuple[Truth, Labels]:
    rows, where = _frame(truth, "truth", ("id", "label"))
    twice = rows["id"].is_duplicated().arg_true()
    if len(twice) > 1:
        line = int(twice[1]) + 2
        raise InputError(where, line=line, found=f"the id {rows['id'][line - 2]!r} again", expected="each id once")
    units = rows["unit"] if "unit" in rows.columns else rows["id"]
    labels = Labels.of(rows["label"])
    if classes is not None:
        listed, classes_where = _frame(classes, "classes", ("label",))
        labels = Labels(tuple(listed["label"].unique(maintain_order=True)))
        strange = [name for name in rows["label"] if name not in labels.code_of]
        if strange:
            raise InputError(where, found=f"the label {strange[0]!r}", expected=f"a label listed in {classes_where}")
    table = rows.select(pl.col("id").alias("item_id"), "label")
    return Truth(table, tuple(rows["id"]), tuple(units)), labels


def _frame(source: Any, what: str, required: tuple[str, ...]) -> tuple[pl.DataFrame, str]:
    """A table with text columns from a file, a frame or a mapping of columns, and what to call it in messages."""
    if isinstance(source, (str, Path)):
        try:
            with Path(source).open("rb") as file:
                return read_csv(file, source, required=required), str(source)
        except FileNotFoundError as error:
            raise InputError(source, found="no such file", expected=f"a CSV table of {what}") from error
    frame = pl.DataFrame(source)
    for name in required:
        if name not in frame.columns:
            raise InputError(what, found=f"the columns {', '.join(frame.columns)}", expected=f"a column {name!r}")
    return frame.with_columns(pl.all().cast(pl.String)), what


def _codes(truth: Truth, labels: Labels) -> NDArray[np.int32]:
    label_of = dict(zip(truth.rows["item_id"], truth.rows["label"], strict=True))
    codes = labels.encode([label_of.get(item) for item in truth.items])
    if (codes == UNKNOWN).any():
        item = truth.items[int((codes == UNKNOWN).argmax())]
        raise MisuseError(f"Item {item!r} has the label {label_of.get(item)!r}, which the predictions do not know.")
    return codes


def _conventions(benchmark: Benchmark) -> dict[str, str]:
    about = {metric.name: metric.about for metric in benchmark.task.metrics}
    return about | {
        "intervals": f"{LEVEL:.0%}, by leaving out one {benchmark.task.unit.removesuffix('_id')} at a time, "
        "for the expected score at this test size; t quantiles; binomial intervals where successes or failures are few"
    }


def _provenance(run: Run | None) -> dict[str, Any]:
    if run is None:
        return {"method": None, "sees": None, "simulated": None, "code_version": __version__}
    return {
        "method": run.method,
        "sees": run.sees,
        "trained_on": run.trained_on,
        "simulated": run.simulated,
        "data_digest": run.data_digest,
        "seed": run.seed,
        "code_version": run.code_version,
    }
