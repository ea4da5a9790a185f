"""The nouns of a benchmark: what is asked, of which data, and how the answer is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from fieldmark.labels import Labels
from fieldmark.runs.predictions import Predictions
from fieldmark.splits import Official

ItemKind = Literal["photo", "observation", "segment", "place", "mask"]
Delivery = Literal["all at once", "stream"]
Sees = Literal["item", "past", "test set", "hidden labels"]

# The columns of the items table behind each input that a task may allow.
COLUMNS_OF_INPUT: Mapping[str, tuple[str, ...]] = {
    "photo": ("media_ids",),
    "recording": ("media_ids", "recording"),
    "date": ("date",),
    "time": ("time",),
    "site": ("site",),
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
        reads: Which fields of the answers (`fieldmark.answers`) the functions take, by keyword; "keyword=field" where
            the two are called differently.
        options: The conventions, by keyword as well.
        about: The conventions in words.
        without_each_unit: The function that computes it with each unit left out in turn.
        resampled: In its place, for metrics that rest on a quantile: the function that computes it for samples of the
            units (`times`). With neither it describes the run and has no interval.
        proportion: Whether it is a share of items, so that shares near 0 and 1 get exact intervals.
        higher_is_better: Which way is up.
        bounds: Between which numbers it lies.
        largest_cost: For mean costs, what the dearest mistake costs: rare dear mistakes get an interval of their own.
        few_units: Whether it may rest on few of its units (a part that few photos show), so that fewer degrees of
            freedom are counted on.
        optional: Whether it is left off the scorecard where what it reads is not given (a list of rare species).
    """

    name: str
    value: Callable[..., float]
    reads: tuple[str, ...]
    options: Mapping[str, Any]
    about: str
    without_each_unit: Callable[..., Any] | None = None
    resampled: Callable[..., Any] | None = None
    proportion: bool = False
    higher_is_better: bool = True
    bounds: tuple[float, float] = (0.0, 1.0)
    largest_cost: float | None = None
    few_units: bool = False
    optional: bool = False

    @property
    def is_share(self) -> bool:
        """Whether it lies between 0 and 1, so that it reads well in percent."""
        return self.bounds == (0.0, 1.0)


class RunFormat(Protocol):
    """How a run is written down."""

    def write(self, path: Path, predictions: Predictions) -> None: ...

    def read(self, path: Path, items: Sequence[str], labels: Labels) -> Predictions: ...

    def labels_in(self, path: Path) -> set[str]: ...


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
        unknown: Whether items may be of none of the known labels; truth and answers then say -1.
        by: Columns of the truth by whose values the metrics are shown as well (month, site, split).
        decides: The metric that ranks the entries of a challenge, where the primary one could be gamed.
    """

    item: ItemKind
    labels: str
    unit: str
    inputs: tuple[str, ...]
    run: RunFormat
    metrics: tuple[Metric, ...]
    delivery: Delivery = "all at once"
    sees: tuple[Sees, ...] = ("item", "test set")
    unknown: bool = False
    by: tuple[str, ...] = ()
    decides: str = ""

    @property
    def deciding(self) -> Metric:
        """The metric that ranks the entries of a challenge: the one named by `decides`, or else the primary one."""
        return next(metric for metric in self.metrics if self.decides in ("", metric.name))


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
