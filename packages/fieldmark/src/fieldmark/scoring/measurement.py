"""Task + predictions + truth -> scorecard. There is no second scorer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Benchmark, Intervals, Metric, Task
from fieldmark.errors import InputError
from fieldmark.questions.answer import Evaluation
from fieldmark.questions.truth import Truth
from fieldmark.runs.predictions import Predictions
from fieldmark.runs.provenance import Run
from fieldmark.scoring.digests import digests_of
from fieldmark.scoring.given_truth import measurable
from fieldmark.scoring.scorecard import Score, Scorecard
from fieldmark.stats.bootstrap import bootstrap_interval, bootstrap_variance, replicated
from fieldmark.stats.concentrated import concentrated_interval, contributing_units, cost_interval
from fieldmark.stats.intervals import Interval, interval, pseudo_values
from fieldmark.stats.support import Support, supporting_interval
from fieldmark.stats.two_groups import two_group_interval, units_of_groups
from fieldmark.tables.codes import numbered_names
from fieldmark.tables.labels import Labels
from fieldmark.tables.text_columns import NameColumn, column_of
from fieldmark.version import __version__

Values = NDArray[np.float64]
Units = NDArray[np.int32]

LEVEL = 0.95
BOOTSTRAP_SEED = 0
# With so few units intervals of scores that are no plain shares were seen to cover 90 % where they say 95.
FEW_UNITS = 20
FEW_UNITS_CAUTION = "rests on about {} units: the interval may cover as little as 90 %"
# Nearly perfect runs on a long tail: where so few units make the spread, intervals were seen to cover 87 %.
FEW_SPREADING = 5
FEW_SPREADING_CAUTION = "its spread comes from about {} units: the interval may cover as little as 85 %"
EARLIER_CAUTION = f"fewer than {FEW_UNITS} units: the interval may cover as little as 90 %"
SCARCE_CAUTION = "{} units in the scarcer of two groups: the interval rests on these few"


def score_predictions(
    benchmark: Benchmark,
    predictions: Predictions,
    truth: Truth,
    *,
    labels: Labels,
    split: str = "test",
    run: Run | None = None,
    classes: pl.DataFrame | None = None,
) -> Scorecard:
    """Scores predictions against the truth.

    Args:
        benchmark: What was asked.
        predictions: The answers, at least for every item of the truth.
        truth: The true labels and the independent units.
        labels: The known labels.
        split: The part that is scored.
        run: Where the predictions came from, if known.
        classes: What is known about the labels (`poisonous`, `rare`), for metrics that ask for it.
    """
    task = benchmark.task
    # Whatever is kept beyond what a run file can hold does not count.
    held, table = task.run.held(predictions), pl.DataFrame() if classes is None else classes
    evaluation = task.answer.evaluate(held, truth, labels, table, _depth(benchmark))
    metrics, remarks = measurable(task, truth)
    unit_ids, scores, pseudo = measure(metrics, evaluation, task.intervals)
    return Scorecard(
        benchmark=benchmark.name,
        version=benchmark.version,
        split=split,
        items=len(truth.items),
        units=len(unit_ids),
        classes=evaluation.n_classes,
        metrics=scores,
        groups=_by_group(metrics, evaluation, task.intervals),
        confusion=evaluation.confusion(),
        conventions=_conventions(benchmark),
        remarks=[
            *remarks,
            *task.run.remarks(held, truth.items),
            *(said for one in metrics for said in one.said(evaluation)),
        ],
        provenance=_provenance(run) | ({} if truth.simulated is None else {"simulated": truth.simulated}),
        digests=digests_of(task.metrics, evaluation, table),
        described={
            one.name: {"title": one.title, "unit": one.unit, "higher_is_better": one.higher_is_better}
            for one in metrics
            if one.name in scores
        },
        pseudo=pseudo,
        unit_ids=unit_ids,
    )


def _depth(benchmark: Benchmark) -> int:
    return max(int(metric.options.get("k", 1)) for metric in benchmark.task.metrics)


def measure(
    metrics: Sequence[Metric], evaluation: Evaluation, intervals: Intervals = "supporting units"
) -> tuple[NameColumn, dict[str, Score], dict[str, Values]]:
    """Every metric with its interval, and the pseudo-values per unit of those that have them."""
    unit_ids, unit = numbered(evaluation.truth.units)
    scores: dict[str, Score] = {}
    pseudo: dict[str, Values] = {}
    for metric in metrics:
        try:
            arguments = metric.arguments(evaluation)
        except InputError:
            if metric.optional:
                continue
            raise
        value = metric.value(**arguments)
        if metric.without_each_unit is not None:
            left_out = metric.without_each_unit(**arguments, unit=unit)
            pseudo[metric.name] = pseudo_values(value, left_out)
        found = interval_of(metric, value, pseudo.get(metric.name), arguments, unit, intervals)
        scores[metric.name] = Score(value, found.low, found.high, found.method, found.reason, found.rests_on)
    return unit_ids, scores, pseudo


def numbered(names: Sequence[str]) -> tuple[NameColumn, NDArray[np.int32]]:
    """The distinct names in order, and the number of each name among them.

    >>> numbered(["b", "a", "b"])
    (('a', 'b'), array([1, 0, 1], dtype=int32))
    """
    distinct, numbers = numbered_names(column_of(names))
    return NameColumn(distinct), numbers


def interval_of(
    metric: Metric,
    value: float,
    pseudo: Values | None,
    arguments: Mapping[str, Any],
    unit: Units,
    intervals: Intervals = "supporting units",
) -> Interval:
    """The interval of a score; its reason says why there is none, or why to be careful with it."""
    if pseudo is None and metric.resampled is None:
        return Interval(None, None, "none", "it describes the run and is no estimate")
    if intervals == "supporting units":
        return _of_supporting_units(metric, value, pseudo, arguments, unit)
    earlier = metric if intervals == "scarcer group" else replace(metric, groups="")
    found = _earlier_interval(earlier, value, pseudo, arguments, unit)
    return replace(found, reason=found.reason or _earlier_caution(earlier, arguments, unit))


def _of_supporting_units(
    metric: Metric, value: float, pseudo: Values | None, arguments: Mapping[str, Any], unit: Units
) -> Interval:
    n_units = int(unit.max()) + 1
    item_weights = np.ones(len(unit)) if metric.rests_on is None else metric.rests_on(arguments, len(unit))
    if not item_weights.any():
        return Interval(None, None, "none", "nothing that it rests on occurs in the truth")
    support = Support.of_items(item_weights, unit, borrowing=metric.borrowing)
    if pseudo is None:
        found = _of_two_groups(metric, value, pseudo, arguments, unit)
    else:
        costs = metric.largest_cost
        largest = None if costs is None else costs * n_units if metric.summed else costs
        bounds, share = metric.bounds, metric.proportion
        found = supporting_interval(
            value, pseudo, support, level=LEVEL, proportion=share, bounds=bounds, largest=largest
        )
    return replace(found, reason=found.reason or _caution(metric, support, pseudo), rests_on=round(support.units, 2))


def _caution(metric: Metric, support: Support, pseudo: Values | None) -> str | None:
    """Why to be careful with an interval, None where there is no reason."""
    if metric.proportion:
        return None
    if support.units < FEW_UNITS - 0.5:
        return FEW_UNITS_CAUTION.format(max(round(support.units), 1))
    if pseudo is None or metric.largest_cost is not None:
        return None
    spreading = contributing_units(pseudo)
    return FEW_SPREADING_CAUTION.format(round(spreading)) if spreading < FEW_SPREADING else None


def _earlier_interval(
    metric: Metric, value: float, pseudo: Values | None, arguments: Mapping[str, Any], unit: Units
) -> Interval:
    n_units = int(unit.max()) + 1
    if metric.groups:
        return _of_two_groups(metric, value, pseudo, arguments, unit)
    if pseudo is None:
        replicates = _replicates(metric, arguments, unit)
        return bootstrap_interval(value, replicates, n_units=n_units, level=LEVEL, bounds=metric.bounds)
    if metric.largest_cost is not None and not metric.summed:
        return cost_interval(value, pseudo, largest=metric.largest_cost, level=LEVEL)
    if metric.few_units:
        return concentrated_interval(value, pseudo, level=LEVEL, bounds=metric.bounds)
    return interval(value, pseudo, level=LEVEL, proportion=metric.proportion, bounds=metric.bounds)


def _of_two_groups(
    metric: Metric, value: float, pseudo: Values | None, arguments: Mapping[str, Any], unit: Units
) -> Interval:
    there = units_of_groups(arguments[metric.groups], unit)
    for units, least, name in zip(there, metric.least_units, ("", "not "), strict=True):
        if 0 < units < least:
            group = f"{name}{metric.groups.removeprefix('is_')}"
            return Interval(None, None, "none", f"units that are {group}: {units}; an interval needs {least}")
    n_units = int(unit.max()) + 1
    if pseudo is not None:
        variance = float(pseudo.var(ddof=1)) / n_units if n_units > 1 else math.nan
    else:
        variance = bootstrap_variance(_replicates(metric, arguments, unit))
    return two_group_interval(value, variance, scarce=min(there), n_units=n_units, level=LEVEL)


def _replicates(metric: Metric, arguments: Mapping[str, Any], unit: Units) -> Values:
    resampled = metric.resampled
    assert resampled is not None  # a metric has one or the other
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    return replicated(lambda times: resampled(**arguments, unit=unit, times=times), int(unit.max()) + 1, rng=rng)


def _earlier_caution(metric: Metric, arguments: Mapping[str, Any], unit: Units) -> str | None:
    """Why to be careful with an interval by earlier conventions, None where there is no reason."""
    if metric.groups:
        scarce = min(units_of_groups(arguments[metric.groups], unit))
        return SCARCE_CAUTION.format(scarce) if scarce < FEW_UNITS else None
    return EARLIER_CAUTION if int(unit.max()) + 1 < FEW_UNITS and not metric.proportion else None


def _by_group(
    metrics: Sequence[Metric], evaluation: Evaluation, intervals: Intervals
) -> dict[str, dict[str, dict[str, Score]]]:
    """The metrics for each value of each column the task shows them by."""
    groups: dict[str, dict[str, dict[str, Score]]] = {}
    for column in evaluation.truth.groups.columns:
        values = evaluation.truth.groups[column]
        in_several = isinstance(values.dtype, pl.List)
        for value in sorted((values.explode() if in_several else values).drop_nulls().unique()):
            inside = values.list.contains(value) if in_several else values == value
            part = evaluation.take(inside.fill_null(False).to_numpy())
            groups.setdefault(column, {})[str(value)] = measure(metrics, part, intervals)[1]
    return groups


def _conventions(benchmark: Benchmark) -> dict[str, str]:
    about = {metric.name: metric.about for metric in benchmark.task.metrics}
    if benchmark.provisional:
        about["provisional"] = f"{benchmark.name} is provisional: {benchmark.provisional}"
    one_out = f"{LEVEL:.0%}, by leaving out one {benchmark.task.unit.removesuffix('_id')} at a time, "
    return about | {"intervals": f"{one_out}for the expected score at this test size; {_rule(benchmark.task)}"}


def _rule(task: Task) -> str:
    """How intervals are made from the values without each unit, in words."""
    if task.intervals == "supporting units":
        return (
            "t quantiles on the scale of log odds, counting the units on which the score rests; mid-p binomial "
            "intervals where successes or failures are few, mid-p gamma intervals for costs"
        )
    two_groups = task.intervals == "scarcer group" and any(metric.groups for metric in task.metrics)
    counted = "; where two groups are compared, the units of the scarcer one count" if two_groups else ""
    return f"t quantiles; binomial intervals where successes or failures are few{counted}"


def _provenance(run: Run | None) -> dict[str, Any]:
    if run is None:
        return {"method": None, "sees": None, "simulated": None, "code_version": __version__}
    return {
        "method": run.method,
        "sees": run.sees,
        "trained_on": run.trained_on,
        **({"step_lessons": run.step_lessons} if run.step_lessons else {}),
        "simulated": run.simulated,
        "external_data": run.external_data,
        **({"extra_annotations": run.extra_annotations} if run.extra_annotations else {}),
        **({"modalities": run.modalities} if run.modalities else {}),
        "data_digest": run.data_digest,
        "seed": run.seed,
        "code_version": run.code_version,
        # Said only where the parts are not those of the benchmark.
        **({"split": run.split} if run.split else {}),
    }
