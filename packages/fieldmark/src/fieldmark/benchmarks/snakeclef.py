"""SnakeCLEF: snakes with geography, and what mistakes about venom cost.

2020: the grader is not public. Macro-F1 over the union of truth and answers is what participants' code and the official
grader of 2023 use; the overview prints precision with a typo. How the log loss was clipped is not known: rows are
renormalized and probabilities clipped at 1e-15, and both are said on the scorecard. The venom costs of the 2023 edition
are computed where `classes.csv` has a column `poisonous` (here: venomous). Boxes may be used where somebody has drawn
them; the release has none.

2021 ranks by macro-F1 inside each country, 2022 by macro-F1, 2023 and 2024 by a score that weighs venom confusions.
"""

from __future__ import annotations

from dataclasses import replace

from fieldmark.benchmarks.declarations import Benchmark, Reported, Task, with_intervals
from fieldmark.benchmarks.measures import country_macro_f1, log_loss, macro_f1, top, venom_cost, venom_score
from fieldmark.questions.observations import Observations
from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.photos import Photos
from fieldmark.runs.dense import Dense
from fieldmark.runs.ranked import Ranked
from fieldmark.splits import Official, Seeded

SNAKECLEF_2020 = Benchmark(
    name="snakeclef-2020",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="snakeclef-2020",
    split=Official(train="train", val="val", test="test"),
    task=Task(
        items=Photos(),
        answer=OneLabel(),
        unit="item_id",
        inputs=("photo", "region", "boxes"),
        run=Dense(item="hashed_id"),
        metrics=(
            macro_f1(over="union"),
            log_loss(eps=1e-15, renormalize="before clipping"),
            top(1),
            venom_score(),
            venom_cost(),
        ),
    ),
    reported=(
        Reported("Gokuleloop", source="LifeCLEF 2020, section 5", macro_f1_union=0.625, log_loss=0.83),
        Reported("FHDO BCSG", source="LifeCLEF 2020, section 5", macro_f1_union=0.404, log_loss=6.650),
    ),
)

PARTS = Official(train="train", val="val", test="test", otherwise=Seeded(val=0.15, test=0.0))

SNAKECLEF_2021 = Benchmark(
    name="snakeclef-2021",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="snakeclef-2021",
    split=PARTS,
    task=Task(
        items=Photos(),
        answer=OneLabel(),
        unit="item_id",
        inputs=("photo", "region", "boxes"),
        run=Ranked(at_most=1, columns=("UUID", "prediction")),
        metrics=(macro_f1(over="union"), country_macro_f1(), top(1)),
        by=("country",),
        decides="country_macro_f1",
    ),
    provisional="the page names macro-F1 by country; the formula (inside each country, then the mean) is from memory",
)
SNAKECLEF_2022 = Benchmark(
    name="snakeclef-2022",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="snakeclef-2022",
    split=PARTS,
    task=Task(
        items=Observations(),
        answer=OneLabel(),
        unit="observation_id",
        inputs=("photo", "region"),
        run=Ranked(at_most=1, columns=("ObservationId", "class_id")),
        metrics=(macro_f1(over="union"), top(1)),
    ),
    reported=(Reported("first place, private board", source="abstract of the working note", macro_f1_union=0.927),),
    provisional="macro-F1 is what participants name; over which classes nobody says, the union is what later ones use",
)
SNAKECLEF_2023 = Benchmark(
    name="snakeclef-2023",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="snakeclef-2023",
    split=PARTS,
    task=Task(
        items=Observations(),
        answer=OneLabel(),
        unit="observation_id",
        inputs=("photo", "region"),
        run=Ranked(at_most=1, columns=("observation_id", "class_id"), more_columns=True),
        metrics=(venom_score(), venom_cost(), macro_f1(over="union"), top(1)),
    ),
    reported=(Reported("first place, private board", source="the team's working note", venom_score=91.31),),
    not_known=(
        "The evaluator rounds each share of mistakes to two digits of a percent first; here nothing is rounded.",
    ),
)
SNAKECLEF_2024 = replace(SNAKECLEF_2023, name="snakeclef-2024", dataset="snakeclef-2024", reported=())

ENTRIES = {
    "snakeclef-2020": ("SNAKECLEF_2020", "SnakeCLEF 2020, with geography"),
    "snakeclef-2021": ("SNAKECLEF_2021", "SnakeCLEF 2021, macro-F1 by country"),
    "snakeclef-2022": ("SNAKECLEF_2022", "SnakeCLEF 2022, by observation"),
    "snakeclef-2023": ("SNAKECLEF_2023", "SnakeCLEF 2023, venom score"),
    "snakeclef-2024": ("SNAKECLEF_2024", "SnakeCLEF 2024, venom score on other countries"),
}
