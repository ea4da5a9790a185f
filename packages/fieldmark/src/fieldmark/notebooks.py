"""How objects show themselves in a notebook: tables as HTML, and plots that need no setting up."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from fieldmark.errors import MisuseError
from fieldmark.registry import require
from fieldmark.storage.files import appearing_file

PLOT_FORMATS = ("png", "svg", "pdf")
DOTS_PER_INCH = 150
GREEN, GRAY, BLUE = "#0b6e4f", "#6b7280", "#0072b2"
MARK = "<strong style='color:#a63603'>Simulated data.</strong> "


@dataclass(frozen=True)
class DrawnPlot:
    """A plot that a notebook shows, and that can be written to a file.

    Args:
        figure: The figure of matplotlib, for whoever wants to change it.
    """

    figure: Any = field(repr=False)

    def save(self, path: str | Path) -> Path:
        """Writes the plot; the ending of the file decides the format.

        Raises:
            MisuseError: For an ending that is none of `PLOT_FORMATS`.
        """
        path = Path(path)
        form = path.suffix.removeprefix(".").lower()
        if form not in PLOT_FORMATS:
            suffixes = ", ".join(f".{name}" for name in PLOT_FORMATS)
            raise MisuseError(f"{path}: found a plot ending in {path.suffix or 'nothing'}, expected one of {suffixes}.")
        with appearing_file(path) as partial:
            self.figure.savefig(partial, format=form, dpi=DOTS_PER_INCH)
        return path

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH / 1.5)
        return buffer.getvalue()


def draw_plot(paint: Callable[[Any], None], *, width: float = 7.0, height: float = 3.0) -> DrawnPlot:
    """A plot of a size in inches; `paint` gets its axes."""
    module: Any = require("matplotlib.figure", "A plot")
    figure = module.Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["left", "top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    paint(axes)
    return DrawnPlot(figure)


def draw_intervals(
    names: Sequence[str],
    bounds: Sequence[tuple[float, float | None, float | None]],
    *,
    label: str,
    green: Sequence[int] = (),
    beside: Sequence[str] = (),
) -> DrawnPlot:
    """Values with their intervals, one line each.

    Args:
        names: What each is called.
        bounds: Value, lower and upper end of each; None where there is no interval.
        label: What stands below the axis.
        green: Which of them are set apart by color; the others are gray, and all are blue where there are none.
        beside: What stands to the right of each.
    """

    def paint(axes: Any) -> None:
        for place, (value, low, high) in enumerate(bounds):
            color = BLUE if not green else GREEN if place in green else GRAY
            ends = (value if low is None else low, value if high is None else high)
            axes.plot(ends, [place, place], color=color, linewidth=2)
            axes.plot(value, place, "o", color=color)
            if beside:
                axes.annotate(
                    beside[place], (ends[1], place), xytext=(6, 0), textcoords="offset points", va="center", size=8
                )
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_xmargin(0.15)
        axes.set_ymargin(0.15)
        axes.set_xlabel(label)

    return draw_plot(paint, height=1.1 + 0.42 * len(names))


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = True) -> str:
    """A table as HTML, everything escaped; nothing where it has no rows.

    >>> html_table(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><th>&lt;b&gt;</th></tr></tbody></table>'
    """
    if not rows:
        return ""
    align = " style='text-align:right'" if numbers else " style='text-align:left'"
    head = "".join(f"<th{align if place else ''}>{html.escape(name)}</th>" for place, name in enumerate(columns))
    body = "".join(
        "<tr>"
        + "".join(
            f"<th>{html.escape(cell)}</th>" if place == 0 else f"<td{align}>{html.escape(cell)}</td>"
            for place, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as plain text: the first column to the left, the others to the right.

    >>> print(text_table(["metric", "score"], [["top_1", "50.0"], ["mrr", "7.5"]]))
    metric  score
    top_1    50.0
    mrr       7.5
    """
    widths = [max(len(row[place]) for row in (columns, *rows)) for place in range(len(columns))]
    cells = [
        [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        for row in (columns, *rows)
    ]
    return "\n".join("  ".join(row).rstrip() for row in cells)


def html_page(title: str, *parts: str, simulated: bool = False) -> str:
    """A heading and what stands below it; parts are HTML already, the title is not."""
    mark = f"<p>{MARK}It says nothing about nature.</p>" if simulated else ""
    return f"<div><p><strong>{html.escape(title)}</strong></p>{mark}{''.join(parts)}</div>"


def html_note(text: str) -> str:
    """A sentence below a table."""
    return f"<p style='opacity:.75'>{html.escape(text)}</p>"


def shown_bounds(value: float, low: float | None, high: float | None, *, percent: bool) -> tuple[str, str, str]:
    """A value and the ends of its interval, with as many digits as it takes to tell the ends apart, six at most.

    >>> shown_bounds(0.5, 0.41, 0.59, percent=True), shown_bounds(0.99991, 0.9999, 0.99992, percent=True)
    (('50.0', '41.0', '59.0'), ('99.991', '99.990', '99.992'))
    >>> shown_bounds(1.25, None, None, percent=False)
    ('1.250', '', '')
    """
    scale, digits = (100, 1) if percent else (1, 3)
    if low is None or high is None:
        return f"{scale * value:.{digits}f}", "", ""
    while digits < 6 and low < high and f"{scale * low:.{digits}f}" == f"{scale * high:.{digits}f}":
        digits += 1
    return f"{scale * value:.{digits}f}", f"{scale * low:.{digits}f}", f"{scale * high:.{digits}f}"


def bounds_text(value: float, low: float | None, high: float | None, *, percent: bool) -> tuple[str, str]:
    """A value and its interval as people read them.

    >>> bounds_text(0.5, 0.41, 0.59, percent=True), bounds_text(1.25, None, None, percent=False)
    (('50.0', '41.0 to 59.0'), ('1.250', ''))
    """
    shown, *ends = shown_bounds(value, low, high, percent=percent)
    return ("undefined" if value != value else shown), " to ".join(ends) if ends[0] else ""
