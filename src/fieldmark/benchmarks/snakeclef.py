"""SnakeCLEF 2020: snakes with geography.

The grader is not public. Macro-F1 over the union of truth and answers is what participants' code and the official
grader of 2023 use; the overview prints precision with a typo. How the log loss was clipped is not known: rows are
renormalized and probabilities clipped at 1e-15, and both are said on the scorecard. The venom costs of the 2023 edition
are computed where `classes.csv` has a column `poisonous` (here: venomous). Boxes may be used where somebody has drawn
them; the release has none.
"""

from __future__ import annotations

from fieldmark.benchmarks.declarations import Benchmark, Reported, Task
from fieldmark.benchmarks.measures import log_loss, macro_f1, top, venom_cost, venom_score
from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.photos import Photos
from fieldmark.runs.dense import Dense
from fieldmark.splits import Official

SNAKECLEF_2020 = Benchmark(
    name="snakeclef-2020",
    version="1",
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
