"""Semi-iNat 2021 and Semi-Aves 2020: few labeled photos, many unlabeled ones.

Hidden labels are open to the oracle, which declares that it reads them and whose runs say so; a view hands them to no
other method. All birds are of one phylum, so that the coarse labels of Semi-Aves tell nothing apart.
"""

from __future__ import annotations

from fieldmark.benchmarks.declarations import Benchmark, Reported, Task, with_intervals
from fieldmark.benchmarks.measures import top
from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.photos import Photos
from fieldmark.runs.ranked import Ranked
from fieldmark.splits import Official

TASK = Task(
    items=Photos(),
    answer=OneLabel(),
    unit="item_id",
    inputs=("photo",),
    run=Ranked(at_most=5, columns=("Id", "Category")),
    metrics=(top(1), top(5)),
    learns_from=("train", "val", "unlabeled", "coarse", "hidden labels"),
    coarse=("kingdom", "phylum"),
    by=("phylum", "test_part"),  # the public and the private board
)
SPLIT = Official(train="l_train", val="val", test="test", unlabeled="u_train")

SEMI_INAT_2021 = Benchmark(
    name="semi-inat-2021",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="semi-inat-2021",
    split=SPLIT,
    task=TASK,
    reported=tuple(
        Reported(f"ResNet-50 {start}, {labels}", source="Semi-iNat 2021, table 3", top_1=top_1, top_5=top_5)
        for start, labels, top_1, top_5 in (
            ("from scratch", "labeled data", 0.192, 0.364),
            ("from scratch", "all labels (oracle)", 0.933, 0.969),
            ("from ImageNet", "labeled data", 0.410, 0.637),
            ("from ImageNet", "all labels (oracle)", 0.943, 0.975),
        )
    ),
)
SEMI_AVES_2020 = Benchmark(
    name="semi-aves-2020",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="semi-aves-2020",
    split=SPLIT,
    task=TASK,
)

ENTRIES = {
    "semi-inat-2021": ("SEMI_INAT_2021", "Semi-iNat 2021"),
    "semi-aves-2020": ("SEMI_AVES_2020", "Semi-Aves 2020"),
}
