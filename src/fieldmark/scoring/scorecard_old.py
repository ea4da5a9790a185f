"""Task + run + truth -> scorecard. There is no second scorer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.answers import UNKNOWN_NAME, Answers, answer_labels
from fieldmark.benchmarks import BENCHMARKS, Benchmark
from fieldmark.benchmarks.declarations import Metric
from fieldmark.errors import InputError, MisuseError
from fieldmark.files import write_json
from fieldmark.labels import Labels
from fieldmark.runs.predictions import Predictions, read_predictions
from fieldmark.runs.provenance import RUN_FILE, Run
from fieldmark.runs.segments import Segments
from fieldmark.segmentation import MaskAnswers, compare_masks
from fieldmark.stats.bootstrap import bootstrap_interval, replicated
from fieldmark.stats.concentrated import concentrated_interval, cost_interval
from fieldmark.stats.intervals import Interval, interval, pseudo_values
from fieldmark.truths import given_truth
from fieldmark.version import __version__
from fieldmark.views import Truth, open_benchmark, open_release

SCORECARD_FILE = "scorecard.json"
RUN_CSV = "run.csv"
LEVEL = 0.95
BOOTSTRAP_SEED = 0
# From this difference on, a reader should know where a score comes from.
MUCH_FROM_TIES = 0.02
# With so few units intervals of scores that are no plain shares were seen to cover 90 % where they say 95.
FEW_UNITS = 20
FEW_UNITS_CAUTION = f"fewer than {FEW_UNITS} units: the interval may cover as little as 90 %"


@dataclass(frozen=True)
class Score:
    """One value with its interval; `reason` says why there is none, or why to be careful with it."""

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
        groups: The same metrics by month, site or whatever the task names, for each value.
        confusion: Counts of true against answered groups of labels (phyla), where the classes name them.
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
    groups: dict[str, dict[str, dict[str, Score]]] = field(default_factory=dict)
    confusion: dict[str, Any] | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    pseudo: dict[str, NDArray[np.float64]] = field(default_factory=dict, repr=False, compare=False)
    unit_ids: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def rests_on_ties(self) -> bool:
        """Whether a run owes much of its cmAP to equal scores: the organizers' evaluator puts the right ones first."""
        if "cmap" not in self.metrics or "cmap_expected" not in self.metrics:
            return False
        return self.metrics["cmap"].value - self.metrics["cmap_expected"].value > MUCH_FROM_TIES

    def to_json(self) -> dict[str, Any]:
        """The scorecard as plain data, without the pseudo-values."""
        data = asdict(self)
        del data["pseudo"], data["unit_ids"]
        by_group = [scores for by_value in data["groups"].values() for scores in by_value.values()]
        for scores in (data["metrics"], *by_group):
            for score in scores.values():
                score["value"] = None if np.isnan(score["value"]) else score["value"]
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
            return cls.from_data(data, pl.read_parquet(path.with_suffix(".units.parquet")))
        except FileNotFoundError as error:
            hint = "Make one with `fieldmark fit` or `fieldmark score`."
            raise InputError(path, found="no such file", expected="a scorecard", hint=hint) from error
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            hint = "Score the run again."
            raise InputError(path, found=f"something else ({error})", expected="a scorecard", hint=hint) from error

    @classmethod
    def from_data(cls, data: Mapping[str, Any], units: pl.DataFrame) -> Scorecard:
        """A scorecard from the plain data of `to_json` and the table of its pseudo-values."""
        groups = {
            column: {value: scores_of(scores) for value, scores in by_value.items()}
            for column, by_value in data["groups"].items()
        }
        plain = {**data, "metrics": scores_of(data["metrics"]), "groups": groups}
        pseudo = {name: units[name].to_numpy() for name in units.columns if name != "unit"}
        return cls(**plain, pseudo=pseudo, unit_ids=tuple(units["unit"]))


def scores_of(data: Mapping[str, Any]) -> dict[str, Score]:
    """Scores by metric from plain data; a value that is not a number stands there as null."""
    return {
        name: Score(**{**score, "value": float("nan") if score["value"] is None else score["value"]})
        for name, score in data.items()
    }


def score_predictions(
    benchmark: Benchmark,
    predictions: Predictions,
    truth: Truth,
    *,
    split: str = "test",
    run: Run | None = None,
    classes: pl.DataFrame | None = None,
) -> Scorecard:
    """Scores predictions against the truth.

    Args:
        benchmark: What was asked.
        predictions: The answers, at least for every item of the truth.
        truth: The true labels and the independent units.
        split: The part that is scored.
        run: Where the predictions came from, if known.
        classes: What is known about the labels (`poisonous`, `rare`), for metrics that ask for it.
    """
    if isinstance(benchmark.task.run, Segments):
        # A run may list so many classes a segment and no more: whatever is kept beyond that does not count.
        predictions = benchmark.task.run.listed(predictions)
    if benchmark.task.unknown and UNKNOWN_NAME not in predictions.labels.code_of:
        predictions = predictions.with_label(UNKNOWN_NAME)
    known = Labels(tuple(name for name in predictions.labels.names if name != UNKNOWN_NAME))
    answers = Answers(predictions, truth, known, pl.DataFrame() if classes is None else classes, _depth(benchmark))
    unit_ids, scores, pseudo = measure(benchmark, answers)
    return Scorecard(
        benchmark=benchmark.name,
        version=benchmark.version,
        split=split,
        items=len(truth.items),
        units=len(unit_ids),
        classes=len(known),
        metrics=scores,
        groups=_by_group(benchmark, answers),
        confusion=None if benchmark.task.item == "segment" else answers.confusion(),
        conventions=_conventions(benchmark),
        provenance=_provenance(run),
        pseudo=pseudo,
        unit_ids=unit_ids,
    )


def _depth(benchmark: Benchmark) -> int:
    return max(int(metric.options.get("k", 1)) for metric in benchmark.task.metrics)


def measure(
    benchmark: Benchmark, answers: Answers | MaskAnswers
) -> tuple[tuple[str, ...], dict[str, Score], dict[str, NDArray[np.float64]]]:
    """Every metric with its interval, and the pseudo-values per unit of those that have them."""
    unit_ids, units = np.unique(np.array(answers.truths.units, dtype=str), return_inverse=True)
    unit = units.astype(np.int32)
    scores: dict[str, Score] = {}
    pseudo: dict[str, NDArray[np.float64]] = {}
    for metric in benchmark.task.metrics:
        try:
            arguments = _arguments(metric, answers)
        except InputError:
            if metric.optional:
                continue
            raise
        value = metric.value(**arguments)
        if metric.without_each_unit is not None:
            left_out = metric.without_each_unit(**arguments, unit=unit)
            pseudo[metric.name] = pseudo_values(value, left_out)
            bounds = _interval(metric, value, pseudo[metric.name])
        elif metric.resampled is not None:
            bounds = _bootstrap(metric, arguments, value, unit, len(unit_ids))
        else:
            bounds = Interval(None, None, "none", "it describes the run and is no estimate")
        caution = FEW_UNITS_CAUTION if len(unit_ids) < FEW_UNITS and not metric.proportion else None
        scores[metric.name] = Score(value, bounds.low, bounds.high, bounds.method, bounds.reason or caution)
    return tuple(unit_ids), scores, pseudo


def _interval(metric: Metric, value: float, pseudo: NDArray[np.float64]) -> Interval:
    if metric.largest_cost is not None:
        return cost_interval(value, pseudo, largest=metric.largest_cost, level=LEVEL)
    if metric.few_units:
        return concentrated_interval(value, pseudo, level=LEVEL, bounds=metric.bounds)
    return interval(value, pseudo, level=LEVEL, proportion=metric.proportion, bounds=metric.bounds)


def _arguments(metric: Metric, answers: Answers | MaskAnswers) -> dict[str, Any]:
    pairs = [read.split("=") if "=" in read else (read, read) for read in metric.reads]
    return {keyword: getattr(answers, name) for keyword, name in pairs} | dict(metric.options)


def _bootstrap(
    metric: Metric, arguments: dict[str, Any], value: float, unit: NDArray[np.int32], n_units: int
) -> Interval:
    resampled = metric.resampled
    assert resampled is not None  # a metric has one or the other
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    replicates = replicated(lambda times: resampled(**arguments, unit=unit, times=times), n_units, rng=rng)
    return bootstrap_interval(value, replicates, n_units=n_units, level=LEVEL, bounds=metric.bounds)


def _by_group(benchmark: Benchmark, answers: Answers) -> dict[str, dict[str, dict[str, Score]]]:
    """The metrics for each value of each column the task shows them by."""
    found: dict[str, dict[str, dict[str, Score]]] = {}
    for column in answers.truths.groups.columns:
        values = answers.truths.groups[column]
        in_several = isinstance(values.dtype, pl.List)
        for value in sorted((values.explode() if in_several else values).drop_nulls().unique()):
            inside = values.list.contains(value) if in_several else values == value
            part = replace(answers, truths=answers.truths.take(inside.fill_null(False).to_numpy()))
            found.setdefault(column, {})[str(value)] = measure(benchmark, part)[1]
    return found


def score(
    name: str,
    run: Path | str | Predictions,
    *,
    data: Path | str | None = None,
    truth: Path | str | pl.DataFrame | Mapping[str, Any] | None = None,
    classes: Path | str | pl.DataFrame | Mapping[str, Any] | None = None,
    media: Path | str | pl.DataFrame | Mapping[str, Any] | None = None,
    split: str = "test",
    seed: int | None = None,
) -> Scorecard:
    """Scores a run.

    Args:
        name: The benchmark.
        run: A run file, the folder of a run, or predictions.
        data: The release that holds the truth; or:
        truth: A table (or CSV file) with `id`, `label` and, where rows are not independent, `unit`.
        classes: A table (or CSV file) with `label`: the classes of the benchmark, and what metrics want to know about
            them (`poisonous`, `rare`). Without it, those of the truth and of the run.
        media: For soundscapes, a table (or CSV file) with `MediaId`, `seconds` and `site`, so that silence counts.
        split: The part of the release that is scored.
        seed: The seed of drawn parts; without it, the one in the run's folder, or 0.

    Raises:
        InputError: When the run or the truth is at fault.
    """
    benchmark = BENCHMARKS[name]
    if (data is None) == (truth is None):
        raise MisuseError("A score needs the truth from one place: either --data ROOT or --truth FILE.")
    if benchmark.task.item == "mask":
        return _score_masks(benchmark, run, truth)
    provenance = None
    if not isinstance(run, Predictions):
        folder = Path(run) if Path(run).is_dir() else Path(run).parent
        run = folder / RUN_CSV if Path(run).is_dir() else Path(run)
        if run.name == RUN_CSV and (folder / RUN_FILE).exists():
            provenance = Run.read(folder)
            seed = provenance.seed if seed is None else seed
    if data is not None:
        opened = open_benchmark(benchmark, open_release(benchmark, data), seed=seed or 0)
        known, labels, table = opened.truth_of(split), opened.view.labels, opened.dataset.taxa
    else:
        known, labels, table = given_truth(benchmark.task, truth, classes, media)
        if classes is None and isinstance(run, Path) and run.suffix != ".parquet":
            # Nobody says which classes there are: those of the truth and those of the run.
            labels = Labels.of({*labels.names, *benchmark.task.run.labels_in(run)} - {UNKNOWN_NAME})
    if not isinstance(run, Predictions):
        answers = answer_labels(labels, unknown=benchmark.task.unknown)
        dense = run.suffix == ".parquet"
        run = _stored(run, known, answers) if dense else benchmark.task.run.read(run, known.items, answers)
    return score_predictions(benchmark, run, known, split=split, run=provenance, classes=table)


def _stored(path: Path, truth: Truth, labels: Labels) -> Predictions:
    """Predictions from Parquet, checked to answer every item with the labels of the benchmark."""
    found = read_predictions(path)
    missing = set(truth.items) - set(found.items)
    if missing:
        listed = f"no answer for {len(missing)} of {len(truth.items)} ids ({min(missing)}, ...)"
        raise InputError(path, found=listed, expected="one for each")
    strange = [name for name in found.labels.names if name not in labels.code_of]
    lacking = [name for name in labels.names if name not in found.labels.code_of and name != UNKNOWN_NAME]
    if strange or lacking:
        what = f"the label {strange[0]!r}" if strange else f"no label {lacking[0]!r}"
        raise InputError(path, found=what, expected=f"the {len(labels)} labels of the benchmark")
    return found


def _score_masks(benchmark: Benchmark, run: Any, truth: Any) -> Scorecard:
    if not isinstance(run, (str, Path)) or not isinstance(truth, (str, Path)):
        raise MisuseError("Masks are scored from files: a folder of pictures or Parquet, for the run and for --truth.")
    answers = compare_masks(Path(run), Path(truth))
    unit_ids, scores, pseudo = measure(benchmark, answers)
    return Scorecard(
        benchmark=benchmark.name,
        version=benchmark.version,
        split="truth",
        items=len(answers.truths.items),
        units=len(unit_ids),
        classes=answers.n_classes,
        metrics=scores,
        conventions=_conventions(benchmark),
        provenance=_provenance(None),
        pseudo=pseudo,
        unit_ids=unit_ids,
    )


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
        "external_data": run.external_data,
        "data_digest": run.data_digest,
        "seed": run.seed,
        "code_version": run.code_version,
    }
