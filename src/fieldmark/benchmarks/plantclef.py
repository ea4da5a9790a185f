"""PlantCLEF 2020: from herbarium sheets to photos in the field.

The official forum states the format and that ranks decide between equal probabilities. The list of difficult species
behind the second metric is not public: `classes.csv` names them in a column `rare`.
"""

from __future__ import annotations

from fieldmark.benchmarks.declarations import Benchmark, Reported, Task
from fieldmark.benchmarks.measures import mrr
from fieldmark.questions.observations import Observations
from fieldmark.questions.one_label import OneLabel
from fieldmark.runs.scored import Scored
from fieldmark.splits import Official, Seeded

PLANTCLEF_2020 = Benchmark(
    name="plantclef-2020",
    version="1",
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
