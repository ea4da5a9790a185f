"""Metrics by name, in other conventions than a benchmark declares: `roc_auc:ties=zero`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fieldmark.benchmarks.declarations import Benchmark, Metric
from fieldmark.errors import MisuseError, did_you_mean


def with_metrics(benchmark: Benchmark, metrics: Sequence[str | Metric]) -> Benchmark:
    """The benchmark with other metrics: the same question, measured otherwise.

    Args:
        benchmark: What was asked.
        metrics: Metrics, or names of those that it declares, with a convention behind a colon where another is meant.

    Raises:
        MisuseError: When it has no metric or convention of that name, or there is none at all.

    >>> from fieldmark.benchmarks import BENCHMARKS
    >>> [m.name for m in with_metrics(BENCHMARKS["fungitastic/open"], ["roc_auc", "roc_auc:ties=zero"]).task.metrics]
    ['roc_auc', 'roc_auc_ties_zero']
    """
    chosen = [metric if isinstance(metric, Metric) else named(benchmark, metric) for metric in metrics]
    if not chosen:
        raise MisuseError("A score needs at least one metric.")
    return replace(benchmark, task=replace(benchmark.task, metrics=tuple(chosen), decides=""))


def named(benchmark: Benchmark, name: str) -> Metric:
    """One metric of a benchmark, by its name or in another convention."""
    choices = conventions(benchmark)
    if name not in choices:
        raise MisuseError(f"{benchmark.name} has no metric {name!r}. {did_you_mean(name, choices)}")
    return choices[name]


def conventions(benchmark: Benchmark) -> dict[str, Metric]:
    """The metrics that a benchmark declares, each followed by its other conventions."""
    metric_of: dict[str, Metric] = {}
    for metric in benchmark.task.metrics:
        metric_of[metric.name] = metric
        metric_of |= {f"{metric.name}:{convention}": make() for convention, make in metric.otherwise.items()}
    return metric_of
