"""FathomNet 2025: names of any rank for animals of the deep sea, judged by how far they lie from the truth in the tree.

`classes.csv` holds the tree: one row per name that may be answered, with the columns kingdom to species filled down to
its own rank.
"""

from __future__ import annotations

from fieldmark.benchmarks.declarations import Benchmark, Reported, Task, with_intervals
from fieldmark.benchmarks.measures import top, tree_distance
from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.photos import Photos
from fieldmark.runs.ranked import Ranked
from fieldmark.splits import InGroups, Official

FATHOMNET_2025 = Benchmark(
    name="fathomnet-2025",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
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
