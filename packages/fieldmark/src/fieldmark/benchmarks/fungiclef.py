"""FungiCLEF 2022 to 2025: the challenges on the same observations.

2022 takes one class per observation, -1 for unknown, and ranks by macro-F1. 2023 and 2024 take the same and report
macro-F1 over the union of truth and answers with unknown as a class, and four tracks of error and cost. 2025 takes
ranked classes of the few-shot set and reports recall at 5.
"""

from __future__ import annotations

from dataclasses import replace

from fieldmark.benchmarks.declarations import Benchmark, Reported, Task, with_intervals
from fieldmark.benchmarks.measures import fungiclef_track, open_macro_f1, recall_at, top
from fieldmark.questions.observations import Observations
from fieldmark.questions.one_label import OneLabel
from fieldmark.runs.ranked import Ranked
from fieldmark.splits import Official

OBSERVATION = ("observationID", "observation_id", "observationId")

FUNGICLEF_2023 = Benchmark(
    name="fungiclef-2023",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="fungiclef-2023",
    split=Official(train="train", val="val", test="test"),
    task=Task(
        items=Observations(),
        answer=OneLabel(unknown=True),
        unit="observation_id",
        inputs=("photo", "date", "place", "habitat", "substrate"),
        run=Ranked(at_most=1, columns=(OBSERVATION, "class_id"), more_columns=True),
        metrics=(
            open_macro_f1(over="union"),
            fungiclef_track(1),
            fungiclef_track(2),
            fungiclef_track(3),
            fungiclef_track(4),
        ),
    ),
    reported=(
        Reported(
            "Etheredge, public board",
            source="FungiCLEF 2024, abstract of the working note",
            macro_f1_union=0.4981,
            track_1=0.2394,
            track_2=0.1681,
            track_3=0.4075,
        ),
    ),
)
FUNGICLEF_2022 = replace(
    FUNGICLEF_2023,
    name="fungiclef-2022",
    dataset="fungiclef-2022",
    task=replace(
        FUNGICLEF_2023.task,
        run=Ranked(at_most=1, columns=("ObservationId", ("ClassId", "class_id"))),
        metrics=(open_macro_f1(over="union"),),
    ),
    reported=(Reported("a team", source="abstract of its working note", macro_f1_union=0.789),),
    provisional="the evaluator is not public; that unknown (-1) counts as one class is from memory",
)
FUNGICLEF_2024 = replace(
    FUNGICLEF_2023,
    name="fungiclef-2024",
    dataset="fungiclef-2023",
    task=replace(FUNGICLEF_2023.task, decides="track_3"),
    not_known=("That track 3 ranked the teams is from memory; the evaluator reports all four.",),
)
FUNGICLEF_2025 = Benchmark(
    name="fungiclef-2025",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="fungitastic",
    subset="FewShot",
    split=Official(train="Train", val="ClosedSet-Val", test="ClosedSet-Test"),
    task=Task(
        items=Observations(),
        answer=OneLabel(),
        unit="observation_id",
        inputs=("photo", "date", "place", "habitat", "substrate", "caption"),
        run=Ranked(at_most=10, columns=(("observationId", "observationID", "observation_id"), "predictions")),
        metrics=(recall_at(5), top(1)),
    ),
    reported=tuple(
        Reported(name, source="FungiTastic documentation, FungiCLEF 2025", recall_at_5=value)
        for name, value in (("Etheredge", 0.789), ("hard_work", 0.781), ("prototype baseline", 0.267), ("NN", 0.247))
    ),
)

ENTRIES = {
    "fungiclef-2023": ("FUNGICLEF_2023", "FungiCLEF 2023, four tracks"),
    "fungiclef-2025": ("FUNGICLEF_2025", "FungiCLEF 2025, recall at 5"),
    "fungiclef-2022": ("FUNGICLEF_2022", "FungiCLEF 2022, open set by observation"),
    "fungiclef-2024": ("FUNGICLEF_2024", "FungiCLEF 2024, four tracks"),
}
