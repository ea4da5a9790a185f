"""FGVCx Fungi 2018. The draft of the challenge asked for five answers, the final rule for three.

The organizers' program reads at least as many answers as a rule asks for and looks at the first ones, passes over ids
that it did not ask about, and compares ids of categories as text. Runs are written with five answers, so that both
rules can be computed; a run that lists three has the same error under both.
"""

from __future__ import annotations

from fieldmark.benchmarks.declarations import Benchmark, Task, with_intervals
from fieldmark.benchmarks.measures import top_error
from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.photos import Photos
from fieldmark.runs.ranked import Ranked
from fieldmark.splits import Official

FUNGI_2018 = Benchmark(
    name="fgvcx-fungi-2018",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="fgvcx-fungi-2018",
    split=Official(train="train", val="val", test="test"),
    task=Task(
        items=Photos(),
        answer=OneLabel(),
        unit="item_id",
        inputs=("photo",),
        run=Ranked(at_most=5, at_least=3, other_items=True, cut=True),
        metrics=(top_error(5), top_error(3)),
        by=("usage",),  # the public and the private board
    ),
)

ENTRIES = {
    "fgvcx-fungi-2018": ("FUNGI_2018", "FGVCx Fungi 2018"),
}
