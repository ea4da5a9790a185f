"""Answers about places on maps: how many species, one of them, and where the answers are wrong."""

from __future__ import annotations

from functools import partial

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from fieldmark.reports.charts.maps import MapPoints
from fieldmark.reports.charts.place_maps import CellMap, paint_cells
from fieldmark.reports.charts.plots import draw
from fieldmark.reports.markup import render
from fieldmark.reports.place_answers import PlaceAnswers, is_about_places
from fieldmark.reports.section import Context, Section
from fieldmark.reports.sections.held_out import COUNTRIES

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
