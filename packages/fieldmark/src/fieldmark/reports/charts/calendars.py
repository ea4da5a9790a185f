"""Observations over time, one strip per part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from numpy.typing import NDArray

from fieldmark.reports.charts.plots import HEAT, WASH

Every = Literal["week", "month", "year"]

# How many years one strip shows in weeks, and in months.
YEARS_IN_WEEKS, YEARS_IN_MONTHS = 4, 45
POLARS_NAMES: dict[Every, str] = {"week": "1w", "month": "1mo", "year": "1y"}
DAYS_IN_WEEK, WEEKS_IN_YEAR = 7, 52
GAP = 0.24
# Where this share of the observations takes more than the rest of the room, a calendar begins after them.
OLD_SHARE, OLD_ROOM = 0.05, 0.6


@dataclass(frozen=True)
class CalendarStrip:
    """Stretches of time that hold observations, in order.

    Args:
        starts, ends: In days; of the year, or as matplotlib counts them.
        counts: How many observations each holds, at least one.
    """

    starts: NDArray[np.float64]
    ends: NDArray[np.float64]
    counts: NDArray[np.int64]


def focus(dates: Mapping[str, pl.Series]) -> date:
    """Where a calendar begins: at the first date, or later where a few old observations would take most of the room."""
    together = pl.concat(list(dates.values())).sort()
    start: date = together[0]
    end: date = together[-1]
    late: date = together[int(len(together) * OLD_SHARE)]
    return late if (end - late) < (end - start) * OLD_ROOM else start


def choose_every(dates: pl.Series) -> Every:
    """Weeks for a few years, months for a few decades, years beyond."""
    first, last = dates.min(), dates.max()
    assert isinstance(first, date) and isinstance(last, date)  # callers give dates, at least one
    years = (last - first).days / 365.25
    return "week" if years <= YEARS_IN_WEEKS else "month" if years <= YEARS_IN_MONTHS else "year"


def over_the_years(dates: pl.Series, every: Every) -> CalendarStrip:
    """The dates by week, month or year."""
    truncated = dates.dt.truncate(POLARS_NAMES[every])
    counted = truncated.value_counts(name="count").sort(truncated.name)
    starts: list[date] = counted[truncated.name].to_list()
    ends = [_after(start, every) for start in starts]
    return CalendarStrip(
        np.array(date2num(starts)), np.array(date2num(ends)), counted["count"].to_numpy().astype(np.int64)
    )


def over_one_year(dates: pl.Series) -> CalendarStrip:
    """The dates of all years by week of the year, counted in days from January 1; the last week is longer."""
    week = np.minimum((dates.dt.ordinal_day().to_numpy() - 1) // DAYS_IN_WEEK, WEEKS_IN_YEAR - 1)
    weeks, counts = np.unique(week, return_counts=True)
    starts = weeks * float(DAYS_IN_WEEK)
    ends = np.where(weeks == WEEKS_IN_YEAR - 1, 366.0, starts + DAYS_IN_WEEK)
    return CalendarStrip(starts, ends, counts.astype(np.int64))


def paint_strips(axes: Axes, strips: Mapping[str, CalendarStrip], steps: Mapping[str, NDArray[np.int64]]) -> None:
    """Strips from top to bottom; the x axis is left to the caller.

    Args:
        axes: Empty.
        strips: One per part.
        steps: For each stretch of a strip its step of the color scale, from 0.
    """
    first = min(float(strip.starts[0]) for strip in strips.values())
    last = max(float(strip.ends[-1]) for strip in strips.values())
    for row, (part, strip) in enumerate(strips.items()):
        axes.broken_barh([(first, last - first)], (row - (1 - GAP) / 2, 1 - GAP), facecolor=WASH, linewidth=0)
        for number in np.unique(steps[part]):
            cells = np.flatnonzero(steps[part] == number)
            spans = [(strip.starts[cell], strip.ends[cell] - strip.starts[cell]) for cell in cells]
            # The edge closes the seams that would show between neighbors.
            color = HEAT[number]
            axes.broken_barh(spans, (row - (1 - GAP) / 2, 1 - GAP), facecolor=color, edgecolor=color, linewidth=0.4)
    axes.set_xlim(first, last)
    axes.set_ylim(len(strips) - 0.5, -0.5)
    axes.set_yticks(range(len(strips)), list(strips))
    axes.grid(False)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="x", length=4)


def date_axis(axes: Axes) -> None:
    """Makes the x axis one of dates."""
    locator = AutoDateLocator(minticks=4, maxticks=12)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, show_offset=False))


def _after(start: date, every: Every) -> date:
    if every == "week":
        return start + timedelta(days=DAYS_IN_WEEK)
    if every == "year":
        return date(start.year + 1, 1, 1)
    return date(start.year + start.month // 12, start.month % 12 + 1, 1)
