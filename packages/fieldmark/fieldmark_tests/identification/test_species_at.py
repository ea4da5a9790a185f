from __future__ import annotations

import datetime
import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import fieldmark
from fieldmark.cli.main import application
from fieldmark.errors import InputError, MisuseError
from fieldmark.models.place_priors import PlaceModelPrior
from fieldmark.questions.targets import LabelTargets
from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part
from fieldmark_tests.suites.region_of_three import SPECIES, chances


def test_the_model_tells_presence_from_absence_at_surveyed_sites(region_run):
    assert region_run.scorecard.metrics["species_roc_auc"].value > 0.8
    assert not any("chose several" in remark for remark in region_run.run.remarks)


@pytest.mark.parametrize(("lat", "lon"), [(47.6, 8.9), (46.3, 7.2), (47.0, 7.5)])
def test_a_checklist_puts_first_what_lives_there(region_run, lat, lon):
    answer = fieldmark.species_at(lat, lon, region_run.folder)
    truth = chances(np.array([lat]), np.array([lon]))[0]
    assert answer.species[0].label == SPECIES[int(truth.argmax())] or truth.max() - truth.min() < 0.2
    assert not answer.warnings and answer.n_known == 3
    assert [one.ratio for one in answer.species] == sorted((one.ratio for one in answer.species), reverse=True)
    assert answer.species[0].probability is None  # records do not tell how common a plant is


def test_places_unlike_train_and_far_away_are_warned_of(region_run):
    answer = fieldmark.species_at(10.0, 100.0, region_run.folder, top=1)
    assert any(said.startswith("FAR AWAY: the nearest record") for said in answer.warnings)
    assert any("Nothing is known there of environment" in said for said in answer.remarks)
    assert answer.to_json()["extrapolates"] is True and len(answer.species) == 1


def test_a_covariate_outside_of_its_range_is_named(region_run):
    arrays = region_run.model.fitted.arrays
    reference = arrays["reference.table"].copy()
    arrays["reference.table"] = np.minimum(reference, np.sort(reference[:, 0])[3])  # as if train were all cold
    try:
        from fieldmark.identification.species_at import extrapolation_warnings
        from fieldmark.models.place_models import PlaceModel

        opened = PlaceModel(region_run.model, str(region_run.run.data))
        points, _ = opened.points(pl.DataFrame({"lat": [46.1], "lon": [8.0]}))
        said = extrapolation_warnings(opened, opened.extrapolations(points)[0])
        assert said[0].startswith("EXTRAPOLATION: warmth lies outside")
    finally:
        arrays["reference.table"] = reference


def test_what_cannot_be_asked_is_refused(region_run, tmp_path):
    with pytest.raises(MisuseError, match="No such place: 99, 8"):
        fieldmark.species_at(99, 8, region_run.folder)
    with pytest.raises(MisuseError, match="does not read dates"):
        fieldmark.species_at(47, 8, region_run.folder, date=datetime.date(2020, 5, 1))
    with pytest.raises(InputError, match="no model"):
        fieldmark.species_at(47, 8, tmp_path)
    with pytest.raises(InputError, match="Name its root with --data"):
        fieldmark.species_at(47, 8, region_run.folder, data=tmp_path / "moved")


def test_the_command_takes_places_in_the_south_and_west(region_run):
    command = ["species-at", "-33.5", "-70.2", "--model", str(region_run.folder), "--json"]
    done = CliRunner().invoke(application(), command)
    answer = json.loads(done.stdout)
    assert (answer["lat"], answer["lon"]) == (-33.5, -70.2) and answer["extrapolates"]


def test_a_fitted_model_is_a_prior_over_places(region_run):
    labels = Labels(("birch", "fir", "lynx"))
    taxa = pl.DataFrame({"label": labels.names, "species": ["Betula pendula", "Abies alba", "Lynx lynx"]})
    items = pl.DataFrame({"item_id": list("abc"), "lat": [46.2, 47.8, None], "lon": [8.0, 8.0, None]})
    train = Part(items, LabelTargets(np.array([0, 0, 1], dtype=np.int32)))
    source = PlaceModelPrior(file=str(region_run.folder)).fit(train, Taxonomy.of(labels, taxa), several=False)
    logs = source.log_ratio(items)
    assert logs[0, 0] > 0.5 > 0 > logs[0, 1]  # the warm south has birches
    assert logs[1, 1] > 0 > logs[1, 0]
    assert (logs[:, 2] == 0).all() and (logs[2] == 0).all()  # lynxes, and no place
    assert np.abs(logs).max() <= -np.log(source.floor)
    assert np.exp(source.log_prior).sum() == pytest.approx(1, abs=1e-4) and source.log_prior[0] > source.log_prior[1]
    assert "occurrences/presence" in source.external_data[0]


def test_a_model_that_knows_none_of_the_labels_is_refused_as_a_prior(region_run):
    labels = Labels(("bear", "lynx"))
    taxonomy = Taxonomy.of(labels, pl.DataFrame({"label": labels.names}))
    part = Part(pl.DataFrame({"item_id": ["a"], "lat": [47.0], "lon": [8.0]}))
    with pytest.raises(MisuseError, match="knows none of the 2 labels"):
        PlaceModelPrior(file=str(region_run.folder)).fit(part, taxonomy, several=False)
    with pytest.raises(MisuseError, match="needs the folder"):
        PlaceModelPrior()


def test_the_prior_weighs_answers_in_a_run_of_its_own(region_run, tmp_path):
    step = f"prior:source=place-model,file={region_run.folder}"
    made = fieldmark.fit("occurrences/places", region_run.run.data, "frequent", tmp_path / "out", steps=[step])
    fitted = made.model.steps[0]
    assert fitted.exponents[0] > 0.3  # where a plant is, tells which one it is
    assert fitted.log_loss["fitted"] < fitted.log_loss["0"]
    again = fieldmark.predict(tmp_path / "out", region_run.run.data)
    assert again.scores.shape[1] == 3
