"""A task on the places of a survey, with any kind of items and answers."""

from __future__ import annotations

from dataclasses import replace

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Benchmark
from fieldmark.splits import Official
from fieldmark.tables.labels import Labels

LABELS = Labels(("a", "b", "c"))


def benchmark(items: object, answer: object) -> Benchmark:
    task = replace(BENCHMARKS["geolifeclef-2020"].task, items=items, answer=answer, unit="observation_id")  # type: ignore[arg-type]
    return Benchmark("survey", "1", "survey", Official(train="train", val="val", test="test"), task)
