"""FGVCx Fungi 2018. The draft of the challenge asked for five answers, the final rule for three."""

from __future__ import annotations

from fieldmark.benchmarks.declarations import Benchmark, Task
from fieldmark.benchmarks.measures import top_error
from fieldmark.runs.ranked import Ranked
from fieldmark.splits import Official

FUNGI_2018 = Benchmark(
    name="fgvcx-fungi-2018",
    version="1",
    dataset="fgvcx-fungi-2018",
    split=Official(train="train", val="val", test="test"),
    task=Task(
        item="photo",
        labels="category_id",
        unit="item_id",
        inputs=("photo",),
        run=Ranked(at_most=5, at_least=3),
        metrics=(top_error(5), top_error(3)),
    ),
)
