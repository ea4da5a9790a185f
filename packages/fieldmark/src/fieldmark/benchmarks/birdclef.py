"""BirdCLEF: which birds sing in each five seconds of a soundscape.

2020: the organizers' evaluator sorts equal scores with the right ones first, which inflates runs with many equal
scores; `cmap_expected` and `rmap_expected` do not depend on the order.

2021 to 2026: Kaggle competitions on hidden recordings; rows are called by the end of their segment. 2021 asks for lists
and calls the mean over rows of their F1 "micro"; `nocall` is a label like any other, and lists are scored as written
(version 1 wrote it into empty ones, and struck it out beside birds). 2022 asks yes or no for few species, only some
pairs of which count; a run answers all of them (by version 1 what is missing is a no). 2023 adds five true rows to
every class; 2024 to 2026 take the mean of ROC-AUC over classes that occur.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, cast

from fieldmark.benchmarks.declarations import Benchmark, Reported, Task, steps_back, with_intervals
from fieldmark.benchmarks.measures import balanced_decisions, cmap, padded_cmap, rmap, sample_f1, species_roc_auc
from fieldmark.questions.any_labels import AnyLabels
from fieldmark.questions.listed_labels import ListedLabels
from fieldmark.questions.presence import Presence
from fieldmark.questions.segments import SegmentRows, Segments
from fieldmark.runs.decisions import YesOrNo
from fieldmark.runs.dense import Dense
from fieldmark.runs.label_lists import Lists
from fieldmark.runs.segments import SegmentLists
from fieldmark.splits import Official, Seeded

BIRDCLEF_2020 = Benchmark(
    name="birdclef-2020",
    version="3",
    # Since 2 an event without length marks no segment, as the organizers have it (by 1 too, now).
    earlier=dict.fromkeys(("1", "2"), with_intervals("scarcer group")),
    dataset="birdclef-2020",
    split=Official(train="train", val="val", test="test"),
    task=Task(
        items=Segments(seconds=5),
        answer=AnyLabels(),
        unit="recording",
        inputs=("recording", "date", "time", "place", "site"),
        run=SegmentLists(seconds=5),
        metrics=(cmap(), rmap(), cmap(ties="expected"), rmap(ties="expected")),
        by=("site",),
        # "Participants were not allowed to use this data for training": the validation soundscapes.
        learns_from=("train", "unlabeled", "coarse"),
        # The official cmap gives a run of equal scores the best of all orders: a constant one would win a challenge.
        decides="cmap_expected",
    ),
    reported=(
        Reported("best team, all four sites", source="LifeCLEF 2020, section 3", cmap=0.128),
        Reported("best team, validation", source="LifeCLEF 2020, section 3", cmap=0.148),
        Reported("best team, High Sierra Nevada", source="LifeCLEF 2020, section 3", cmap=0.333),
        Reported("best team, South America", source="LifeCLEF 2020, section 3", cmap=0.07),
    ),
)

INPUTS = ("recording", "date", "time", "place", "site")
PARTS = Official(train="train", val="val", test="test", otherwise=Seeded(val=0.15, test=0.0))
PRIVATE = "Kaggle, private board"


def _with_runs(task: Task, **rules: Any) -> Task:
    """The task with runs read by other rules."""
    return replace(task, run=replace(cast(Any, task.run), **rules))


BIRDCLEF_2021 = Benchmark(
    name="birdclef-2021",
    version="2",
    earlier={"1": steps_back(with_intervals("scarcer group"), partial(_with_runs, written_lists="completed"))},
    dataset="birdclef-2021",
    split=PARTS,
    task=Task(
        items=SegmentRows(seconds=5),
        answer=ListedLabels(silence="nocall"),
        unit="recording",
        inputs=INPUTS,
        run=Lists(columns=("row_id", "birds"), silence="nocall", segment_s=5),
        metrics=(sample_f1(),),
        by=("site",),
    ),
    reported=(Reported("first place", source=PRIVATE, sample_f1=0.6932),),
    provisional="the metric is known from participants' code only",
    not_known=("How many test recordings there were, and which of them made the public board.",),
)
BIRDCLEF_2022 = Benchmark(
    name="birdclef-2022",
    version="2",
    earlier={"1": steps_back(with_intervals("scarcer group"), partial(_with_runs, every_pair=False))},
    dataset="birdclef-2022",
    split=PARTS,
    task=Task(
        items=SegmentRows(seconds=5),
        answer=Presence(),
        unit="recording",
        inputs=INPUTS,
        run=YesOrNo(segment_s=5),
        metrics=(balanced_decisions(),),
    ),
    not_known=(
        "Which pairs of recording and species were scored: the list is private.",
        "The page describes the weights in words; the mean of sensitivity and specificity by species is our reading.",
    ),
)
BIRDCLEF_2023 = Benchmark(
    name="birdclef-2023",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="birdclef-2023",
    split=PARTS,
    task=Task(
        items=SegmentRows(seconds=5),
        answer=AnyLabels(),
        unit="recording",
        inputs=INPUTS,
        run=Dense(item="row_id", low=-math.inf, high=math.inf, segment_s=5),
        metrics=(padded_cmap(), cmap(ties="grouped"), species_roc_auc()),
    ),
)


def _by_roc_auc(year: int, *reported: Reported) -> Benchmark:
    """The editions since 2024: one column per class, mean ROC-AUC over the classes that occur in what is scored."""
    return Benchmark(
        name=f"birdclef-{year}",
        version="2",
        earlier={"1": with_intervals("scarcer group")},
        dataset=f"birdclef-{year}",
        split=PARTS,
        task=replace(BIRDCLEF_2023.task, metrics=(species_roc_auc(), cmap(ties="grouped"))),
        reported=reported,
        not_known=("What the evaluator does with a class that is in every row: here it is left out.",),
    )


BIRDCLEF_2024 = _by_roc_auc(2024, Reported("first place", source=PRIVATE, species_roc_auc=0.690))
BIRDCLEF_2025 = _by_roc_auc(2025, Reported("first place", source=PRIVATE, species_roc_auc=0.930))
BIRDCLEF_2026 = _by_roc_auc(2026)

ENTRIES = {
    "birdclef-2020": ("BIRDCLEF_2020", "BirdCLEF 2020, soundscapes"),
    "birdclef-2021": ("BIRDCLEF_2021", "BirdCLEF 2021, lists of birds"),
    "birdclef-2022": ("BIRDCLEF_2022", "BirdCLEF 2022, yes or no for rare birds"),
    "birdclef-2023": ("BIRDCLEF_2023", "BirdCLEF 2023, padded average precision"),
    "birdclef-2024": ("BIRDCLEF_2024", "BirdCLEF 2024, mean ROC-AUC"),
    "birdclef-2025": ("BIRDCLEF_2025", "BirdCLEF 2025, mean ROC-AUC, birds and other animals"),
    "birdclef-2026": ("BIRDCLEF_2026", "BirdCLEF 2026, mean ROC-AUC, birds and other animals"),
}
