"""What every benchmark declares."""

from __future__ import annotations

import pickle

import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.selection import conventions
from fieldmark.benchmarks.titles import metric_title
from fieldmark.errors import MisuseError


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


def test_a_metric_reads_the_same_in_every_benchmark_so_that_any_of_them_can_tell_its_title():
    read: dict[str, set[tuple[str, str, bool]]] = {}
    for metric in (metric for name in BENCHMARKS for metric in conventions(BENCHMARKS[name]).values()):
        read.setdefault(metric.name, set()).add((metric.title, metric.unit, metric.higher_is_better))
    assert {name: ways for name, ways in read.items() if len(ways) > 1} == {}
    assert all(metric_title(name) == next(iter(ways))[0] for name, ways in read.items())


def test_a_name_with_a_version_is_the_benchmark_as_it_was():
    now, then = BENCHMARKS["fungitastic/open"], BENCHMARKS["fungitastic/open@1"]
    assert (then.name, then.version, then.task.intervals) == (now.name, "1", "all units")
    assert BENCHMARKS[f"fungitastic/open@{now.version}"] is now
    assert "fungitastic/open@1" in BENCHMARKS and "fungitastic/open@99" not in BENCHMARKS
    with pytest.raises(MisuseError, match=r"fungitastic/open has no version '99', only 1, 2"):
        BENCHMARKS["fungitastic/open@99"]


def test_every_earlier_version_of_every_benchmark_can_be_asked_for_and_sent_to_another_process():
    for name in BENCHMARKS:
        for version in BENCHMARKS[name].versions:
            earlier = BENCHMARKS[f"{name}@{version}"]
            assert pickle.loads(pickle.dumps(earlier)).version == earlier.version == version
