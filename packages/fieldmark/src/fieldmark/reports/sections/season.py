"""Errors by month."""

from __future__ import annotations

from calendar import month_abbr
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from fieldmark.reports.charts.estimates import Share, share
from fieldmark.reports.charts.plots import ORANGE, TINT, draw, stacked
from fieldmark.reports.markup import plural, render
from fieldmark.reports.section import Context, Section

# Below this share of items with a date, a table by month would speak of the dates, not of the items.
ENOUGH_DATES = 0.5


@dataclass(frozen=True)
class Month:
    """One month of the year and the share of its items that were answered wrong."""

    number: int
    wrong: Share

    @property
    def title(self) -> str:
        return month_abbr[self.number]


class Season(Section):
    """When the method errs."""

    name = "season"
    title = "Season of errors"

    def applies(self, context: Context) -> bool:
        return _dated_share(context) > ENOUGH_DATES

    def render(self, context: Context) -> str:
        by_month = months(context)
        figure = draw(
            "season-months",
            partial(_paint, by_month=by_month, context=context),
            width=1036,
            height=400,
            description=f"{context.unit_noun.capitalize()}s and error rate on {context.part} for each month.",
        )
        undated = int(context.items["date"].is_null().sum())
        return render("sections/season.html.j2", context=context, figure=figure, months=by_month, undated=undated)


def months(context: Context) -> list[Month]:
    """The months that have items, in the order of the year."""
    number = context.items["date"].dt.month().fill_null(0).to_numpy()
    return [
        Month(int(month), share(~context.correct[number == month], context.unit[number == month]))
        for month in np.unique(number[number > 0])
    ]


def _dated_share(context: Context) -> float:
    return float((~context.items["date"].is_null()).to_numpy().mean())


def _paint(figure: Figure, *, by_month: list[Month], context: Context) -> None:
    above, below = stacked(figure, heights=(1, 1.3))
    above.bar(
        [month.number for month in by_month],
        [month.wrong.units for month in by_month],
        width=0.7,
        color=TINT,
        linewidth=0,
    )
    above.set_title(f"{context.part.capitalize()} {plural(context.unit_noun)}")
    above.locator_params(axis="y", nbins=4, integer=True)
    for month in by_month:
        if month.wrong.low is not None and month.wrong.high is not None:
            below.vlines(month.number, month.wrong.low, month.wrong.high, color=ORANGE, linewidth=2)
    below.plot([month.number for month in by_month], [month.wrong.value for month in by_month], "o", color=ORANGE)
    below.set_title(f"Error rate by {context.item_noun}")
    below.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    below.set(ylim=(-0.02, 1.04), yticks=[0, 0.25, 0.5, 0.75, 1], xlim=(0.4, 12.6))
    below.set_xticks(range(1, 13), [month_abbr[number] for number in range(1, 13)])


SECTION = Season()
