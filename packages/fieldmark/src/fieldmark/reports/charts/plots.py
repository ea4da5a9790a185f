"""The look that all plots share, and how a figure becomes part of a page.

Colors are those of Okabe and Ito (2008), which people with any kind of color vision tell apart. In the page each is a
CSS variable, so that figures follow the light or dark theme; text takes the font of the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from io import StringIO

from markupsafe import Markup, escape
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

INK, MUTED, RULE, WASH = "#1d2733", "#5c6875", "#dfe4e8", "#f5f7f5"
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"
# Bars are a tint of the blue: solid, so that grid lines do not show through.
TINT = "#8cbfdd"
# From little to much: five steps of ColorBrewer's YlGnBu, which stay apart for color-blind eyes and in gray.
HEAT = ("#ffffcc", "#a1dab4", "#41b6c4", "#2c7fb8", "#253494")
# The names of these colors as variables in `page.css`.
VARIABLES = {
    INK: "ink", MUTED: "muted", RULE: "rule", WASH: "wash",
    BLUE: "blue", ORANGE: "orange", GREEN: "green", TINT: "tint",
    **{color: f"heat-{step}" for step, color in enumerate(HEAT, start=1)},
}  # fmt: skip

LOOK = {
    "axes.axisbelow": True,
    "axes.edgecolor": RULE,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelcolor": MUTED,
    "axes.labelsize": 12,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "figure.facecolor": "none",
    "font.size": 12,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "legend.fontsize": 12,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.8,
    "svg.fonttype": "none",
    "text.color": INK,
    "xtick.color": RULE,
    "xtick.labelcolor": MUTED,
    "ytick.color": RULE,
    "ytick.labelcolor": MUTED,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
}

POINTS_PER_INCH = 72
# Wider figures scroll on a phone; narrower ones shrink with it.
WIDE_PIXELS = 600


def draw(name: str, paint: Callable[[Figure], None], *, width: int, height: int, description: str) -> Markup:
    """Draws a figure as inline SVG.

    Args:
        name: Unique on the page; ids inside the SVG begin with it.
        paint: Adds axes and everything on them to an empty figure.
        width: In CSS pixels, at full size; the figure shrinks with the page.
        height: In CSS pixels.
        description: What the figure shows, for those who do not see it.
    """
    with rc_context({**LOOK, "svg.hashsalt": name}):
        figure = Figure(figsize=(width / POINTS_PER_INCH, height / POINTS_PER_INCH), layout="constrained")
        paint(figure)
        buffer = StringIO()
        FigureCanvasSVG(figure).print_svg(
            buffer, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    return _inline(buffer.getvalue(), name, width, height, description)


def stacked(figure: Figure, *, heights: tuple[float, float]) -> tuple[Axes, Axes]:
    """Two plots one above the other on the same x axis, with room for the title of the lower one."""
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=heights, gridspec_kw={"hspace": 0.12})
    above.tick_params(axis="x", length=0)
    return above, below


def percent_axis(axes: Axes, label: str) -> None:
    """Makes the y axis one of shares from 0 to 100 %."""
    axes.set_ylim(-0.02, 1.04)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_title(label)


def name_curve(axes: Axes, x: Sequence[float], y: Sequence[float], name: str, color: str, *, at: float = 0.5) -> None:
    """Writes the name of a curve beside it, a share `at` of the way along, in its color."""
    place = min(int(at * len(x)), len(x) - 1)
    axes.annotate(
        name, (x[place], y[place]), xytext=(7, -5), textcoords="offset points", color=color, va="top", size=11
    )


def _inline(svg: str, name: str, width: int, height: int, description: str) -> Markup:
    body = svg[svg.index(">", svg.index("<svg")) + 1 :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    # A style element would apply to the whole page; the page's own sheet says the same about figures.
    body = re.sub(r"<style[^>]*>.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'(href="|url\()#', rf"\g<1>#{name}-", body)
    body = re.sub(r"font: ([^;\"]*?)([\d.]+)px [^;\"]*", _font, body)
    for color, variable in VARIABLES.items():
        body = body.replace(color, f"var(--{variable})")
    kind = "plot wide" if width > WIDE_PIXELS else "plot"
    opening = (
        f'<svg class="{kind}" role="img" aria-label="{escape(description)}" '
        f'viewBox="0 0 {width} {height}" style="--width: {width}px">'
    )
    return Markup(opening + re.sub(r">\s+<", "><", body).strip())


def _font(match: re.Match[str]) -> str:
    """The size and weight of a piece of text without its family, which it takes from the page."""
    weight = "; font-weight: 600" if "bold" in match.group(1) or "700" in match.group(1) else ""
    return f"font-size: {match.group(2)}px{weight}"
