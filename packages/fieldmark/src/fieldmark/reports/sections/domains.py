"""Species that training shows in the field, and those that it shows on sheets alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from fieldmark.metrics.classification import mean_without_each_unit
from fieldmark.reports.charts import heat
from fieldmark.reports.charts.estimates import Share, share
from fieldmark.reports.charts.maps import MapPoints, paint_species, species_per_cell
from fieldmark.reports.charts.plots import draw
from fieldmark.reports.markup import render
from fieldmark.reports.section import Context, ScoredRun, Section
from fieldmark.runs.predictions import read_predictions
from fieldmark.splits.official import field_domain
from fieldmark.stats.intervals import interval, pseudo_values
from fieldmark.tables.labels import UNKNOWN

# Below this share of pictures with a place, a map would speak of who noted it.
ENOUGH_PLACED = 0.5
MAP_PIXELS = 620


@dataclass(frozen=True)
class DomainGroup:
    """What one run does on species of one group.

    Args:
        run: The run.
        title: Which species these are.
        species: How many of them are asked about.
        reciprocal: The mean reciprocal rank of their items, with its interval by unit.
        first: The share of their items whose first answer is right.
    """

    run: str
    title: str
    species: int
    reciprocal: Share
    first: Share


class DomainGap(Section):
    """How much is lost where a species has no picture of the domain that is asked about."""

    name = "domains"
    title = "With and without field photos"

    def applies(self, context: Context) -> bool:
        asked = asked_of(context)
        return asked is not None and 0 < int(photographed(context, asked).sum()) < len(context.labels)

    def render(self, context: Context) -> str:
        asked = asked_of(context) or ""
        taught = photographed(context, asked)
        return render(
            "sections/domains.html.j2",
            context=context,
            groups=gap(context, taught),
            asked=asked,
            others=" and ".join(sorted(_domains(context) - {asked})),
            photographed=int(taught.sum()),
            pressed=int((~taught).sum()),
            density=density_map(context),
        )


def _domains(context: Context) -> set[str]:
    items = context.training_items
    return set(items["domain"].drop_nulls()) if "domain" in items.columns else set()


def asked_of(context: Context) -> str | None:
    """The domain that is asked about, where training has others beside it."""
    names = _domains(context)
    if len(names) < 2:
        return None
    told = set(context.items["domain"].drop_nulls())
    return next(iter(told)) if len(told) == 1 else field_domain(sorted(names))


def photographed(context: Context, asked: str) -> NDArray[np.bool_]:
    """Which labels training shows in the domain that is asked about."""
    items = context.training_items
    codes = context.labels.encode(items.filter(items["domain"] == asked)["label"])
    return np.bincount(codes[codes != UNKNOWN], minlength=len(context.labels)) > 0


def gap(context: Context, taught: NDArray[np.bool_]) -> list[DomainGroup]:
    """Every run of the page on both groups of species."""
    groups = []
    for scored in context.runs:
        ranks = ranks_of(context, scored)
        if ranks is None:
            continue
        for title, flag in (("with field photos", True), ("sheets alone", False)):
            inside = (context.truth != UNKNOWN) & (taught[context.truth] == flag)
            if inside.any():
                unit = np.unique(context.unit[inside], return_inverse=True)[1].astype(np.int32)
                reciprocal = _mean(1 / ranks[inside], unit)
                first = share(ranks[inside] == 1, unit)
                species = len(np.unique(context.truth[inside]))
                groups.append(DomainGroup(scored.title, title, species, reciprocal, first))
    return groups


def ranks_of(context: Context, scored: ScoredRun) -> NDArray[np.float64] | None:
    """The rank of the true label of each item in the answers of one run; infinite where it is not listed."""
    predictions: Any = context.predictions
    if scored is not context.first:
        path = None if scored.folder is None else scored.folder / "predictions" / f"{context.part}.parquet"
        if path is None or not path.exists():
            return None
        predictions = read_predictions(path).select(tuple(context.items["item_id"]))
    top = np.asarray(predictions.top(len(context.labels)))
    hit = top == context.truth[:, None]
    return np.where(hit.any(axis=1), hit.argmax(axis=1) + 1.0, np.inf)


def density_map(context: Context) -> tuple[Markup, list[str]] | None:
    """How many species training has from each place, as the overview of the challenge draws it, and its steps."""
    items = context.training_items
    placed = items.filter(items["lat"].is_not_null() & items["lon"].is_not_null() & items["label"].is_not_null())
    if len(placed) < ENOUGH_PLACED * len(items):
        return None
    points = MapPoints(placed["lat"].to_numpy(), placed["lon"].to_numpy())
    cells, extent = species_per_cell(points, context.labels.encode(placed["label"]))
    starts = heat.count_starts(int(cells.max()))
    paint = partial(paint_species, cells=cells, extent=extent, starts=starts)
    about = f"Grid map of the number of species of {len(placed):,} training pictures with a place."
    height = round(40 + MAP_PIXELS * extent.shape)
    return draw("domains-map", paint, width=MAP_PIXELS, height=height, description=about), heat.titles(starts)


def _mean(values: NDArray[np.float64], unit: NDArray[np.int32]) -> Share:
    value = float(values.mean())
    units = int(unit.max()) + 1
    if units < 2:
        return Share(value, None, None, len(values), units, "one unit only")
    around = interval(value, pseudo_values(value, mean_without_each_unit(values, unit)))
    return Share(value, around.low, around.high, len(values), units, around.reason)


SECTION = DomainGap()
