"""A score against the number of photos per class."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from fieldmark.reports.charts.plots import BLUE, GREEN, INK, LOOK, MUTED, ORANGE, POINTS_PER_INCH
from fieldmark.storage.files import appearing_file

# Okabe and Ito's colors that the pages do not use come after those they do.
COLORS = (BLUE, ORANGE, GREEN, "#cc79a7", "#e69f00", "#56b4e9", INK, MUTED)
MARKERS = "osD^vPX*"
WIDTH, HEIGHT = 760, 440
DOTS_PER_INCH = 150
# How far, in doublings, the intervals of the first and the last method stand from the number of photos they are about.
SPREAD = 0.13


def plot_shots(episodes: Mapping[str, Any], path: Path, *, metric: str | None = None, title: str = "") -> None:
    """Draws one line per method with its interval over draws; the ending of the file decides the format.

    Lines are named at their right end. Methods that see the whole test set are dashed.

    Args:
        episodes: What `fieldmark.suites.episodes` writes as JSON.
        path: The picture to write.
        metric: Which score; the first one if not given.
        title: What stands above it; the benchmark if not given.
    """
    chosen = metric or next(iter(next(iter(episodes["rows"][0]["shots"].values()))))
    with rc_context({**LOOK, "figure.facecolor": "white", "svg.hashsalt": "shots"}):
        figure = Figure(figsize=(WIDTH / POINTS_PER_INCH, HEIGHT / POINTS_PER_INCH), layout="constrained")
        axes = figure.subplots()
        _lines(axes, episodes, chosen)
        mark = " (simulated data)" if episodes.get("simulated") else ""
        axes.set_title(f"{title or episodes['benchmark']}: {chosen}{mark}")
        axes.set_xlabel(
            f"training photos per class; mean of {episodes['draws']} draws, bars: 95 % interval over draws"
            + ("; dashed: sees the test set" if any(row["sees"] != "item" for row in episodes["rows"]) else "")
        )
        with appearing_file(path) as partial:
            figure.savefig(partial, format=path.suffix.removeprefix(".") or "png", dpi=DOTS_PER_INCH)


def _lines(axes: Axes, episodes: Mapping[str, Any], metric: str) -> None:
    shots = [int(number) for number in episodes["shots"]]
    ends: list[tuple[float, str, str, float]] = []
    # Intervals of methods stand side by side, so that none hides another.
    beside = 2 ** np.linspace(-SPREAD, SPREAD, len(episodes["rows"])) if len(episodes["rows"]) > 1 else np.ones(1)
    for number, row in enumerate(episodes["rows"]):
        places = [float(n * beside[number]) for n in shots]
        spreads = [row["shots"][str(n)][metric] for n in shots]
        means = [spread["mean"] for spread in spreads]
        low, high = (
            [abs(mean - (spread["draws"] or (mean, mean))[end]) for mean, spread in zip(means, spreads, strict=True)]
            for end in (0, 1)
        )
        color = COLORS[number % len(COLORS)]
        style = "-" if row["sees"] == "item" else "--"
        axes.errorbar(
            places, means, (low, high), color=color, linestyle=style, marker=MARKERS[number % len(MARKERS)],
            markersize=4.5, elinewidth=1.3, capsize=2, capthick=1,
        )  # fmt: skip
        ends.append((means[-1], row["name"], color, places[-1]))
    axes.set_xscale("log", base=2)
    axes.set_xticks(shots, [str(n) for n in shots])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_xlim(shots[0] / 1.2, shots[-1] * 1.2)
    _name_ends(axes, ends)


def _name_ends(axes: Axes, ends: list[tuple[float, str, str, float]]) -> None:
    """Writes the name of each line at its end, pushed apart where they would overlap."""
    bottom, top = axes.get_ylim()
    apart = (top - bottom) * 0.052
    placed: list[float] = []
    for value, *_ in sorted(ends):
        placed.append(max(value, placed[-1] + apart) if placed else value)
    excess = max(0.0, placed[-1] - top)
    for (value, name, color, x), place in zip(sorted(ends), placed, strict=True):
        axes.annotate(
            name, (x, value), xytext=(1.03, (place - excess - bottom) / (top - bottom)), textcoords="axes fraction",
            color=color, va="center", size=11, annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 4},
        )  # fmt: skip
