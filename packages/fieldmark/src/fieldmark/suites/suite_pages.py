"""The table of a suite as one page that needs no other file."""

from __future__ import annotations

import math
from importlib import resources
from typing import Any, NamedTuple

from fieldmark.registry import require
from fieldmark.suites.costs import REFERENCE
from fieldmark.suites.declarations import Suite
from fieldmark.suites.ranking import ModelRow, SuiteTable
from fieldmark.version import __version__

WIDTH, HEIGHT, MARGIN = 760, 360, 48
# So many rows are laid out at first: a browser takes seconds for hundreds of models by dozens of cells.
FOLD = 50
COST_TITLES = {
    "parameters": "parameters, millions",
    "features": "features",
    "relative_speed": f"speed, {REFERENCE} = 1",
    "photos_per_second": "photos per second",
    "memory_mib": "added memory, MiB",
    "seconds": "seconds, all cells",
}
BEYOND_RELEASE = "external data beyond the release"


class ModelPoint(NamedTuple):
    """A model in the scatter of quality against cost."""

    x: float
    y: float
    model: str
    best: bool


class Scatter(NamedTuple):
    """What lies on the horizontal axis, the points, and where the ticks of both axes stand."""

    across: str
    points: list[ModelPoint]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]


def suite_page(table: SuiteTable, suite: Suite) -> str:
    """The page: a table with filters, the scatter, and what the numbers mean."""
    markup: Any = require("fieldmark.reports.markup", "A page")
    from markupsafe import Markup

    style = resources.files("fieldmark.reports").joinpath("templates", "page.css").read_text(encoding="utf-8")
    costs = [name for name in COST_TITLES if any(name in row.cost for row in table.rows)]
    page: str = markup.render(
        "suite.html.j2",
        table=table,
        suite=suite,
        style=Markup(style),
        version=__version__,
        costs=costs,
        cost_titles=COST_TITLES,
        shown_cost=_shown_cost,
        kingdoms=sorted({one for one in table.kingdoms.values() if one}),
        questions=sorted({one for one in table.questions.values() if one}),
        licenses=sorted({row.license for row in table.rows}),
        data_behind=_data_behind,
        behind=sorted({_data_behind(row) for row in table.rows}),
        ranked=[row for row in table.rows if row.standing is not None],
        best=[row for row in table.rows if row.standing is not None and row.standing.tier == 1],
        scatter=scatter_of(table),
        size=(WIDTH, HEIGHT, MARGIN),
        fold=FOLD,
    )
    return page


def scatter_of(table: SuiteTable) -> Scatter | None:
    """The mean score against speed, on a logarithmic axis; None where fewer than two models have both.

    Speed is that beside the reference; photos per second where results of earlier versions have nothing else.
    """
    rows = [row for row in table.rows if row.standing is not None and row.cost.get("photos_per_second")]
    cost = "relative_speed" if all(row.cost.get("relative_speed") for row in rows) else "photos_per_second"
    if len(rows) < 2:
        return None
    speeds = [math.log10(row.cost[cost]) for row in rows]
    means = [row.standing.mean.value for row in rows if row.standing is not None]
    ticks = [digit * 10.0**power for power in range(-3, 6) for digit in (1, 2, 5)]
    left = max(math.log10(tick) for tick in ticks if math.log10(tick) <= min(speeds))
    right = min(math.log10(tick) for tick in ticks if math.log10(tick) > max(speeds))
    low, high = math.floor(min(means) * 20) / 20, math.ceil(max(means) * 20 + 0.01) / 20

    def across(speed: float) -> float:
        return round(MARGIN + (speed - left) / (right - left) * (WIDTH - 2 * MARGIN), 1)

    def up(mean: float) -> float:
        return round(HEIGHT - MARGIN - (mean - low) / (high - low) * (HEIGHT - 2 * MARGIN), 1)

    points = [
        ModelPoint(across(speed), up(mean), row.model, row.standing is not None and row.standing.tier == 1)
        for row, speed, mean in zip(rows, speeds, means, strict=True)
    ]
    lines = round((high - low) * 20)
    return Scatter(
        COST_TITLES[cost],
        points,
        [(across(math.log10(tick)), f"{tick:g}") for tick in ticks if left <= math.log10(tick) <= right],
        [(up(low + line / 20), f"{100 * (low + line / 20):.0f}") for line in range(lines + 1)],
    )


def _shown_cost(name: str, value: float) -> str:
    if name == "parameters":
        return f"{value / 1e6:.1f}"
    if name == "relative_speed":
        return f"{value:.2f}"
    return f"{value:,.0f}"


def _data_behind(row: ModelRow) -> str:
    """Whether a model has seen more than the release, as far as that was declared."""
    if row.external_data is None:
        return "not declared"
    return BEYOND_RELEASE if row.external_data else "the release alone"
