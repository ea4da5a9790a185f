"""Scores by how much the observer has contributed to training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.reports.charts.estimates import Share, share
from fieldmark.reports.markup import EN_DASH, render
from fieldmark.reports.section import Context, Section
from fieldmark.reports.sections.long_tail import recall_by_class
from fieldmark.tables.labels import UNKNOWN

# Who made an observation, under the names that releases have for it.
COLUMNS = ("observer", "rights_holder")
# The lower ends of the bins of training records per observer.
BIN_STARTS = (0, 1, 2, 10, 100)
# Below this share of items with an observer, a table by observer would speak of who gives names, not of records.
ENOUGH_OBSERVERS = 0.5


@dataclass(frozen=True)
class ObserverBin:
    """Observers with a similar number of training records.

    Args:
        title: How many.
        observers: How many observers of scored items these are.
        right: The share of their items that was answered right.
        same_species: What that share would be if their items were answered as the species in them are on the whole.
    """

    title: str
    observers: int
    right: Share
    same_species: float


class Collectors(Section):
    """Whether records of those who contributed much to training are easier to name."""

    name = "collectors"
    title = "Who collected"

    def applies(self, context: Context) -> bool:
        return observer_column(context) is not None and len(bins(context)) > 1

    def render(self, context: Context) -> str:
        named = observers_of(context)
        return render(
            "sections/collectors.html.j2",
            context=context,
            bins=bins(context),
            trained=" + ".join(context.trained_parts),
            nameless=int((named == "").sum()),
        )


def observer_column(context: Context) -> str | None:
    """The column that names observers, where both training and the scored part have it for most items."""
    parts = [context.opened.items[part] for part in ("train", context.part)]
    for column in COLUMNS:
        if all(column in items.columns and _given(items[column]).mean() > ENOUGH_OBSERVERS for items in parts):
            return column
    return None


def observers_of(context: Context) -> NDArray[np.str_]:
    """The observer of each scored item, empty where nobody has said."""
    return np.array(_names(context.items[observer_column(context) or ""]).to_list(), dtype=np.str_)


def bins(context: Context) -> list[ObserverBin]:
    """Scores by the number of units (observations) that the observer of an item has in training."""
    column = observer_column(context)
    assert column is not None  # asked by `applies`
    records: dict[str, int] = {}
    for part in context.trained_parts:
        units = context.opened.items[part].unique(context.task.unit)
        for name, count in units.group_by(column).len().iter_rows():
            records[name or ""] = records.get(name or "", 0) + count
    names = observers_of(context)
    counts = np.array([records.get(str(name), 0) for name in names])
    place = np.where(names == "", -1, np.searchsorted(BIN_STARTS, counts, side="right") - 1)
    of_class = recall_by_class(context)
    known = context.truth != UNKNOWN
    found = []
    for number in np.unique(place[place >= 0]):
        inside = place == number
        species = of_class[context.truth[inside & known]]
        same = float(species.mean()) if len(species) else float("nan")
        right = share(context.correct[inside], context.unit[inside])
        found.append(ObserverBin(_title(int(number)), len(np.unique(names[inside])), right, same))
    return found


def _title(number: int) -> str:
    start = BIN_STARTS[number]
    if number + 1 == len(BIN_STARTS):
        return f"{start}+"
    last = BIN_STARTS[number + 1] - 1
    return str(start) if last == start else f"{start}{EN_DASH}{last}"


def _names(column: pl.Series) -> pl.Series:
    return column.cast(pl.String).str.strip_chars().fill_null("")


def _given(column: pl.Series) -> NDArray[np.bool_]:
    return (_names(column) != "").to_numpy()


SECTION = Collectors()
