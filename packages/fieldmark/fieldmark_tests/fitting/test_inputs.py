"""Methods read any input that the task allows as numbers, fitted to train and saved with the model."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import fieldmark
from fieldmark.errors import MisuseError
from fieldmark.fitting.configuration import configured_method
from fieldmark_tests.releases.test_gridded import write_raster

TABLES = "habitat,date,place,elevation,landcover,region,caption,climate"


@pytest.fixture(scope="module")
def run(fungi_world, tmp_path_factory):
    out = tmp_path_factory.mktemp("inputs") / "run"
    settings = {"inputs": TABLES, "caption.words": "50"}
    return fieldmark.fit("fungitastic/closed", fungi_world, "linear", out, settings=settings)


def test_tables_texts_and_climate_alone_tell_species_better_than_their_frequencies(run, fungi_world, tmp_path):
    frequent = fieldmark.fit("fungitastic/closed", fungi_world, "frequent", tmp_path / "run")
    assert run.scorecard.metrics["top_1"].value > frequent.scorecard.metrics["top_1"].value
    assert run.run.features["encoded"]["caption"] == {"encoder": "words", "categories": 64, "waves": 4, "words": 50}
    assert "backbone" not in run.run.features and run.run.external_data == []


def test_a_model_from_its_folder_encodes_as_the_one_that_was_fitted(run, fungi_world):
    again = fieldmark.load_model(run.folder)
    assert set(again.encoders) == set(TABLES.split(",")) and "inputs.habitat.plan" not in again.fitted.arrays
    one, other = (fieldmark.predict(model, fungi_world).scores for model in (again, run.model))
    assert (one == other).all()


def test_a_photo_of_which_nothing_is_known_is_answered_all_the_same(run, make_release):
    photos = sorted(make_release().rglob("*.jpg"))[:2]
    scores = run.model.predict_photos(photos).scores
    assert np.isfinite(scores).all() and (scores[0] == scores[1]).all()


def test_photo_satellite_and_table_stand_side_by_side(fungi_world, tmp_path):
    small = {"backbone": "resnet10t", "weights": "random", "size": "32", "satellite.size": "40", "l2": "1.0"}
    settings = {"inputs": "photo, satellite, habitat", **small}
    result = fieldmark.fit("fungitastic/closed", fungi_world, "linear", tmp_path / "run", settings=settings)
    assert result.run.features["inputs"]["satellite"]["size"] == 40
    widths = result.model.fitted.arrays["joined.widths"]
    assert widths[:2].tolist() == [512, 2 * 512]  # both bands
    again = fieldmark.predict(fieldmark.load_model(tmp_path / "run"), fungi_world).scores
    assert (again == fieldmark.predict(result.model, fungi_world).scores).all()


def test_an_input_that_nothing_has_is_refused_or_missing_and_never_an_error_of_ours(make_release, tmp_path):
    root = make_release()
    with pytest.raises(MisuseError, match="needs the input 'climate'"):
        fieldmark.fit("folder", root, "linear", tmp_path / "run", settings={"inputs": "climate"})
    with pytest.raises(MisuseError, match="expected each input once"):
        configured_method("linear", {"inputs": "date,date"})
    with pytest.raises(MisuseError, match="no setting called 'wordz'"):
        configured_method("linear", {"inputs": "date,caption", "caption.wordz": "3"})
    result = fieldmark.fit("folder", root, "linear", tmp_path / "run", settings={"inputs": "habitat,date"})
    assert any("Without habitat: 12 of 12 items of train" in remark for remark in result.run.remarks)


def test_masks_are_no_features(fungi_world, tmp_path):
    with pytest.raises(MisuseError, match="'masks' is neither a picture nor a table"):
        fieldmark.fit("fungitastic/closed", fungi_world, "linear", tmp_path / "run", settings={"inputs": "masks"})


def test_rasters_beside_the_photos_say_what_it_is_like_at_their_places(make_release, tmp_path):
    root = make_release(flat=True, per_class=8)
    photos = sorted(path.relative_to(root) for path in root.rglob("*.jpg"))
    labels = sorted({path.parts[0] for path in photos})
    write_raster(root / "rasters/moisture.tif", np.repeat(np.arange(9, dtype=np.float32), 9).reshape(9, 9))
    rng = np.random.default_rng(0)
    with (root / "observations.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["file", "latitude", "longitude"])
        for number, path in enumerate(photos):  # each species in rows of its own; one photo lies beyond the map
            lat = 58 - 0.5 * (3 * labels.index(path.parts[0]) + rng.uniform(0, 3))
            rows.writerow([path.as_posix(), 5.0 if number == 0 else lat, rng.uniform(8, 12.5)])
    result = fieldmark.fit("folder", root, "linear", tmp_path / "run", settings={"inputs": "environment"})
    assert result.scorecard.metrics["top_1"].value > 0.8
    assert any("Without environment: " in remark for remark in result.run.remarks)
