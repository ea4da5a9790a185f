"""What every benchmark declares."""

from __future__ import annotations

from fieldmark.benchmarks import BENCHMARKS


def test_every_benchmark_declares_what_a_scorer_needs():
    for name in BENCHMARKS:
        benchmark = BENCHMARKS[name]
        assert benchmark.name == name and benchmark.task.metrics
        names = [metric.name for metric in benchmark.task.metrics]
        assert len(set(names)) == len(names)
        for metric in benchmark.task.metrics:
            assert metric.without_each_unit is None or metric.resampled is None
            assert metric.about
        for reported in benchmark.reported:
            assert reported.source and set(reported.values) <= set(names), (name, reported.what)
