"""Answers about places on maps: how many species, one of them, and where the answers are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from markupsafe import Markup
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fieldmark.reports.charts.maps import MapExtent, MapPoints, frame_map
from fieldmark.reports.charts.plots import HEAT, draw
from fieldmark.reports.markup import render
from fieldmark.reports.place_answers import PlaceAnswers, is_about_places
from fieldmark.reports.section import Context, Section
from fieldmark.reports.sections.held_out import COUNTRIES

CELLS_ACROSS = 24


@dataclass(frozen=True)
class CellMap:
    """The mean of a number in each cell of a map.

    Args:
        title: What is shown.
        cells: Rows from the south, columns from the west; NaN where there is no place.
        extent: The stretch of land.
    """

    title: str
    cells: NDArray[np.float64]
    extent: MapExtent

    @classmethod
    def of(cls, title: str, places: MapPoints, values: NDArray[np.float64]) -> CellMap:
        """The means of values at places."""
        extent = MapExtent.around({"": places})
        shape = max(round(CELLS_ACROSS * extent.shape), 1), CELLS_ACROSS
        row = ((places.lat - extent.south) / (extent.north - extent.south) * shape[0]).astype(np.int64)
        column = ((places.lon - extent.west) / (extent.east - extent.west) * shape[1]).astype(np.int64)
        cell = np.clip(row, 0, shape[0] - 1) * shape[1] + np.clip(column, 0, shape[1] - 1)
        number = np.bincount(cell, minlength=shape[0] * shape[1])
        total = np.bincount(cell, weights=values, minlength=len(number))
        means = np.divide(total, number, out=np.full(len(number), np.nan), where=number > 0)
        return cls(title, means.reshape(shape), extent)

    @property
    def steps(self) -> NDArray[np.float64]:
        """Edges of as many steps as there are colors, in even steps from the least to the most."""
        there = self.cells[np.isfinite(self.cells)]
        low, high = (float(there.min()), float(there.max())) if len(there) else (0.0, 1.0)
        return np.linspace(low, high if high > low else low + 1e-6, len(HEAT) + 1)


def paint_cells(figure: Figure, *, maps: Sequence[CellMap], where: str = "") -> None:
    """One panel per map, side by side, each with its scale below; the land is named before the titles."""
    panels = figure.subplots(1, len(maps), squeeze=False)[0]
    for axes, one in zip(panels, maps, strict=True):
        edges = [
            np.linspace(*ends, number + 1)
            for ends, number in zip(
                ((one.extent.west, one.extent.east), (one.extent.south, one.extent.north)),
                one.cells.shape[::-1],
                strict=True,
            )
        ]
        norm = BoundaryNorm(one.steps, len(HEAT))
        mesh = axes.pcolormesh(*edges, np.ma.masked_invalid(one.cells), cmap=ListedColormap(HEAT), norm=norm, zorder=2)
        frame_map(axes, one.extent)
        axes.set_title(f"{where}: {one.title}" if where else one.title, fontsize=12.5)
        bar = figure.colorbar(mesh, ax=axes, orientation="horizontal", pad=0.1, fraction=0.05, aspect=30)
        bar.set_ticks(one.steps.tolist(), labels=[f"{edge:.3g}" for edge in one.steps])
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=10.5, length=0)


WIDTH = 1036
LEAST_PLACES, MOST_COUNTRIES = 20, 3


class PlaceMaps(Section):
    """Maps of richness, of the species met most often, and of error."""

    name = "place-maps"
    title = "Answers on the map"
    shapes = ("codes", "pairs")

    def applies(self, context: Context) -> bool:
        return is_about_places(context) and len(PlaceAnswers.of(context)) >= LEAST_PLACES

    def render(self, context: Context) -> str:
        answers = PlaceAnswers.of(context)
        species = answers.commonest
        name = context.title(context.labels.names[species])
        return render(
            "sections/place_maps.html.j2",
            context=context,
            species=name,
            error=answers.error_words,
            richness=answers.richness_words,
            maps=[
                _drawn(f"place-maps-{number}", where, maps_of(some, species, name))
                for number, (where, some) in enumerate(by_country(answers).items())
            ],
        )


def by_country(answers: PlaceAnswers) -> dict[str, PlaceAnswers]:
    """The answers of each country by its name, where a release tells a few countries apart; else all of them."""
    items = answers.context.items
    if (
        "country" not in items.columns
        or items["country"].is_null().any()
        or items["country"].n_unique() > MOST_COUNTRIES
    ):
        return {"": answers}
    country = items["country"].to_numpy()[answers.rows]
    return {COUNTRIES.get(code, code): answers.where(country == code) for code in sorted(set(country), reverse=True)}


def maps_of(answers: PlaceAnswers, species: int, name: str) -> list[CellMap]:
    """The three maps of a run."""
    places = MapPoints(answers.lat, answers.lon)
    panels: dict[str, NDArray[np.float64]] = {
        "Species to be expected": answers.richness,
        f"{name}": answers.of_species(species),
        "Error": answers.error,
    }
    return [CellMap.of(title, places, values) for title, values in panels.items()]


def _drawn(name: str, where: str, maps: list[CellMap]) -> Markup:
    panel = WIDTH / len(maps) - 50
    return draw(
        name,
        partial(paint_cells, maps=maps, where=where),
        width=WIDTH,
        height=round(panel * maps[0].extent.shape) + 110,
        description="Three maps of cells: species to be expected, one species, and the error; darker is more.",
    )


SECTION = PlaceMaps()
