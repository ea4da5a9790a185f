"""A researcher's own occurrences: which species a photo shows, and which lives at a place.

Both are drawn by record. Records near each other in space or time may fall on both sides, so that scores speak of new
records from the same places and observers, not of new regions.
"""

from __future__ import annotations

from fieldmark.benchmarks.declarations import Benchmark, Task
from fieldmark.benchmarks.measures import balanced_accuracy, macro_f1, mrr, recall_at, top
from fieldmark.datasets.occurrences.opening import SPLIT
from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.photos import Photos
from fieldmark.questions.places import Places
from fieldmark.runs.ranked import Ranked

OCCURRENCES = Benchmark(
    name="occurrences",
    version="1",
    dataset="occurrences",
    subset="photos",
    split=SPLIT,
    task=Task(
        items=Photos(),
        answer=OneLabel(),
        unit="observation_id",
        inputs=("photo", "date", "place", "habitat", "substrate", "elevation", "region"),
        run=Ranked(at_most=10, separator="|"),  # names of species contain spaces
        metrics=(
            macro_f1(over="all"),
            macro_f1(over="present"),
            macro_f1(over="union"),
            balanced_accuracy(),
            top(1),
            top(3),
        ),
        learns_from=("train", "unlabeled", "coarse", "hidden labels"),
        coarse=("kingdom", "phylum"),
    ),
)
PLACES = Benchmark(
    name="occurrences/places",
    version="1",
    dataset="occurrences",
    subset="places",
    split=SPLIT,
    task=Task(
        items=Places(),
        answer=OneLabel(),
        unit="observation_id",
        inputs=("place", "date", "habitat", "elevation", "region"),
        run=Ranked(at_most=30, separator="|"),
        metrics=(mrr(), top(1), top(3), recall_at(30), macro_f1(over="all")),
    ),
)
