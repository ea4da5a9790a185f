"""Sections about places, on a small region of presences and absences and on a land of single records."""

from __future__ import annotations

import numpy as np
import pytest

import fieldmark
from fieldmark.models.place_models import PlaceModel
from fieldmark.reports.charts.maps import MapPoints
from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.place_answers import PlaceAnswers, is_about_places
from fieldmark.reports.sections import SECTIONS
from fieldmark.reports.sections.covariates import worths
from fieldmark.reports.sections.place_distance import by_distance
from fieldmark.reports.sections.place_maps import CellMap, maps_of
from fieldmark_tests.suites.region_of_three import SPECIES

NAMES = ("place-maps", "place-distance", "covariates")


@pytest.fixture(scope="module")
def region(region_run):
    return load_context([region_run.folder])


@pytest.fixture(scope="module")
def land(land_world, tmp_path_factory):
    run = tmp_path_factory.mktemp("places") / "run"
    fieldmark.fit("geolifeclef-2020", land_world, "random-forest", run, settings={"trees": "5", "listed": "35"})
    return load_context([run])


@pytest.mark.parametrize("name", NAMES)
def test_each_section_is_drawn_for_both_kinds_of_questions(name, region, land):
    for context in (region, land):
        section = SECTIONS[name]
        if section.applies(context):
            assert section.render(context).count("<svg") in (1, 2)  # a map for each country
    assert SECTIONS[name].applies(region)


def test_the_cells_of_a_map_hold_the_means_of_their_places():
    lat, lon = np.array([0.0, 0.01, 10.0]), np.array([0.0, 0.01, 10.0])
    cells = CellMap.of("", MapPoints(lat, lon), np.array([1.0, 3.0, 7.0])).cells
    assert sorted(cells[np.isfinite(cells)].tolist()) == [2.0, 7.0]


def test_maps_of_a_survey_show_chances_and_their_squared_errors(region):
    answers = PlaceAnswers.of(region)
    assert is_about_places(region) and len(answers) == 120
    chances, holds = answers.chances, answers.holds
    species = answers.commonest
    assert species == holds.sum(axis=0).argmax()
    np.testing.assert_allclose(answers.of_species(species), chances[:, species])
    np.testing.assert_allclose(answers.error, ((chances - holds) ** 2).mean(axis=1))
    assert [one.title for one in maps_of(answers, species, SPECIES[species])][1] == SPECIES[species]


def test_richness_of_records_is_how_many_species_the_next_one_could_be(land):
    answers = PlaceAnswers.of(land)
    assert (answers.richness >= 1).all() and (answers.richness <= 35).all()
    first = land.predictions.top(30)[answers.rows]
    assert answers.error.mean() == pytest.approx(1 - (first == land.truth[answers.rows, None]).any(axis=1).mean())
    shares = answers.of_species(answers.commonest)
    assert ((shares >= 0) & (shares <= 1)).all()


def test_steps_of_distance_hold_all_places_in_order(region):
    steps = by_distance(PlaceAnswers.of(region), region.unit)
    assert sum(step.places for step in steps) == 120
    ends = [end for step in steps for end in (step.from_km, step.to_km)]
    assert ends == sorted(ends) and all(0 <= step.value <= 1 for step in steps)


def test_a_covariate_that_matters_is_worth_more_than_nothing(region, region_run):
    plain, found, places = worths(PlaceModel.open(region_run.folder), region)
    assert places == 120 and plain == pytest.approx(region.first.scorecard.metrics["species_roc_auc"].value, abs=1e-6)
    assert {one.name for one in found} == {"warmth", "wetness"} and all(one.loss > 0.02 for one in found)
