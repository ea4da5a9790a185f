"""The nouns of a benchmark: what is asked, of which data, and how the answer is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fieldmark.runs.ranked import Ranked
from fieldmark.splits import Official

ItemKind = Literal["photo", "observation", "segment", "place"]
Delivery = Literal["all at once", "stream"]
Sees = Literal["item", "past", "test set", "hidden labels"]

# The columns of the items table behind each input that a task may allow.
COLUMNS_OF_INPUT: Mapping[str, tuple[str, ...]] = {
    "photo": ("media_ids",),
    "date": ("date",),
    "place": ("lat", "lon"),
    "habitat": ("habitat",),
    "substrate": ("substrate", "meta_substrate"),
    "observer": ("observer",),
    "elevation": ("elevation_m",),
    "landcover": ("landcover",),
    "region": ("country", "region", "district", "biogeographical_region"),
    # Layers: opened by media id or observation id, so that no column of the items stands for them.
    "caption": (),
    "climate": (),
    "satellite": (),
    "masks": (),
}


@dataclass(frozen=True)
class Metric:
    """A metric with its conventions fixed.

    Args:
        name: As it appears on scorecards.
        value: The function that computes it.
        without_each_unit: The function that computes it with each unit left out in turn.
        reads: Which fields of the answers both functions take, by keyword.
        options: The conventions, by keyword as well.
        about: The conventions in words.
        proportion: Whether it is a share of items, so that shares near 0 and 1 get exact intervals.
        higher_is_better: Which way is up.
    """

    name: str
    value: Callable[..., float]
    without_each_unit: Callable[..., Any]
    reads: tuple[str, ...]
    options: Mapping[str, Any]
    about: str
    proportion: bool = False
    higher_is_better: bool = True


@dataclass(frozen=True)
class Task:
    """All that a scorer or a server needs to know.

    Args:
        item: What one answer is about.
        labels: The column that holds the label.
        unit: The column of the items that tells what is independent.
        inputs: What a method may read (keys of `COLUMNS_OF_INPUT`).
        run: The format of the run file.
        metrics: What is measured, the primary metric first.
        delivery: Whether a method gets the test set at once or as a stream in time order.
        sees: What a method may be shown at prediction time.
    """

    item: ItemKind
    labels: str
    unit: str
    inputs: tuple[str, ...]
    run: Ranked
    metrics: tuple[Metric, ...]
    delivery: Delivery = "all at once"
    sees: tuple[Sees, ...] = ("item", "test set")


class Reported:
    """A result that a paper reported, with its source; never mixed with our own.

    >>> Reported("BEiT-B/16, 384 px", source="FungiTastic, table 8", top_1=0.753).values
    {'top_1': 0.753}
    """

    def __init__(self, what: str, *, source: str, **values: float) -> None:
        self.what, self.source, self.values = what, source, values


@dataclass(frozen=True)
class Benchmark:
    """A task on the parts of a dataset, with the results papers reported on it."""

    name: str
    version: str
    dataset: str
    split: Official
    task: Task
    subset: str = "all"
    reported: tuple[Reported, ...] = field(default=())
