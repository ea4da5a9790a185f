"""A researcher's own photos: one label each, or masks."""

from __future__ import annotations

from fieldmark.benchmarks.declarations import Benchmark, Task, with_intervals
from fieldmark.benchmarks.measures import iou, macro_f1, miou, top
from fieldmark.questions.masks import PartMasks
from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.photos import Photos
from fieldmark.runs.mask_files import MaskFiles
from fieldmark.runs.ranked import Ranked
from fieldmark.splits import Official, Seeded

# How a folder is cut: into its own parts, or by a draw over observations.
SPLIT = Official(train="train", val="val", test="test", otherwise=Seeded(val=0.15, test=0.25))

FOLDER = Benchmark(
    name="folder",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
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
FOLDER_SEGMENTATION = Benchmark(
    name="folder/segmentation",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="folder-masks",
    split=SPLIT,
    task=Task(
        items=Photos(),
        answer=PartMasks(),
        unit="observation_id",
        inputs=("photo", "boxes"),
        run=MaskFiles(),
        metrics=(iou(), miou(background=False), miou(background=True)),
    ),
)

ENTRIES = {
    "folder": ("FOLDER", "your own photos or recordings, closed set"),
    "folder/segmentation": ("FOLDER_SEGMENTATION", "your own photos with masks"),
}
