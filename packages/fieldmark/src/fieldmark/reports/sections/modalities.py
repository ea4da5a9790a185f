"""What each modality is worth, where the run is one of an ablation."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from fieldmark.errors import InputError
from fieldmark.reports.charts.plots import BLUE, GREEN, MUTED, ORANGE, draw
from fieldmark.reports.markup import render
from fieldmark.reports.section import Context, Section
from fieldmark.runs.provenance import ABLATION_FILE

# Height of the picture in CSS pixels: a part for axes and title, and one for each run.
HEAD_PX, ROW_PX = 90, 30


@dataclass(frozen=True)
class WorthBar:
    """A number with its interval, in the unit that the page shows."""

    value: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, data: dict[str, Any] | None, scale: float) -> WorthBar | None:
        """From a row of the file; None where there is nothing to show."""
        if data is None:
            return None
        return cls(*(None if data[end] is None else scale * data[end] for end in ("value", "low", "high")))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Worth:
    """One run of the ablation: its score, and what it lacks beside all modalities and gains beside the first alone."""

    title: str
    score: WorthBar
    less_all: WorthBar | None
    less_first: WorthBar | None


class Modalities(Section):
    """Every modality alone, each left out, and all."""

    name = "modalities"
    title = "Modalities, alone and left out"

    def applies(self, context: Context) -> bool:
        return _file(context) is not None

    def render(self, context: Context) -> str:
        path = _file(context)
        assert path is not None  # the section applies
        told = _read(path)
        share = any(metric.name == told["metric"] and metric.is_share for metric in context.task.metrics)
        rows = worths(told, 100.0 if share else 1.0)
        figure = draw(
            "modalities-worth",
            partial(_paint, rows=rows, metric=told["metric"], unit=" %" if share else ""),
            width=1036,
            height=HEAD_PX + ROW_PX * len(rows),
            description=f"{told['metric']} of each run of the ablation with its interval.",
        )
        return render(
            "sections/modalities.html.j2",
            context=context,
            figure=figure,
            rows=rows,
            told=told,
            digits=1 if share else 3,
            first=told["modalities"][0],
        )


def worths(told: dict[str, Any], scale: float) -> list[Worth]:
    """The runs of an ablation as a reader would call them."""
    made = []
    for row in told["rows"]:
        score = WorthBar.of(row, scale)
        assert score is not None
        apart = (WorthBar.of(row[key], scale) for key in ("less_all", "less_first"))
        made.append(Worth(_title(row["run"]), score, *apart))
    return made


def _title(run: str) -> str:
    kind, _, name = run.partition("-")
    return {"only": f"{name} alone", "without": f"without {name}"}.get(kind, "all modalities")


def _file(context: Context) -> Path | None:
    """The table of the ablation that the first run belongs to."""
    if context.folder is None:
        return None
    path = context.folder.parent / ABLATION_FILE
    return path if path.exists() else None


def _read(path: Path) -> dict[str, Any]:
    try:
        told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        _ = (
            [(row["run"], row["less_all"], row["less_first"]) for row in told["rows"]],
            told["metric"],
            told["modalities"],
        )
        return told
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        hint = "Make it again with `fieldmark ablate`."
        raise InputError(path, found=f"something else ({error})", expected="an ablation", hint=hint) from error


def _paint(figure: Figure, *, rows: list[Worth], metric: str, unit: str) -> None:
    axes = figure.subplots()
    for place, row in enumerate(rows):
        color = GREEN if place == 0 else BLUE if row.title.endswith(" alone") else ORANGE
        if row.score.low is not None and row.score.high is not None:
            axes.hlines(place, row.score.low, row.score.high, color=color, linewidth=2)
        axes.plot(row.score.value, place, "o", color=color)
    axes.axvline(rows[0].score.value, color=MUTED, linewidth=1, linestyle=":")
    axes.set_yticks(range(len(rows)), [row.title for row in rows])
    axes.invert_yaxis()
    axes.grid(True, axis="x")
    axes.grid(False, axis="y")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}{unit}"))
    axes.set_title(metric)


SECTION = Modalities()
