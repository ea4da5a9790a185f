"""FathomNet 2025: names of any rank for animals of the deep sea, judged by how far they lie from the truth in the tree.

`classes.csv` holds the tree: one row per name that may be answered, with the columns kingdom to species filled down to
its own rank. A rank may be blank in between (fishes have no class in the taxonomy of the challenge): the path then goes
on with the next one. A name without any rank stands outside the tree, as one that the organizers do not know: 12 from
every other. Version 1 cut paths at the first blank, and counted nothing between names without a rank.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fieldmark.benchmarks.declarations import Benchmark, Reported, Task, steps_back, with_intervals
from fieldmark.benchmarks.measures import top, tree_distance
from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.photos import Photos
from fieldmark.runs.ranked import Ranked
from fieldmark.splits import InGroups, Official

METRICS_OF_1 = (tree_distance(blanks="end"), top(1))

FATHOMNET_2025 = Benchmark(
    name="fathomnet-2025",
    version="2",
    earlier={"1": steps_back(with_intervals("scarcer group"), partial(replace, metrics=METRICS_OF_1))},
    dataset="fathomnet-2025",
    split=Official(train="train", val="val", test="test", otherwise=InGroups(val=0.15, test=0.0, by="image")),
    task=Task(
        items=Photos(),
        answer=OneLabel(),
        unit="image",
        inputs=("photo",),
        run=Ranked(at_most=1, columns=("annotation_id", "concept_name"), separator="|"),
        metrics=(tree_distance(), top(1)),
    ),
    reported=(Reported("first place, private board", source="the team's working note", tree_distance=1.45),),
    not_known=("The taxonomy as it was when the runs were scored: freeze one, and keep it with the truth.",),
)

ENTRIES = {
    "fathomnet-2025": ("FATHOMNET_2025", "FathomNet 2025, distance in the taxonomy"),
}
