"""AnimalCLEF: which individual animal a photo shows.

2025 asks for the name of a known individual or for `new_individual`; 2026 asks which photos show the same one. Datasets
(a species at a site) are scored apart and averaged. What is independent is the individual, so that the truth names it
as `unit`; in 2025 the label of a new one is -1. One name in two datasets stands for two individuals, as in the
organizers' code, which never looks beyond a dataset; version 1 took them for one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fieldmark.benchmarks.declarations import Benchmark, Reported, Task, steps_back, with_intervals
from fieldmark.benchmarks.measures import adjusted_rand, known_and_new, top
from fieldmark.questions.clusters import Clusters
from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.photos import Photos
from fieldmark.runs.clusters import ClusterNames
from fieldmark.runs.ranked import Ranked
from fieldmark.splits import Official, Seeded

NAMES_EVERYWHERE = partial(replace, units_within="")

ANIMALCLEF_2025 = Benchmark(
    name="animalclef-2025",
    version="2",
    earlier={"1": steps_back(with_intervals("scarcer group"), NAMES_EVERYWHERE)},
    dataset="animalclef-2025",
    split=Official(train="database", test="query", otherwise=Seeded(val=0.2, test=0.0)),
    task=Task(
        items=Photos(),
        answer=OneLabel(unknown=True),
        unit="identity",
        inputs=("photo", "date", "dataset"),
        run=Ranked(at_most=1, columns=("image_id", "identity"), unknown_name="new_individual"),
        metrics=(known_and_new(), top(1)),
        by=("dataset",),
        units_within="dataset",
        unit_is_label=True,
    ),
    reported=(
        Reported("first place, private board", source="Kaggle", known_and_new=0.7139),
        Reported("second place, private board", source="Kaggle", known_and_new=0.6753),
        Reported("sample file, private board", source="Kaggle", known_and_new=0.4436),
    ),
)
ANIMALCLEF_2026 = Benchmark(
    name="animalclef-2026",
    version="2",
    earlier={"1": steps_back(with_intervals("scarcer group"), NAMES_EVERYWHERE)},
    dataset="animalclef-2026",
    split=Official(train="train", test="test", otherwise=Seeded(val=0.2, test=0.0)),
    task=Task(
        items=Photos(),
        answer=Clusters(),
        unit="identity",
        inputs=("photo", "date", "dataset"),
        run=ClusterNames(columns=("image_id", "cluster"), prefix="cluster_"),
        metrics=(adjusted_rand(),),
        by=("dataset",),
        units_within="dataset",
        unit_is_label=True,
    ),
    not_known=("Who won, and with what; the highest figure found is 0.570 on the private board.",),
)

ENTRIES = {
    "animalclef-2025": ("ANIMALCLEF_2025", "AnimalCLEF 2025, known individuals and new ones"),
    "animalclef-2026": ("ANIMALCLEF_2026", "AnimalCLEF 2026, clusters of individuals"),
}
