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

WIDTH, HEIGHT = 1036, 350
LEAST_PLACES = 20


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
        return render(
            "sections/place_maps.html.j2",
            context=context,
            species=context.title(context.labels.names[species]),
            error=answers.error_words,
            richness=answers.richness_words,
            map=_drawn(maps_of(answers, species, context.title(context.labels.names[species]))),
        )


def maps_of(answers: PlaceAnswers, species: int, name: str) -> list[CellMap]:
    """The three maps of a run."""
    places = MapPoints(answers.lat, answers.lon)
    panels: dict[str, NDArray[np.float64]] = {
        "Species to be expected": answers.richness,
        f"{name}": answers.of_species(species),
        "Error": answers.error,
    }
    return [CellMap.of(title, places, values) for title, values in panels.items()]


def _drawn(maps: list[CellMap]) -> Markup:
    return draw(
        "place-maps",
        partial(paint_cells, maps=maps),
        width=WIDTH,
        height=HEIGHT,
        description="Three maps of cells: species to be expected, one species, and the error; darker is more.",
    )


SECTION = PlaceMaps()
