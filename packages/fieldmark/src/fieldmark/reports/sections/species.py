"""Precision and recall of each species in soundscapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from fieldmark.metrics.retrieval import cmap
from fieldmark.questions.targets import Shape
from fieldmark.reports.charts.estimates import Axis, Share, share
from fieldmark.reports.detections import Heard, listen
from fieldmark.reports.markup import as_download, render
from fieldmark.reports.section import Context, Section

SHOWN = 20


@dataclass(frozen=True)
class SpeciesRow:
    """One species: how often it is to be heard, and how well it was."""

    title: str
    label: str
    trained: int
    segments: int
    recordings: int
    precision: Share | None
    recall: Share
    average_precision: float


class Species(Section):
    """Which birds a run hears."""

    name = "species"
    title = "Species, precision and recall"
    shapes: ClassVar[tuple[Shape, ...]] = ("pairs",)

    def applies(self, context: Context) -> bool:
        return True

    def render(self, context: Context) -> str:
        heard = listen(context)
        rows = rows_of(context, heard)
        silent = (heard.detected & ~heard.truth.any(axis=0)).any(axis=0)
        return render(
            "sections/species.html.j2",
            context=context,
            rows=rows[:SHOWN],
            rest=rows[SHOWN:],
            heard=heard,
            axis=Axis(0.0, 1.0),
            species_csv=as_download(species_table(rows)),
            imagined=[context.title(context.labels.names[code]) for code in np.flatnonzero(silent)],
        )


def species_table(rows: list[SpeciesRow]) -> pl.DataFrame:
    """The rows as a table to take away."""
    kinds = {"label": pl.String, "name": pl.String, "training": pl.Int64, "segments": pl.Int64, "recordings": pl.Int64}
    shares = dict.fromkeys(("precision", "recall", "average_precision"), pl.Float64)
    return pl.DataFrame(
        [
            (
                *(row.label, row.title, row.trained, row.segments, row.recordings),
                *(None if row.precision is None else row.precision.value, row.recall.value, row.average_precision),
            )
            for row in rows
        ],
        schema={**kinds, **shares},
        orient="row",
    )


def rows_of(context: Context, heard: Heard) -> list[SpeciesRow]:
    """The species that are to be heard, the most frequent first."""
    rows = []
    for code in np.argsort(-heard.truth.sum(axis=0), kind="stable"):
        true, detected = heard.truth[:, code], heard.detected[:, code]
        if not true.any():
            break
        listed = np.flatnonzero(heard.score[:, code] > 0).astype(np.int32)
        relevant = np.flatnonzero(true).astype(np.int32)
        one = np.zeros(len(listed), dtype=np.int32)
        rows.append(
            SpeciesRow(
                title=context.title(context.labels.names[code]),
                label=context.labels.names[code],
                trained=int(context.train_counts[code]),
                segments=int(true.sum()),
                recordings=len(np.unique(context.unit[true])),
                precision=share(true[detected], context.unit[detected]) if detected.any() else None,
                recall=share(detected[true], context.unit[true]),
                average_precision=cmap(
                    listed, one, heard.score[listed, code], relevant, np.zeros_like(relevant), ties="expected"
                ),
            )
        )
    return rows


SECTION = Species()
