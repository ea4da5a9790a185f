"""A fitted model in memory and on disk."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.features.settings import FeatureSettings
from fieldmark.methods.centroid import Centroid
from fieldmark.methods.frequent import Frequent
from fieldmark.models.model import ARRAYS_FILE, CARD_FILE, MODEL_FILE, Model, feature_source, load_model
from fieldmark.steps.temperature import Temperature
from fieldmark.tables.labels import Labels
from fieldmark.tables.media import PHOTO
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import View
from fieldmark_tests.lessons import part_of

LABELS = Labels(("a", "b"))
TAXA = pl.DataFrame({"label": LABELS.names, "poisonous": [True, False]})
TRAINED = {"benchmark": "folder", "version": "1", "parts": ["train"], "seed": 0, "data_digest": "", "world": None}


@pytest.fixture
def model() -> Model:
    train = part_of(["1", "2", "3"], np.array([0, 0, 1]))
    fitted = Frequent().fit(View(LABELS, Taxonomy.of(LABELS, TAXA), train, train, None, None))
    return Model("frequent", fitted, (Temperature(2.0),), LABELS, TAXA, {}, {**TRAINED, "external_data": []})


def test_a_model_answers_with_its_steps_applied(model):
    part = part_of(["x", "y"])
    plain = model.fitted.predict(part, LABELS)
    expected = Temperature(2.0).apply(plain, part.items)
    assert np.array_equal(model.predict(part).scores, expected.scores)
    assert not np.array_equal(expected.scores, plain.scores)


def test_what_is_saved_is_loaded_and_answers_the_same(model, tmp_path):
    model.save(tmp_path / "model")
    assert {path.name for path in (tmp_path / "model").iterdir()} == {MODEL_FILE, ARRAYS_FILE, CARD_FILE}
    again = load_model(tmp_path)  # the folder of a run, with the model in it
    assert (again.name, again.labels, again.steps, again.trained) == ("frequent", LABELS, model.steps, model.trained)
    assert again.taxa.equals(model.taxa) and again.medium == PHOTO and not again.simulated
    part = part_of(["x", "y"])
    assert np.array_equal(again.predict(part).scores, model.predict(part).scores)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"fieldmark_model": 2}, "found model format 2, expected format 1"),
        ({"labels": None}, "expected a model of Fieldmark"),
    ],
)
def test_a_model_of_another_make_is_refused(model, tmp_path, change, sentence):
    model.save(tmp_path)
    data = json.loads((tmp_path / MODEL_FILE).read_text())
    (tmp_path / MODEL_FILE).write_text(json.dumps(data | change))
    with pytest.raises(InputError, match=sentence):
        load_model(tmp_path)


def test_damaged_weights_and_missing_models_are_named(model, tmp_path):
    with pytest.raises(InputError, match="found no model, expected the folder of a model or a run"):
        fieldmark.load_model(tmp_path / "nowhere")
    model.save(tmp_path)
    (tmp_path / ARRAYS_FILE).write_bytes(b"\x00" * 8)
    with pytest.raises(InputError, match="expected a model of Fieldmark"):
        load_model(tmp_path)


def test_only_a_model_that_trained_a_network_is_a_backbone(model, tmp_path):
    model.save(tmp_path)
    with pytest.raises(InputError, match="found a model of the method frequent, expected one that has trained"):
        feature_source(FeatureSettings(str(tmp_path)))
    with pytest.raises(MisuseError, match="comes with its own weights"):
        feature_source(FeatureSettings(str(tmp_path), weights="random"))
    assert feature_source(FeatureSettings("resnet10t")).fine_tuned is None and Centroid().needs
