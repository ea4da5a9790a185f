"""FungiTastic in time order: the open-set test as it came in, one day after the other (section 3.2 of the paper).

"A model processing an observation with a timestamp t has access to all observations with timestamp t' where t' < t":
an observation is one item, whose photos see each other; items of one day do not, and labels are never shown. Metrics
are those of the open set, also by month.

`day-batch` and `delayed-labels` are variants of ours: items of one day see each other; or the labels of a day become
known two weeks later, as when experts confirm what was sent in. Where a release has no open set of Mini, the closed set
is asked for in its place.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fieldmark.benchmarks.declarations import Benchmark, Sees, TimeOrder, steps_back, with_intervals
from fieldmark.benchmarks.fungitastic import CLOSED_SPLIT, OPEN_SPLIT, OPEN_TASK, TASK, without_top_3
from fieldmark.questions.observations import Observations
from fieldmark.questions.photos import Photos

LABELS_AFTER_DAYS = 14
NOT_THE_FUTURE: tuple[Sees, ...] = ("item", "unit", "past")
DAY_BATCH, DELAYED_LABELS = TimeOrder(day_together=True), TimeOrder(labels_after_days=LABELS_AFTER_DAYS)

TEMPORAL_TASK = replace(OPEN_TASK, items=Observations(), time_order=TimeOrder(), sees=NOT_THE_FUTURE, by=("month",))
CLOSED_TEMPORAL_TASK = replace(TASK, items=Observations(), time_order=TimeOrder(), sees=NOT_THE_FUTURE, by=("month",))

_EARLIER_OPEN = steps_back(with_intervals("scarcer group"), without_top_3)

TEMPORAL = Benchmark(
    world_bound="open_expected_top_1",
    name="fungitastic/temporal",
    version="4",
    earlier={
        "1": steps_back(partial(replace, items=Photos(), intervals="all units"), without_top_3),
        "2": steps_back(partial(replace, items=Photos(), intervals="scarcer group"), without_top_3),
        "3": _EARLIER_OPEN,  # an observation is one item
    },
    dataset="fungitastic",
    subset="all",
    split=OPEN_SPLIT,
    task=TEMPORAL_TASK,
)
MINI_CLOSED_TEMPORAL = Benchmark(
    name="fungitastic-mini/temporal-closed",
    version="2",
    earlier={"1": with_intervals("scarcer group")},
    dataset="fungitastic",
    subset="Mini",
    split=CLOSED_SPLIT,
    task=CLOSED_TEMPORAL_TASK,
)
MINI_TEMPORAL = Benchmark(
    name="fungitastic-mini/temporal",
    version="2",
    earlier={"1": _EARLIER_OPEN},
    dataset="fungitastic",
    subset="Mini",
    split=OPEN_SPLIT,
    task=TEMPORAL_TASK,
    without_open_set=MINI_CLOSED_TEMPORAL,
)


def _variant(benchmark: Benchmark, name: str, order: TimeOrder) -> Benchmark:
    """The benchmark with another order of time, under its name with that of the variant behind it."""
    closed = benchmark.without_open_set
    return replace(
        benchmark,
        name=f"{benchmark.name}-{name}",
        version="2",
        earlier={"1": _EARLIER_OPEN if benchmark.task.unknown else with_intervals("scarcer group")},
        task=replace(benchmark.task, time_order=order),
        without_open_set=None if closed is None else _variant(closed, name, order),
    )


TEMPORAL_DAY_BATCH = _variant(TEMPORAL, "day-batch", DAY_BATCH)
TEMPORAL_DELAYED_LABELS = _variant(TEMPORAL, "delayed-labels", DELAYED_LABELS)
MINI_TEMPORAL_DAY_BATCH = _variant(MINI_TEMPORAL, "day-batch", DAY_BATCH)
MINI_TEMPORAL_DELAYED_LABELS = _variant(MINI_TEMPORAL, "delayed-labels", DELAYED_LABELS)
MINI_CLOSED_TEMPORAL_DAY_BATCH = _variant(MINI_CLOSED_TEMPORAL, "day-batch", DAY_BATCH)
MINI_CLOSED_TEMPORAL_DELAYED_LABELS = _variant(MINI_CLOSED_TEMPORAL, "delayed-labels", DELAYED_LABELS)

ENTRIES = {
    "fungitastic/temporal": ("TEMPORAL", "FungiTastic, open set in time order"),
    "fungitastic/temporal-day-batch": ("TEMPORAL_DAY_BATCH", "the same, but items of the same day may see each other"),
    "fungitastic/temporal-delayed-labels": (
        "TEMPORAL_DELAYED_LABELS",
        "the same, but labels become known two weeks later",
    ),
    "fungitastic-mini/temporal": (
        "MINI_TEMPORAL",
        "FungiTastic-Mini in time order; closed set where the release has no open one",
    ),
    "fungitastic-mini/temporal-day-batch": (
        "MINI_TEMPORAL_DAY_BATCH",
        "the same, but items of the same day may see each other",
    ),
    "fungitastic-mini/temporal-delayed-labels": (
        "MINI_TEMPORAL_DELAYED_LABELS",
        "the same, but labels become known two weeks later",
    ),
    "fungitastic-mini/temporal-closed": ("MINI_CLOSED_TEMPORAL", "FungiTastic-Mini in time order, closed set"),
    "fungitastic-mini/temporal-closed-day-batch": (
        "MINI_CLOSED_TEMPORAL_DAY_BATCH",
        "the same, but items of the same day may see each other",
    ),
    "fungitastic-mini/temporal-closed-delayed-labels": (
        "MINI_CLOSED_TEMPORAL_DELAYED_LABELS",
        "the same, but labels become known two weeks later",
    ),
}
