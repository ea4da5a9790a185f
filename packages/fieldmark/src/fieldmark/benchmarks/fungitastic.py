"""FungiTastic: Picek et al., "FungiTastic: A multi-modal dataset and benchmark for image categorization".

The organizers' code computes macro-F1 from score matrices over every class of the training set, so that classes absent
from the test set count 0 and a perfect run reaches 2,336 / 2,829 = 82.6 % on the full test set (Mini: 196 / 215 =
91.2 %). `macro_f1_all` is that number; `macro_f1_present` and `macro_f1_union` are the other two conventions.

Open set: the appendix ranks by ROC-AUC, the paper by macro-F1 with unknown as a class; both are there. Time order is in
`fungitastic_temporal`.
"""

from __future__ import annotations

from dataclasses import replace

from fieldmark.benchmarks.declarations import Benchmark, Reported, Task, steps_back, with_intervals
from fieldmark.benchmarks.measures import (
    cost_poison,
    cost_unknown,
    f1_known,
    f1_unknown,
    iou,
    macro_f1,
    miou,
    open_macro_f1,
    roc_auc,
    tnr_at_tpr,
    top,
)
from fieldmark.questions.masks import PartMasks
from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.photos import Photos
from fieldmark.runs.mask_files import MaskFiles
from fieldmark.runs.ranked import Ranked
from fieldmark.splits import Official

TASK = Task(
    items=Photos(),
    answer=OneLabel(),
    unit="observation_id",
    inputs=(
        "photo",
        "date",
        "place",
        "habitat",
        "substrate",
        "elevation",
        "landcover",
        "region",
        "caption",
        "climate",
        "climate_series",
        "exif",
        "satellite",
        "masks",
    ),
    run=Ranked(at_most=10),
    metrics=(macro_f1(over="all"), macro_f1(over="present"), macro_f1(over="union"), top(1), top(3)),
    sees=("item", "unit", "past", "test set"),
)
CLOSED_SPLIT = Official(train="Train", val="ClosedSet-Val", test="ClosedSet-Test")
DNA_SPLIT = Official(train="Train", val="ClosedSet-Val", test="DNA-Test")
OPEN_SPLIT = Official(train="Train", val="OpenSet-Val", test="OpenSet-Test")

OPEN_TASK = replace(
    TASK,
    run=Ranked(at_most=10, unknown_score=True),
    answer=OneLabel(unknown=True),
    metrics=(
        roc_auc(),
        open_macro_f1(over="all"),
        tnr_at_tpr(),
        tnr_at_tpr(threshold="nearest"),
        f1_unknown(),
        f1_known(),
        top(1),
        top(3),
    ),
)
POISON_TASK = replace(OPEN_TASK, metrics=(cost_poison(), top(1), open_macro_f1(over="all")))
UNKNOWN_TASK = replace(OPEN_TASK, metrics=(cost_unknown(), top(1), open_macro_f1(over="all"), f1_unknown()))
SEGMENTATION_TASK = Task(
    items=Photos(),
    answer=PartMasks(observation_in_name=True, last_row_is_whole=True),
    unit="observation_id",
    inputs=("photo",),
    run=MaskFiles(),
    metrics=(iou(), miou(background=False), miou(background=True)),
)


def without_top_3(task: Task) -> Task:
    """The open set of earlier versions, whose scorecards had no top-3."""
    return replace(task, metrics=tuple(metric for metric in task.metrics if metric.name != "top_3"))


def _with_harmless_unknown(task: Task) -> Task:
    """The cost of poison of versions 1 and 2: every unknown species counts as harmless."""
    harmless = replace(cost_poison(unknown="harmless"), name="cost_poison")
    return replace(task, metrics=(harmless, *task.metrics[1:]))


def _with_joined_parts(task: Task) -> Task:
    """The task of versions 1 and 2: all true parts joined are the whole. Parts that only the run has count by 1 too."""
    joined = replace(iou(whole="joined"), name="iou")
    return replace(task, metrics=(joined, *task.metrics[1:]), intervals="scarcer group")


FEW_SHOT_TASK = replace(
    TASK, metrics=(top(1), macro_f1(over="all"), macro_f1(over="present"), macro_f1(over="union"), top(3))
)

# Architecture, then top-1, top-3 and macro-F1 in percent. Tables 4 and 8 disagree for three models at 384 px.
_MINI_224 = """
ResNet-50 61.7 79.3 35.2
ResNeXt-50 62.3 79.6 36.0
EfficientNet-B3 61.9 79.2 36.0
EfficientNet-v2-B3 65.5 82.1 38.1
ConvNeXt-Base 66.9 84.0 41.0
ViT-Base/p16 68.0 84.9 39.9
Swin-Base/p4w12 69.2 85.0 42.2
BEiT-Base/p16 69.1 84.6 42.3
"""
_FULL_224 = """
ResNet-50 62.4 77.3 32.8
ResNeXt-50 63.6 78.3 33.8
EfficientNet-B3 64.8 79.4 34.7
EfficientNet-v2-B3 66.0 80.0 36.0
ConvNeXt-Base 67.1 81.3 36.4
ViT-Base/p16 69.7 82.8 38.6
Swin-Base/p4w12 69.3 82.5 38.2
BEiT-Base/p16 70.2 83.2 39.8
"""
_MINI_384 = """
ResNet-50 66.3 82.9 39.8
ResNeXt-50 67.0 84.0 39.9
EfficientNet-B3 67.4 82.8 40.5
EfficientNet-v2-B3 70.3 85.8 43.9
ConvNeXt-Base 70.2 85.7 43.9
ViT-Base/p16 73.9 87.8 46.3
Swin-Base/p4w12 72.9 87.0 47.1
BEiT-Base/p16 74.8 88.3 48.5
"""
_FULL_384_TABLE_4 = """
ResNet-50 66.9 80.9 36.3
ResNeXt-50 68.1 81.9 37.5
EfficientNet-B3 68.2 81.9 37.2
EfficientNet-v2-B3 71.6 84.4 40.7
ConvNeXt-Base 71.2 84.2 40.0
ViT-Base/p16 74.9 86.3 43.9
Swin-Base/p4w12 74.3 86.4 43.1
BEiT-Base/p16 75.3 86.7 44.5
"""
_FULL_384_TABLE_8 = """
ResNet-50 66.9 80.9 36.3
ResNeXt-50 68.1 81.9 37.5
EfficientNet-B3 68.2 81.9 37.2
EfficientNet-v2-B3 72.0 84.7 41.0
ConvNeXt-Base 70.7 83.8 39.6
ViT-Base/p16 74.9 86.3 43.9
Swin-Base/p4w12 74.3 86.3 43.3
BEiT-Base/p16 75.3 86.7 44.5
"""


def _table(rows: str, size_px: int, table: int) -> tuple[Reported, ...]:
    """Results of one column group of a table of the paper."""
    results = []
    for row in rows.split("\n"):
        if row:
            name, *percent = row.split(" ")
            top_1, top_3, f1 = (round(float(value) / 100, 3) for value in percent)
            source = f"FungiTastic, table {table}"
            results.append(Reported(f"{name}, {size_px} px", source=source, macro_f1_all=f1, top_1=top_1, top_3=top_3))
    return tuple(results)


# Table 5. The organizers' code took macro-F1 over the union of truth and answers for 1-NN, over all classes otherwise.
_FEW_SHOT_REPORTED = (
    Reported("CLIP, 1-NN", source="FungiTastic, table 5", top_1=0.061, macro_f1_union=0.028),
    Reported("CLIP, centroid", source="FungiTastic, table 5", top_1=0.072, macro_f1_all=0.022, top_3=0.130),
    Reported("DINOv2, 1-NN", source="FungiTastic, table 5", top_1=0.174, macro_f1_union=0.084),
    Reported("DINOv2, centroid", source="FungiTastic, table 5", top_1=0.179, macro_f1_all=0.059, top_3=0.278),
    Reported("BioCLIP, 1-NN", source="FungiTastic, table 5", top_1=0.188, macro_f1_union=0.091),
    Reported("BioCLIP, centroid", source="FungiTastic, table 5", top_1=0.218, macro_f1_all=0.068, top_3=0.326),
    Reported("BEiT-B/p16, 224 px", source="FungiTastic, table 5", top_1=0.110, macro_f1_all=0.021, top_3=0.174),
    Reported("BEiT-B/p16, 384 px", source="FungiTastic, table 5", top_1=0.114, macro_f1_all=0.021, top_3=0.184),
    Reported("ConvNeXt-B, 224 px", source="FungiTastic, table 5", top_1=0.140, macro_f1_all=0.027, top_3=0.231),
    Reported("ConvNeXt-B, 384 px", source="FungiTastic, table 5", top_1=0.154, macro_f1_all=0.029, top_3=0.236),
    Reported("ViT-B/p16, 224 px", source="FungiTastic, table 5", top_1=0.139, macro_f1_all=0.027, top_3=0.215),
    Reported("ViT-B/p16, 384 px", source="FungiTastic, table 5", top_1=0.195, macro_f1_all=0.037, top_3=0.290),
)

CLOSED = Benchmark(
    world_bound="expected_top_1",
    name="fungitastic/closed",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="fungitastic",
    subset="all",
    split=CLOSED_SPLIT,
    task=TASK,
    reported=(
        *_table(_FULL_224, 224, table=4),
        *_table(_FULL_384_TABLE_4, 384, table=4),
        *_table(_FULL_384_TABLE_8, 384, table=8),
    ),
)
MINI_CLOSED = Benchmark(
    name="fungitastic-mini/closed",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="fungitastic",
    subset="Mini",
    split=CLOSED_SPLIT,
    task=TASK,
    reported=(*_table(_MINI_224, 224, table=4), *_table(_MINI_384, 384, table=4), *_table(_MINI_384, 384, table=8)),
)
DNA = Benchmark(
    name="fungitastic/dna",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="fungitastic",
    subset="all",
    split=DNA_SPLIT,
    task=TASK,
)
MINI_DNA = Benchmark(
    name="fungitastic-mini/dna",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="fungitastic",
    subset="Mini",
    split=DNA_SPLIT,
    task=TASK,
)
OPEN = Benchmark(
    world_bound="open_expected_top_1",
    name="fungitastic/open",
    version="3",
    earlier={
        "1": steps_back(with_intervals("all units"), without_top_3),
        "2": steps_back(with_intervals("scarcer group"), without_top_3),
    },
    dataset="fungitastic",
    subset="all",
    split=OPEN_SPLIT,
    task=OPEN_TASK,
)
MINI_OPEN = Benchmark(
    world_bound="open_expected_top_1",
    name="fungitastic-mini/open",
    version="3",
    earlier={
        "1": steps_back(with_intervals("all units"), without_top_3),
        "2": steps_back(with_intervals("scarcer group"), without_top_3),
    },
    dataset="fungitastic",
    subset="Mini",
    split=OPEN_SPLIT,
    task=OPEN_TASK,
)
COST_POISON = Benchmark(
    world_bound="open_expected_top_1",
    name="fungitastic/cost-poison",
    version="3",
    earlier={
        "1": steps_back(with_intervals("scarcer group"), _with_harmless_unknown),
        "2": _with_harmless_unknown,
    },
    dataset="fungitastic",
    subset="all",
    split=OPEN_SPLIT,
    task=POISON_TASK,
)
COST_UNKNOWN = Benchmark(
    world_bound="open_expected_top_1",
    name="fungitastic/cost-unknown",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="fungitastic",
    subset="all",
    split=OPEN_SPLIT,
    task=UNKNOWN_TASK,
)
MINI_COST_POISON = replace(COST_POISON, name="fungitastic-mini/cost-poison", version="1", earlier={}, subset="Mini")
MINI_COST_UNKNOWN = replace(COST_UNKNOWN, name="fungitastic-mini/cost-unknown", version="1", earlier={}, subset="Mini")
FEW_SHOT = Benchmark(
    name="fungitastic-fewshot",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="fungitastic",
    subset="FewShot",
    split=CLOSED_SPLIT,
    task=FEW_SHOT_TASK,
    reported=_FEW_SHOT_REPORTED,
)
SEGMENTATION = Benchmark(
    name="fungitastic-mini/segmentation",
    version="4",
    earlier={**dict.fromkeys(("1", "2"), _with_joined_parts), "3": with_intervals("scarcer group")},
    dataset="fungitastic",
    subset="Mini",
    split=CLOSED_SPLIT,
    task=SEGMENTATION_TASK,
    reported=(Reported("GroundingDINO and SAM ViT-H", source="FungiTastic documentation", iou=0.89),),
)

ENTRIES = {
    "fungitastic/closed": ("CLOSED", "FungiTastic, closed set"),
    "fungitastic/dna": ("DNA", "FungiTastic, DNA-sequenced test photos"),
    "fungitastic/open": ("OPEN", "FungiTastic, open set"),
    "fungitastic/cost-poison": ("COST_POISON", "FungiTastic, a poisonous species called edible costs 100"),
    "fungitastic/cost-unknown": ("COST_UNKNOWN", "FungiTastic, a missed unknown costs 10"),
    "fungitastic-fewshot": ("FEW_SHOT", "FungiTastic, few shots"),
    "fungitastic-mini/cost-poison": (
        "MINI_COST_POISON",
        "FungiTastic-Mini, a poisonous species called edible costs 100",
    ),
    "fungitastic-mini/cost-unknown": ("MINI_COST_UNKNOWN", "FungiTastic-Mini, a missed unknown costs 10"),
    "fungitastic-mini/open": ("MINI_OPEN", "FungiTastic-Mini, open set"),
    "fungitastic-mini/segmentation": ("SEGMENTATION", "FungiTastic-Mini, fruiting bodies and their parts"),
    "fungitastic-mini/closed": ("MINI_CLOSED", "FungiTastic-Mini, closed set"),
    "fungitastic-mini/dna": ("MINI_DNA", "FungiTastic-Mini, DNA-sequenced test photos"),
}
