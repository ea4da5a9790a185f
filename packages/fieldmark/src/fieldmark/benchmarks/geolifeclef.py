"""GeoLifeCLEF 2020: which species are found at a place.

The organizers' evaluator and the run format of 2020 are not public; the metric follows the overview, the long format
is ours, and the list of 30 is that of later years. The threshold is taken over the items that are scored together.

2021 and 2022 take 30 species by their order; 2023 to 2025 ask for all plants of a surveyed plot.
"""

from __future__ import annotations

from dataclasses import replace

from fieldmark.benchmarks.declarations import Benchmark, Reported, Task, with_intervals
from fieldmark.benchmarks.measures import (
    adaptive_top_30,
    list_macro_f1,
    mean_set_size,
    pooled_f1,
    recall_at,
    sample_f1,
    top_error,
)
from fieldmark.questions.listed_labels import ListedLabels
from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.places import Places
from fieldmark.runs.formats import OneOf
from fieldmark.runs.label_lists import Lists
from fieldmark.runs.ranked import Ranked
from fieldmark.runs.scored import Scored
from fieldmark.splits import InBlocks, Official

GEOLIFECLEF_2020 = Benchmark(
    name="geolifeclef-2020",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="geolifeclef-2020",
    split=Official(train="train", val="val", test="test"),
    task=Task(
        items=Places(),
        answer=OneLabel(),
        unit="quadrat",
        inputs=("place", "landcover", "elevation", "satellite", "environment"),
        run=OneOf(
            {
                "observation_id;species_id;score": Scored(columns=("observation_id", "species_id", "score")),
                "Id,Predicted": Ranked(at_most=30, columns=("Id", "Predicted")),
            }
        ),
        metrics=(adaptive_top_30(), recall_at(30), adaptive_top_30(strict=True), mean_set_size()),
    ),
)

PARTS = Official(train="train", val="val", test="test")

GEOLIFECLEF_2021 = Benchmark(
    name="geolifeclef-2021",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="geolifeclef-2021",
    split=PARTS,
    task=replace(
        GEOLIFECLEF_2020.task,
        run=Ranked(at_most=30, columns=("Id", "Predicted")),
        metrics=(top_error(30), recall_at(30)),
    ),
    reported=(
        Reported("the 30 commonest species, val", source="the organizers' notebook", top_30_error=0.940),
        Reported("random forest on 27 rasters, val", source="the organizers' notebook", top_30_error=0.896),
    ),
)
GEOLIFECLEF_2022 = replace(
    GEOLIFECLEF_2021,
    name="geolifeclef-2022",
    dataset="geolifeclef-2022",
    reported=(
        Reported("the 30 commonest species, val", source="the organizers' notebook", top_30_error=0.935),
        Reported("random forest on 27 rasters, val", source="the organizers' notebook", top_30_error=0.804),
    ),
    not_known=("The numbers of species are others than in 2021: never mix the two years.",),
)


def _surveys(year: int, columns: tuple[str, str]) -> Benchmark:
    """The editions that ask for all plants of a plot: the mean over plots of F1, which the organizers call micro.

    2023 learns from records of single plants and has surveys for val; since 2024 surveys are enough to learn from.
    """
    return Benchmark(
        name=f"geolifeclef-{year}",
        version="2",
        earlier={"1": with_intervals("scarcer group")},
        dataset=f"geolifeclef-{year}",
        subset="all" if year == 2023 else "surveys",
        split=replace(PARTS, otherwise=InBlocks(val=0.15, test=0.0)),
        task=Task(
            items=Places(),
            answer=ListedLabels(),
            unit="item_id",
            inputs=("place", "landcover", "elevation", "satellite", "environment"),
            run=Lists(columns=columns),
            metrics=(sample_f1(), pooled_f1(), list_macro_f1(over="present")),
        ),
    )


GEOLIFECLEF_2023 = replace(
    _surveys(2023, ("Id", "Predicted")),
    not_known=("That a run is called Id,Predicted is from memory.",),
)
GEOLIFECLEF_2024 = replace(
    _surveys(2024, ("surveyId", "predictions")),
    reported=(
        Reported(
            "the 25 commonest species",
            source="the organizers' script",
            sample_f1=0.2956,
            pooled_f1=0.3050,
        ),
    ),
    not_known=("The organizers' script drops whole surveys with a species id above 11254; here none is dropped.",),
)
GEOLIFECLEF_2025 = _surveys(2025, ("surveyId", "predictions"))

ENTRIES = {
    "geolifeclef-2020": ("GEOLIFECLEF_2020", "GeoLifeCLEF 2020, species from place"),
    "geolifeclef-2021": ("GEOLIFECLEF_2021", "GeoLifeCLEF 2021, 30 species from place"),
    "geolifeclef-2022": ("GEOLIFECLEF_2022", "GeoLifeCLEF 2022, the same with other species ids"),
    "geolifeclef-2023": ("GEOLIFECLEF_2023", "GeoLifeCLEF 2023, all plants of a plot"),
    "geolifeclef-2024": ("GEOLIFECLEF_2024", "GeoLifeCLEF 2024, all plants of a plot"),
    "geolifeclef-2025": ("GEOLIFECLEF_2025", "GeoLifeCLEF 2025, all plants of a plot"),
}
