"""GeoLifeCLEF 2020: which species are found at a place.

The organizers' evaluator and the run format of 2020 are not public; the metric follows the overview, the long format
is ours, and the list of 30 is that of later years. The threshold is taken over the items that are scored together.
"""

from __future__ import annotations

from fieldmark.benchmarks.declarations import Benchmark, Task
from fieldmark.benchmarks.measures import adaptive_top_30, mean_set_size, recall_at
from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.places import Places
from fieldmark.runs.one_of import OneOf
from fieldmark.runs.ranked import Ranked
from fieldmark.runs.scored import Scored
from fieldmark.splits import Official

GEOLIFECLEF_2020 = Benchmark(
    name="geolifeclef-2020",
    version="1",
    dataset="geolifeclef-2020",
    split=Official(train="train", val="val", test="test"),
    task=Task(
        items=Places(),
        answer=OneLabel(),
        unit="quadrat",
        inputs=("place", "landcover", "elevation", "satellite", "climate"),
        run=OneOf(
            {
                "observation_id;species_id;score": Scored(columns=("observation_id", "species_id", "score")),
                "Id,Predicted": Ranked(at_most=30, columns=("Id", "Predicted")),
            }
        ),
        metrics=(adaptive_top_30(), recall_at(30), adaptive_top_30(strict=True), mean_set_size()),
    ),
)
