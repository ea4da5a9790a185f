"""PlantCLEF: from sheets to photos in the field (2020, 2021), all plants (2022, 2023), plots (2024 to 2026).

2020: the official forum states the format and that ranks decide between equal probabilities. The list of difficult
species behind the second metric is not public: `classes.csv` names them in a column `rare`. 2021 asks the same of the
same photos. 2022 and 2023 average the reciprocal rank inside each species first. 2024 to 2026 ask for all species in
the photo of a plot: the mean of F1 over plots, since 2025 inside each transect first. `plantclef-2024/single-plants` is
the task of the training data of those years, whose models answer the tiles of a plot.
"""

from __future__ import annotations

from dataclasses import replace

from fieldmark.benchmarks.declarations import Benchmark, Reported, Task, with_intervals
from fieldmark.benchmarks.measures import list_macro_f1, macro_f1, mrr, pooled_f1, sample_f1, species_mrr, top
from fieldmark.questions.listed_labels import ListedLabels
from fieldmark.questions.observations import Observations
from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.photos import Photos
from fieldmark.runs.label_lists import Lists
from fieldmark.runs.ranked import Ranked
from fieldmark.runs.scored import Scored
from fieldmark.splits import Official, Seeded

PLANTCLEF_2020 = Benchmark(
    name="plantclef-2020",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="plantclef-2020",
    split=Official(train="train", test="test", otherwise=Seeded(val=0.15, test=0.0)),
    task=Task(
        items=Observations(),
        answer=OneLabel(),
        unit="item_id",
        inputs=("photo",),
        run=Scored(columns=("ObservationId", "ClassId", "Probability", "Rank"), low=0.0, high=1.0),
        metrics=(mrr(), mrr(rare=True)),
    ),
    reported=(
        Reported("best run", source="LifeCLEF 2020, section 2", mrr=0.18),
        Reported("Neuon AI, run 5", source="the team's repository", mrr=0.121, mrr_rare=0.111),
    ),
)

PARTS = Official(train="train", val="val", test="test", otherwise=Seeded(val=0.15, test=0.0))

PLANTCLEF_2021 = replace(
    PLANTCLEF_2020,
    name="plantclef-2021",
    dataset="plantclef-2021",
    reported=(Reported("Neuon AI", source="the team's working note", mrr=0.181, mrr_rare=0.158),),
    not_known=("That the run format is that of 2020 is from memory.",),
)
PLANTCLEF_2022 = Benchmark(
    name="plantclef-2022",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="plantclef-2022",
    split=PARTS,
    task=Task(
        items=Observations(),
        answer=OneLabel(),
        unit="item_id",
        inputs=("photo", "place"),
        run=Scored(columns=("obsid", "classid", "probability", "rank"), at_most=30),
        metrics=(species_mrr(), mrr()),
    ),
    reported=(Reported("first place", source="the team's working note", species_mrr=0.62692),),
    not_known=("That labels that are not listed count 0, and that ranks decide ties, is taken over from 2020.",),
)
PLANTCLEF_2023 = replace(PLANTCLEF_2022, name="plantclef-2023", dataset="plantclef-2022", reported=())


def _plots(year: int, *, by_transect: bool) -> Task:
    """All species in the photo of a plot."""
    column = "quadrat_id" if by_transect else "plot_id"
    primary = sample_f1(by="unit") if by_transect else sample_f1()
    other = sample_f1() if by_transect else replace(sample_f1(by="unit"), optional=True)
    return Task(
        items=Photos(),
        answer=ListedLabels(),
        unit="transect",
        inputs=("photo", "place", "date"),
        run=Lists(columns=(column, "species_ids"), separator=", ", brackets=True, all_quoted=year >= 2025),
        metrics=(primary, other, list_macro_f1(over="present"), pooled_f1()),
    )


PLANTCLEF_2024 = Benchmark(
    name="plantclef-2024",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="plantclef-2024",
    split=PARTS,
    task=_plots(2024, by_transect=False),
    provisional="that F1 is averaged over plots is from memory, and so is what separates the fields of a run",
)
PLANTCLEF_2025 = Benchmark(
    name="plantclef-2025",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="plantclef-2024",
    split=PARTS,
    task=_plots(2025, by_transect=True),
    reported=(
        Reported("first place, private board", source="the team's working note", unit_f1=0.3648),
        Reported("second place, private board", source="the team's working note", unit_f1=0.348),
    ),
    not_known=(
        "Which transect a quadrat belongs to: the table is not public, and the truth must name it as `unit`.",
        "What an empty list or a species named twice counts: here an empty list counts 0, and twice is once.",
    ),
)
PLANTCLEF_2026 = replace(PLANTCLEF_2025, name="plantclef-2026", dataset="plantclef-2024", reported=())

# What the answer to a plot is put together from: the release cuts its single plants into train, val and test as well.
SINGLE_PLANTS = Benchmark(
    name="plantclef-2024/single-plants",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="plantclef-2024",
    split=replace(PARTS, test="single-test"),
    task=Task(
        items=Photos(),
        answer=OneLabel(),
        unit="observation_id",
        inputs=("photo", "place", "organ"),
        run=Ranked(at_most=10, columns=("image_name", "species_id")),
        metrics=(macro_f1(over="all"), top(1), top(5)),
    ),
    not_known=("Nobody was ranked by it: the columns of a run are those of the table of single plants.",),
)

ENTRIES = {
    "plantclef-2020": ("PLANTCLEF_2020", "PlantCLEF 2020, across domains"),
    "plantclef-2021": ("PLANTCLEF_2021", "PlantCLEF 2021, across domains"),
    "plantclef-2022": ("PLANTCLEF_2022", "PlantCLEF 2022, 80,000 species"),
    "plantclef-2023": ("PLANTCLEF_2023", "PlantCLEF 2023, the same test observations"),
    "plantclef-2024": ("PLANTCLEF_2024", "PlantCLEF 2024, all species of a plot"),
    "plantclef-2024/single-plants": ("SINGLE_PLANTS", "PlantCLEF 2024 to 2026, single plants for training"),
    "plantclef-2025": ("PLANTCLEF_2025", "PlantCLEF 2025, all species of a quadrat, by transect"),
    "plantclef-2026": ("PLANTCLEF_2026", "PlantCLEF 2026, second round on the same data"),
}
