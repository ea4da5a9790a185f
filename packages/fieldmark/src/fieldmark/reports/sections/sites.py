"""The metrics by site."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fieldmark.questions.targets import Shape
from fieldmark.reports.charts.estimates import Axis
from fieldmark.reports.detections import listen
from fieldmark.reports.markup import render
from fieldmark.reports.section import Context, Section
from fieldmark.scoring import Score


@dataclass(frozen=True)
class SiteRow:
    """One site: how much was recorded and sung there, and what the run scored."""

    site: str
    where: str
    recordings: int
    segments: int
    species: int
    at_once: float
    scores: dict[str, Score]


class Sites(Section):
    """Where a run hears well."""

    name = "sites"
    title = "Sites"
    shapes: ClassVar[tuple[Shape, ...]] = ("pairs",)

    def applies(self, context: Context) -> bool:
        return "site" in context.first.scorecard.groups

    def render(self, context: Context) -> str:
        rows = rows_of(context)
        names = [metric.name for metric in context.task.metrics]
        axes = {name: Axis.around(row.scores[name] for row in rows) for name in names}
        return render("sections/sites.html.j2", context=context, rows=rows, names=names, axes=axes)


def rows_of(context: Context) -> list[SiteRow]:
    """The sites in alphabetical order."""
    truth = listen(context).truth
    items = context.items
    rows = []
    for site, scores in sorted(context.first.scorecard.groups["site"].items()):
        here = (items["site"] == site).fill_null(False)
        places = items.filter(here).select([name for name in ("locality", "country") if name in items.columns])
        heard = truth[here.to_numpy()]
        at_once = heard.sum(axis=1)
        rows.append(
            SiteRow(
                site=site,
                where=", ".join(str(value) for value in places.row(0) if value) if places.width else "",
                recordings=items.filter(here)["recording"].n_unique(),
                segments=len(heard),
                species=int(heard.any(axis=0).sum()),
                at_once=float(at_once[at_once > 0].mean()) if np.any(at_once) else 0.0,
                scores=scores,
            )
        )
    return rows


SECTION = Sites()
