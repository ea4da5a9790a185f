"""How well unknown species are separated from known ones, and what they were taken for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from fieldmark.benchmarks.titles import metric_title
from fieldmark.fitting.unknown_table import ALL_UNKNOWN, UnknownTable
from fieldmark.metrics.openset import known_roc_auc
from fieldmark.reports.charts.estimates import Share, share
from fieldmark.reports.charts.plots import BLUE, MUTED, ORANGE, TINT, draw, name_curve, stacked
from fieldmark.reports.markup import render
from fieldmark.reports.section import Context, Section
from fieldmark.reports.sections.confusions import CaptionedPhoto, one_per_unit, training_photos
from fieldmark.tables.labels import UNKNOWN

BINS = 24
SHOWN = 6
PHOTOS = 3


@dataclass(frozen=True)
class TakenFor:
    """Unknown items that were answered with one known label."""

    label: str
    items: int
    units: int
    photos: tuple[CaptionedPhoto, ...]
    known: tuple[CaptionedPhoto, ...]


@dataclass(frozen=True)
class Operating:
    """What the answers of the run do: which share of the known they accept, and of the unknown they reject."""

    accepted: Share
    rejected: Share


class Unknown(Section):
    """The open set: curve, histograms, scores, and what unknown species were taken for."""

    name = "unknown"
    title = "Unknown species"

    def applies(self, context: Context) -> bool:
        strange = context.truth == UNKNOWN
        return context.predictions.unknown is not None and bool(strange.any()) and not strange.all()

    def render(self, context: Context) -> str:
        score, strange = strangeness(context), context.truth == UNKNOWN
        point = operating_point(context)
        decides = bool((context.predicted == UNKNOWN).any())
        roc = draw(
            "unknown-roc",
            partial(_paint_roc, curve=roc_curve(score, strange), point=point if decides else None),
            width=460,
            height=460,
            description="Share of known items accepted against share of unknown items accepted, for every threshold.",
        )
        histogram = draw(
            "unknown-histogram",
            partial(_paint_histogram, score=score, strange=strange, line=threshold(context), noun=context.item_noun),
            width=520,
            height=460,
            description="How many known and how many unknown items have each novelty score.",
        )
        table = UnknownTable.read(context.first.folder) if context.first.folder else None
        return render(
            "sections/unknown.html.j2",
            context=context,
            roc=roc,
            histogram=histogram,
            auc=known_roc_auc(score, ~strange),
            point=point,
            decides=decides,
            known=int((~strange).sum()),
            unknown=int(strange.sum()),
            units=len(np.unique(context.unit[strange])),
            taken=taken_for(context),
            answered=int((strange & (context.predicted != UNKNOWN)).sum()),
            table=table,
            columns=_columns(table, context.part),
        )


def strangeness(context: Context) -> NDArray[np.float64]:
    """The unknown score of each item."""
    assert context.predictions.unknown is not None  # applies() said so
    return np.asarray(context.predictions.unknown, dtype=np.float64)


def roc_curve(score: NDArray[np.float64], strange: NDArray[np.bool_]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The shares of unknown and of known items at or below each score, from (0, 0) to (1, 1)."""
    lines = np.unique(score)
    shares = [
        np.searchsorted(np.sort(score[group]), lines, side="right") / group.sum() for group in (strange, ~strange)
    ]
    return np.append(0.0, shares[0]), np.append(0.0, shares[1])


def operating_point(context: Context) -> Operating:
    """Where the answers of the run stand."""
    strange, rejected = context.truth == UNKNOWN, context.predicted == UNKNOWN
    return Operating(
        accepted=share(~rejected[~strange], context.unit[~strange]),
        rejected=share(rejected[strange], context.unit[strange]),
    )


def threshold(context: Context) -> float | None:
    """The threshold from val that the run answers by, where it has one."""
    thresholds = [step.get("threshold") for step in context.first.run.steps if step.get("step") == "unknown-threshold"]
    return thresholds[-1] if thresholds else None


def taken_for(context: Context) -> list[TakenFor]:
    """The known labels that unknown items were answered with, most items first."""
    rows_of: dict[int, list[int]] = {}
    for row in np.flatnonzero((context.truth == UNKNOWN) & (context.predicted != UNKNOWN)):
        rows_of.setdefault(int(context.predicted[row]), []).append(int(row))
    score = strangeness(context)
    counts = []
    for code, rows in sorted(rows_of.items(), key=lambda pair: (-len(pair[1]), pair[0]))[:SHOWN]:
        label = context.labels.names[code]
        rows = sorted(rows, key=lambda row: score[row])
        items = [context.predictions.items[row] for row in one_per_unit(context, tuple(rows))]
        counts.append(
            TakenFor(
                label=label,
                items=len(rows),
                units=len({int(context.unit[row]) for row in rows}),
                photos=tuple(CaptionedPhoto(item, context.thumbnail(item)) for item in items[:PHOTOS]),
                known=tuple(training_photos(context, label)),
            )
        )
    return counts


def _columns(table: UnknownTable | None, part: str) -> list[tuple[str, str, str, str]]:
    """Title, part, group and metric of each column of the table of scores."""
    if table is None:
        return []
    columns = []
    for name in dict.fromkeys(("val", part)):
        for group in table.scores.get(name, {}):
            for key in ("roc_auc", "tnr_at_95_tpr") if group == ALL_UNKNOWN else ("roc_auc",):
                where = name if group == ALL_UNKNOWN else f"{name}, species {group}"
                columns.append((f"{metric_title(key)}, {where}", name, group, key))
    return columns


def _paint_roc(figure: Figure, *, curve: tuple[NDArray[Any], NDArray[Any]], point: Operating | None) -> None:
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (4, 4)))
    axes.plot(*curve, color=BLUE, drawstyle="steps-post")
    name_curve(axes, [0.5], [0.5], "by chance", MUTED)
    name_curve(axes, curve[0].tolist(), curve[1].tolist(), "this run", BLUE)
    axes.set_title("Known accepted")
    axes.set_xlabel("unknown accepted")
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.04), xticks=np.linspace(0, 1, 6), yticks=np.linspace(0, 1, 6))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1, decimals=0))
    if point is not None:
        x, y = 1 - point.rejected.value, point.accepted.value
        axes.plot(x, y, "o", color=ORANGE, markersize=9)
        aside = "right" if x > 0.8 else "left" if x < 0.2 else "center"
        axes.annotate("answers of this run", (x, y), xytext=(0, -24), textcoords="offset points", ha=aside)


def _paint_histogram(
    figure: Figure, *, score: NDArray[np.float64], strange: NDArray[np.bool_], line: float | None, noun: str
) -> None:
    above, below = stacked(figure, heights=(1, 1))
    edges = np.linspace(score.min(), max(score.max(), score.min() + 1e-9), BINS + 1)
    for axes, group, color, title in ((above, ~strange, TINT, "Known"), (below, strange, ORANGE, "Unknown")):
        axes.hist(score[group], bins=edges.tolist(), color=color, linewidth=0, rwidth=0.9)
        axes.set_title(f"{title} {noun}s")
        axes.locator_params(axis="y", nbins=4, integer=True)
        if line is not None and edges[0] <= line <= edges[-1]:
            axes.axvline(line, color=MUTED, linewidth=1.2, linestyle=(0, (4, 4)))
    below.set_xlabel("novelty score" + ("; called unknown to the right of the line" if line is not None else ""))


SECTION = Unknown()
