"""The score over the year, and how frequent labels are: as they were, and as the answers have it."""

from __future__ import annotations

from calendar import month_abbr
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from fieldmark.reports.charts.estimates import Share, share
from fieldmark.reports.charts.plots import BLUE, MUTED, ORANGE, draw, percent_axis
from fieldmark.reports.markup import render
from fieldmark.reports.section import UNKNOWN_SPECIES, Context, Section
from fieldmark.tables.labels import UNKNOWN

# Below this share of items with a date, a picture of the year would speak of the dates, not of the items.
ENOUGH_DATES = 0.5
# The most frequent labels, so many, each in a panel of its own; unknown comes besides.
PANELS = 5
FREQUENCY_STEPS = ("prior-online", "prior-em", "prior-map", "prior-confusion", "month-prior")
Shares = NDArray[np.float64]


@dataclass(frozen=True)
class LabelYear:
    """How frequent one label is in each month: truly, and by the answers.

    Args:
        title: As a reader calls it.
        true: Its share among the items of each month.
        estimated: The mean probability that the run gives to it there.
        trained: Its share in train; None for unknown.
    """

    title: str
    true: Shares
    estimated: Shares
    trained: float | None


@dataclass(frozen=True)
class Year:
    """The months that have items, in the order of the year.

    Args:
        months: Their numbers.
        right: The share of right first answers in each.
        labels: The most frequent labels, and unknown.
        off_by: Half the summed difference between estimated and true shares of all labels, in each month.
    """

    months: tuple[int, ...]
    right: tuple[Share, ...]
    labels: tuple[LabelYear, ...]
    off_by: Shares


class YearSection(Section):
    """How the score and the estimated frequencies of labels move through the year."""

    name = "year"
    title = "Score and frequencies over the year"

    def applies(self, context: Context) -> bool:
        if context.all_probabilities is None or "date" not in context.items.columns:
            return False
        steps = {str(step.get("step")) for step in context.first.run.steps}
        asked = context.task.time_order is not None or bool(steps & set(FREQUENCY_STEPS))
        return asked and float(context.items["date"].is_not_null().mean()) > ENOUGH_DATES  # type: ignore[arg-type]

    def render(self, context: Context) -> str:
        shown = year(context)
        figure = draw(
            "year-score",
            partial(_paint, shown=shown),
            width=1036,
            height=180 + 190 * ((len(shown.labels) + 2) // 3),
            description="Share correct in each month, and true and estimated shares of frequent labels.",
        )
        undated = int(context.items["date"].is_null().sum())
        return render(
            "sections/year.html.j2", context=context, figure=figure, year=shown, undated=undated, names=month_abbr
        )


def year(context: Context) -> Year:
    """What the picture shows."""
    chances = context.all_probabilities
    assert chances is not None  # `applies` has looked
    number = context.items["date"].dt.month().fill_null(0).to_numpy()
    months = tuple(int(month) for month in np.unique(number[number > 0]))
    width = chances.shape[1]
    column = np.where(context.truth == UNKNOWN, len(context.labels), context.truth)
    true = np.stack([_shares(column[number == month], len(context.labels) + 1) for month in months])
    estimated = np.zeros_like(true)
    for row, month in enumerate(months):
        estimated[row, :width] = chances[number == month].mean(axis=0, dtype=np.float64)
    commonest = np.argsort(-np.bincount(column, minlength=true.shape[1])[: len(context.labels)], kind="stable")
    trained = _shares(np.repeat(np.arange(len(context.labels)), context.train_counts), len(context.labels))
    labels = [
        LabelYear(context.title(context.labels.names[code]), true[:, code], estimated[:, code], float(trained[code]))
        for code in commonest[:PANELS].tolist()
    ]
    if context.task.unknown:
        labels.append(LabelYear(UNKNOWN_SPECIES, true[:, -1], estimated[:, -1], None))
    right = tuple(share(context.correct[number == month], context.unit[number == month]) for month in months)
    return Year(months, right, tuple(labels), np.abs(true - estimated).sum(axis=1) / 2)


def _shares(codes: NDArray[np.integer], size: int) -> Shares:
    counts = np.bincount(codes, minlength=size).astype(np.float64)
    return np.asarray(counts / max(counts.sum(), 1.0))


def _with_gaps(months: Sequence[int], values: Sequence[float] | Shares) -> tuple[list[int], list[float]]:
    """One value for each month of the year, none where there is nothing, so that no line runs over a gap."""
    value_of = dict(zip(months, map(float, values), strict=True))
    return list(range(1, 13)), [value_of.get(month, float("nan")) for month in range(1, 13)]


def _paint(figure: Figure, *, shown: Year) -> None:
    rows = (len(shown.labels) + 2) // 3
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(1, rows)).ravel()
    axes = above.subplots()
    for month, one in zip(shown.months, shown.right, strict=True):
        if one.low is not None and one.high is not None:
            axes.vlines(month, one.low, one.high, color=BLUE, linewidth=2)
    axes.plot(*_with_gaps(shown.months, [one.value for one in shown.right]), "o-", color=BLUE)
    percent_axis(axes, "Right first answers")
    axes.set(xlim=(0.4, 12.6))
    axes.set_xticks(range(1, 13), [month_abbr[number] for number in range(1, 13)])
    panels = below.subplots(rows, 3, squeeze=False, sharex=True).ravel()
    for place, panel in enumerate(panels):
        if place >= len(shown.labels):
            panel.set_visible(False)
            continue
        label = shown.labels[place]
        if label.trained is not None:
            panel.axhline(label.trained, color=MUTED, linewidth=1, linestyle=":", label="in train")
        panel.plot(*_with_gaps(shown.months, label.true), "o-", color=ORANGE, markersize=4, label="true")
        panel.plot(*_with_gaps(shown.months, label.estimated), "s--", color=BLUE, markersize=4, label="estimated")
        panel.set_title(label.title, fontsize=12)
        panel.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        panel.set(xlim=(0.4, 12.6), ylim=(0, None))
        panel.set_xticks([1, 4, 7, 10], [month_abbr[number] for number in (1, 4, 7, 10)])
        if place == 0:
            panel.legend(fontsize=10)


SECTION = YearSection()
