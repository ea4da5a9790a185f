"""BirdCLEF 2020: which birds sing in each five seconds of a soundscape.

The organizers' evaluator sorts equal scores with the right ones first, which inflates runs with many equal scores;
`cmap_expected` and `rmap_expected` do not depend on the order.
"""

from __future__ import annotations

from fieldmark.benchmarks.declarations import Benchmark, Reported, Task
from fieldmark.benchmarks.measures import cmap, rmap
from fieldmark.questions.any_labels import AnyLabels
from fieldmark.questions.segments import Segments
from fieldmark.runs.segments import SegmentLists
from fieldmark.splits import Official

BIRDCLEF_2020 = Benchmark(
    name="birdclef-2020",
    version="2",  # since 1: an event without length marks no segment, as the organizers have it
    dataset="birdclef-2020",
    split=Official(train="train", val="val", test="test"),
    task=Task(
        items=Segments(seconds=5),
        answer=AnyLabels(),
        unit="recording",
        inputs=("recording", "date", "time", "place", "site"),
        run=SegmentLists(seconds=5, at_most=10),
        metrics=(cmap(), rmap(), cmap(ties="expected"), rmap(ties="expected")),
        by=("site",),
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
