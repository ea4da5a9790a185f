"""Where and when the observations of each part were made."""

from __future__ import annotations

from calendar import month_abbr
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial

import numpy as np
import polars as pl
from markupsafe import Markup
from matplotlib.figure import Figure

from fieldmark.reports.charts import heat
from fieldmark.reports.charts.calendars import (
    Every,
    choose_every,
    date_axis,
    focus,
    over_one_year,
    over_the_years,
    paint_strips,
)
from fieldmark.reports.charts.maps import MapExtent, MapPoints, most_in_hexagon, paint_map, uses_dots
from fieldmark.reports.charts.plots import draw
from fieldmark.reports.markup import render
from fieldmark.reports.section import Context, Section
from fieldmark.splits import PARTS

# Below this share of observations with a place (a date), a map (a calendar) would speak of who noted it.
ENOUGH = 0.5
WIDTH = 1036
MOST_PANEL_PIXELS = 500
ROW_PIXELS = 34


@dataclass(frozen=True)
class PartFacts:
    """How much of a part has a place and a date."""

    part: str
    observations: int
    placed: int
    dated: int
    first: date | None
    last: date | None


class WhereWhen(Section):
    """A map and a calendar."""

    name = "where-when"
    title = "Where and when"

    def applies(self, context: Context) -> bool:
        part_facts = facts(context)
        return has_map(part_facts) or has_calendar(part_facts)

    def render(self, context: Context) -> str:
        part_facts = facts(context)
        map_, map_steps = _draw_map(places(context)) if has_map(part_facts) else (None, None)
        calendar, season, every, old, start = None, None, None, 0, None
        if has_calendar(part_facts):
            by_date = dates(context)
            start = focus(by_date)
            shown = {part: day.filter(day >= start) for part, day in by_date.items()}
            shown = {part: day for part, day in shown.items() if len(day)}
            old = sum(map(len, by_date.values())) - sum(map(len, shown.values()))
            every = choose_every(pl.concat(list(shown.values())))
            calendar, season = _draw_calendar(shown, every), _draw_season(by_date)
        return render(
            "sections/where_when.html.j2",
            context=context,
            facts=part_facts,
            map=map_,
            map_steps=map_steps,
            every=every,
            calendar=calendar,
            season=season,
            season_steps=heat.SHARE_TITLES,
            old=old,
            start=start,
        )


def facts(context: Context) -> list[PartFacts]:
    """What is known of each part that has items."""
    part_facts = []
    for part in _parts(context):
        rows = context.observations(part)
        day = rows["date"].drop_nulls()
        first, last = (day.min(), day.max()) if len(day) else (None, None)
        assert first is None or isinstance(first, date)
        assert last is None or isinstance(last, date)
        part_facts.append(
            PartFacts(part, len(rows), int(rows.select(_placed()).to_series().sum()), len(day), first, last)
        )
    return part_facts


def has_map(part_facts: list[PartFacts]) -> bool:
    """Whether enough observations have a place."""
    return _enough(sum(one.placed for one in part_facts), part_facts)


def has_calendar(part_facts: list[PartFacts]) -> bool:
    """Whether enough observations have a date."""
    return _enough(sum(one.dated for one in part_facts), part_facts)


def places(context: Context) -> dict[str, MapPoints]:
    """The places of each part that has any."""
    placed = {part: context.observations(part).filter(_placed()) for part in _parts(context)}
    return {
        part: MapPoints(rows["lat"].to_numpy(), rows["lon"].to_numpy()) for part, rows in placed.items() if len(rows)
    }


def dates(context: Context) -> dict[str, pl.Series]:
    """The dates of each part that has any."""
    dated = {part: context.observations(part)["date"].drop_nulls() for part in _parts(context)}
    return {part: day for part, day in dated.items() if len(day)}


def _parts(context: Context) -> list[str]:
    return [part for part in PARTS if part in context.opened.items and len(context.opened.items[part])]


def _placed() -> pl.Expr:
    """Both coordinates are there and on the globe."""
    return pl.col("lat").is_between(-90, 90).fill_null(False) & pl.col("lon").is_between(-180, 180).fill_null(False)


def _enough(number: int, part_facts: list[PartFacts]) -> bool:
    return number > 0 and number >= ENOUGH * sum(one.observations for one in part_facts)


def _draw_map(points_of: Mapping[str, MapPoints]) -> tuple[Markup, list[str] | None]:
    starts = None if uses_dots(points_of) else heat.count_starts(most_in_hexagon(points_of))
    panel = min((WIDTH - 60) // len(points_of), MOST_PANEL_PIXELS)
    figure = draw(
        "where-when-map",
        partial(paint_map, places=points_of, starts=starts),
        width=panel * len(points_of) + 60,
        height=round(panel * MapExtent.around(points_of).shape) + 60,
        description=f"A map of the observations of {', '.join(points_of)}, one panel each, of the same stretch "
        "of land.",
    )
    return figure, None if starts is None else heat.titles(starts)


def _draw_calendar(dates_of: Mapping[str, pl.Series], every: Every) -> tuple[Markup, list[str]]:
    strips = {part: over_the_years(day, every) for part, day in dates_of.items()}
    starts = heat.count_starts(max(int(strip.counts.max()) for strip in strips.values()))
    steps = {part: heat.steps(strip.counts, starts) for part, strip in strips.items()}

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        paint_strips(axes, strips, steps)
        date_axis(axes)
        axes.set_title(f"Observations per {every}")

    about = f"Observations per {every} in {', '.join(dates_of)}, one strip each."
    return _strips_figure("where-when-calendar", paint, len(strips), about), heat.titles(starts)


def _draw_season(dates_of: Mapping[str, pl.Series]) -> Markup:
    strips = {part: over_one_year(day) for part, day in dates_of.items()}
    # Each part by itself: what differs between seasons is their shape, not how much was seen.
    shares = {part: strip.counts / strip.counts.max() for part, strip in strips.items()}
    steps = {part: np.array([heat.share_step(share) for share in dates_of]) for part, dates_of in shares.items()}

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        paint_strips(axes, strips, steps)
        axes.set_xlim(0, 366)
        days = [date(2024, month, 1).timetuple().tm_yday - 1 for month in range(1, 13)]
        axes.set_xticks(days, [month_abbr[month] for month in range(1, 13)], ha="left")
        axes.set_title("Season: weeks of the year, all years together")

    about = f"Observations per week of the year in {', '.join(dates_of)}, one strip each."
    return _strips_figure("where-when-season", paint, len(strips), about)


def _strips_figure(name: str, paint: Callable[[Figure], None], rows: int, about: str) -> Markup:
    return draw(name, paint, width=WIDTH, height=60 + ROW_PIXELS * rows, description=about)


SECTION = WhereWhen()
