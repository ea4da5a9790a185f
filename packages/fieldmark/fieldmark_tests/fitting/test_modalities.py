"""Runs that read several modalities of a release: what they declare, and what they answer when some are missing."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import fieldmark
from fieldmark.errors import MisuseError
from fieldmark.tables.media import PHOTO
from fieldmark.views.parts import Part, loose_media

SMALL = {"photo.backbone": "resnet10t", "photo.weights": "random", "photo.size": "32"}
MODALITIES = {"inputs": "photo,habitat+substrate,date,caption", "caption.words": "50", **SMALL}


@pytest.fixture(scope="module")
def run(fungi_world, tmp_path_factory):
    out = tmp_path_factory.mktemp("modalities") / "run"
    steps = ["temperature", "prior:column=place", "temperature"]
    return fieldmark.fit("fungitastic/closed", fungi_world, "fusion", out, settings=MODALITIES, steps=steps)


def test_a_run_declares_what_method_and_steps_have_read(run):
    declared = ["photo", "habitat", "substrate", "date", "caption", "place"]
    assert run.run.modalities == declared and run.scorecard.provenance["modalities"] == declared
    assert any(remark.startswith("Weights of the modalities, from val: frequencies") for remark in run.run.remarks)


def test_a_fusion_from_its_folder_answers_as_the_one_that_was_fitted(run, fungi_world):
    one, other = (
        fieldmark.predict(model, fungi_world).scores for model in (fieldmark.load_model(run.folder), run.model)
    )
    assert (one == other).all()


def test_photos_without_context_and_contexts_without_photo_are_answered(run, make_release):
    photos = sorted(make_release().rglob("*.jpg"))[:2]
    assert np.isfinite(run.model.predict_photos(photos).scores).all()
    known = {"habitat": ["Mixed woodland", "no habitat that anybody has seen"], "lat": [55.0, None], "lon": [9.0, 9.0]}
    nothing = pl.Series([[], []], dtype=pl.List(pl.String))
    items = pl.DataFrame({"item_id": ["a", "b"], "observation_id": ["a", "b"], "media_ids": nothing, **known})
    part = Part(items, media=loose_media(PHOTO, []))
    assert np.isfinite(run.model.predict(part).scores).all()
    assert np.isfinite(run.model.predict(part, pooling="mean").scores).all()


def test_a_habitat_that_train_does_not_have_changes_nothing_beside_a_missing_one(run, fungi_world):
    opened = fieldmark.benchmark("fungitastic/closed")
    assert "habitat" in opened.task.inputs
    test = pl.DataFrame({"item_id": ["a"], "observation_id": ["a"], "media_ids": [["a"]]})
    new = test.with_columns(habitat=pl.lit("a habitat that nobody has seen"))
    prior = fieldmark.fit(
        "fungitastic/closed", fungi_world, "frequent", run.folder.parent / "prior", steps=["prior:column=habitat"]
    )
    one, other = (prior.model.predict(Part(items)).scores for items in (test, new))
    assert (one == other).all() and prior.run.modalities == ["habitat"]


def test_several_photos_with_one_row_of_metadata_are_one_question_and_the_run_names_the_pooling(fungi_world, tmp_path):
    settings = {**SMALL, "inputs": "photo,habitat"}
    for pooling in ("features", "mean"):
        made = fieldmark.fit(
            "fungiclef-2025", fungi_world, "fusion", tmp_path / pooling, settings=settings, pooling=pooling
        )
        assert made.run.pooling == pooling and made.scorecard.items == made.scorecard.units
        assert json.loads((tmp_path / pooling / "run.json").read_text())["pooling"] == pooling


def test_settings_of_inputs_that_turn_out_not_to_be_there_are_refused(fungi_world, tmp_path):
    with pytest.raises(MisuseError, match="no input called 'radar' to set size of"):
        fieldmark.fit("fungitastic/closed", fungi_world, "fusion", tmp_path / "run", settings={"radar.size": "8"})
    assert list(tmp_path.iterdir()) == []
