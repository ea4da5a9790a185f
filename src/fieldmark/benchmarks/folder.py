"""A researcher's own photos as a closed-set benchmark."""

from __future__ import annotations

from fieldmark.benchmarks.declarations import Benchmark, Task
from fieldmark.benchmarks.measures import macro_f1, top
from fieldmark.datasets.folder import SPLIT
from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.photos import Photos
from fieldmark.runs.ranked import Ranked

FOLDER = Benchmark(
    name="folder",
    version="1",
    dataset="folder",
    world_bound="expected_top_1",
    split=SPLIT,
    task=Task(
        items=Photos(),
        answer=OneLabel(),
        unit="observation_id",
        inputs=("photo", "date", "place", "habitat", "substrate", "boxes", "environment"),
        run=Ranked(at_most=10, separator="|"),  # names of class folders may contain spaces
        metrics=(macro_f1(over="all"), macro_f1(over="present"), macro_f1(over="union"), top(1), top(3)),
    ),
)
