"""The runs of a page compared on the same units: who is ahead, by how much, and how sure that is."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from fieldmark.questions.targets import Shape
from fieldmark.reports.charts.plots import GREEN, MUTED, draw
from fieldmark.reports.markup import render
from fieldmark.reports.section import Context, Section
from fieldmark.scoring.comparison import Comparison, compare, rank_range


class ComparedRuns(Section):
    """What `fieldmark compare` says, on the page."""

    name = "comparison"
    title = "Comparison on the same units"
    shapes: ClassVar[tuple[Shape, ...]] = ("codes", "pairs", "masks")

    def applies(self, context: Context) -> bool:
        primary = context.task.metrics[0].name
        cards = [scored.scorecard for scored in context.runs]
        return (
            len({scored.title for scored in context.runs}) > 1
            and all(primary in card.pseudo for card in cards)
            and len({card.unit_ids for card in cards}) == 1
        )

    def render(self, context: Context) -> str:
        primary = context.task.metrics[0]
        compared = compare({scored.title: scored.scorecard for scored in context.runs}, metric=primary.name)
        rows = compared.rows()
        return render(
            "sections/comparison.html.j2",
            context=context,
            columns=[name for name in rows[0] if name != "run"],
            rows=[
                (name, compared.names.index(name) in compared.outcome.best_group, [row[c] for c in row if c != "run"])
                for name, row in zip(compared.names, rows, strict=True)
            ],
            primary=primary.name,
            figure=draw(
                "comparison-ranks",
                partial(_paint, compared=compared, percent=primary.is_share),
                width=720,
                height=int(60 + 34 * len(compared.names)),
                description="Scores of all runs with intervals and the ranks that they may have.",
            ),
            share=primary.is_share,
        )


def _paint(figure: Figure, *, compared: Comparison, percent: bool) -> None:
    axes = figure.subplots()
    for place, score in enumerate(compared.scores):
        color = GREEN if place in compared.outcome.best_group else MUTED
        low = score.value if score.low is None else score.low
        high = score.value if score.high is None else score.high
        axes.hlines(place, low, high, color=color, linewidth=2)
        axes.plot(score.value, place, "o", color=color)
        standing = compared.outcome.standings[place]
        rank = f"rank {rank_range(standing.rank_low, standing.rank_high)}"
        axes.annotate(rank, (high, place), xytext=(8, 0), textcoords="offset points", va="center", color=color, size=11)
    axes.set_yticks(range(len(compared.names)), compared.names)
    axes.set_ylim(len(compared.names) - 0.5, -0.5)
    axes.set_xmargin(0.16)
    axes.grid(True, axis="x")
    axes.grid(False, axis="y")
    if percent:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}%"))


SECTION = ComparedRuns()
