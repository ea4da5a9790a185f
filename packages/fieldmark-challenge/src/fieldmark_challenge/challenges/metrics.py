"""The metrics of a challenge: those of its benchmark, and the one that decides."""

from __future__ import annotations

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Metric
from fieldmark.errors import MisuseError, did_you_mean
from fieldmark_challenge.records.schema import Challenge


def board_metric(benchmark: str, name: str | None = None) -> Metric:
    """The declaration of a metric of a benchmark, of the one that decides if none is named."""
    task = BENCHMARKS[benchmark].task
    if name is None:
        return task.deciding
    declared = {metric.name: metric for metric in task.metrics}
    if name not in declared:
        raise MisuseError(f"{benchmark} has no metric {name!r}. {did_you_mean(name, declared)}")
    return declared[name]


def deciding_metric(challenge: Challenge) -> Metric:
    """The primary metric in a challenge: the one it was made with, whatever the benchmark names by now."""
    return board_metric(challenge.versioned_benchmark, challenge.metric or None)
