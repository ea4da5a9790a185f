"""A researcher's own occurrences: which species a photo shows, and which lives at a place.

The first two are drawn by record. Records near each other in space or time may fall on both sides, so that scores speak
of new records from the same places and observers, not of new regions. `occurrences/presence` learns from records and
answers sites where every species was looked for; without such sites, whole blocks of the region are held out.
"""

from __future__ import annotations

import math

from fieldmark.benchmarks.declarations import Benchmark, Task, with_intervals
from fieldmark.benchmarks.measures import (
    balanced_accuracy,
    macro_f1,
    mrr,
    recall_at,
    species_cor,
    species_prg_auc,
    species_roc_auc,
    top,
)
from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.photos import Photos
from fieldmark.questions.places import Places
from fieldmark.questions.presence import Presence
from fieldmark.runs.dense import Dense
from fieldmark.runs.ranked import Ranked
from fieldmark.splits import InBlocks, Official, Seeded

# Records without a label can still be learned from; val and test are drawn from the others, by record.
SPLIT = Official(train="train", unlabeled="unlabeled", otherwise=Seeded(val=0.15, test=0.25))

OCCURRENCES = Benchmark(
    name="occurrences",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
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
        learns_from=("train", "val", "unlabeled", "coarse", "hidden labels"),
        coarse=("kingdom", "phylum"),
    ),
)
PLACES = Benchmark(
    name="occurrences/places",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="occurrences",
    subset="places",
    split=SPLIT,
    task=Task(
        items=Places(),
        answer=OneLabel(),
        unit="observation_id",
        inputs=("place", "date", "habitat", "elevation", "region", "environment"),
        run=Ranked(at_most=30, separator="|"),
        metrics=(mrr(), top(1), top(3), recall_at(30), macro_f1(over="all")),
    ),
)
PRESENCE = Benchmark(
    name="occurrences/presence",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="occurrences",
    subset="presence",
    split=Official(
        train="train", test="test", unlabeled="background", otherwise=InBlocks(val=0.15, test=0.25, across=16)
    ),
    task=Task(
        items=Places(),
        answer=Presence(),
        unit="observation_id",
        inputs=("place", "date", "habitat", "elevation", "region", "environment"),
        run=Dense(low=-math.inf, high=math.inf),
        metrics=(species_roc_auc(), species_cor(), species_prg_auc()),
    ),
)

ENTRIES = {
    "occurrences": ("OCCURRENCES", "your own occurrences, species from photos"),
    "occurrences/places": ("PLACES", "your own occurrences, species from place"),
    "occurrences/presence": ("PRESENCE", "your own region: presence and absence at sites, learned from records"),
}
