"""BirdNET's location model behind any classifier."""

from __future__ import annotations

import datetime
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.features.birdnet import BirdNet
from fieldmark.releases import open_dataset
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.predictions import read_predictions
from fieldmark.steps import make_step, step_from_data, step_to_data
from fieldmark.steps.base import Step, fit_step
from fieldmark.steps.priors.places import PlacePrior, joined_with_birdnet
from fieldmark.tables.labels import Labels
from fieldmark.tables.name_concepts import matches_in_words
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark_tests.lessons import lesson

LABELS = Labels(("acafly", "Corvus corax", "yeti"))
TAXA = pl.DataFrame({"label": LABELS.names, "species": ["Empidonax virescens", None, "Homo nivalis"]})
TASK = BENCHMARKS["birdclef-2020"].task
OHIO, BERLIN = (39.5, -82.5), (52.5, 13.4)


def fitted(
    step: Step, predictions: LabelScores, truth: np.ndarray, items: pl.DataFrame, taxa: pl.DataFrame = TAXA
) -> Step:
    return fit_step(step, predictions, lesson(predictions, truth, items, taxa=taxa))


def heard(n: int = 40) -> tuple[LabelScores, np.ndarray, pl.DataFrame]:
    """Flycatchers in Ohio, ravens in Berlin, and scores that tell little."""
    rng = np.random.default_rng(0)
    where = [OHIO if row % 2 else BERLIN for row in range(n)]
    items = pl.DataFrame(
        {
            "item_id": [str(row) for row in range(n)],
            "lat": [lat for lat, _ in where],
            "lon": [lon for _, lon in where],
            "date": [datetime.date(2020, 6, 1)] * n,
        }
    )
    truth = np.array([[place == OHIO, place == BERLIN, False] for place in where])
    scores = rng.uniform(0.2, 0.8, (n, 3)).astype(np.float32)
    return LabelScores(tuple(items["item_id"]), LABELS, scores, "score"), truth, items


def test_birds_lose_where_they_do_not_live_and_what_birdnet_does_not_know_stays():
    predictions, truth, items = heard()
    step = fitted(make_step("place-prior"), predictions, truth, items)
    assert step.weight > 0 and step.places[2] == -1
    changed = step.apply(predictions, items).scores
    berlin = truth[:, 1]
    assert (changed[berlin, 0] < predictions.scores[berlin, 0] / 2).all()
    assert (changed[berlin, 0] / predictions.scores[berlin, 0]).max() < (
        changed[~berlin, 0] / predictions.scores[~berlin, 0]
    ).min()
    assert changed[:, 2] == pytest.approx(predictions.scores[:, 2], abs=1e-6)
    assert step_from_data(step_to_data(step)) == step


def test_items_without_a_place_stay_as_they_are_whatever_their_order():
    predictions, truth, items = heard()
    step = fitted(PlacePrior(), predictions, truth, items)
    nowhere = items.with_columns(pl.lit(None, pl.Float64).alias("lat"))
    for about in (nowhere, items.drop("lat", "lon")):
        assert step.apply(predictions, about).scores == pytest.approx(predictions.scores, abs=1e-6)
    turned = step.apply(predictions, items.reverse())
    assert turned.scores == pytest.approx(step.apply(predictions, items).scores)


def test_the_weight_is_0_where_val_is_against_it():
    predictions, truth, items = heard()
    scores = (0.1 + 0.8 * truth).astype(np.float32)
    certain = LabelScores(predictions.items, LABELS, scores, "score")
    assert fitted(PlacePrior(), certain, truth, items).weight == 0


def test_what_cannot_be_is_refused_in_one_sentence():
    predictions, truth, items = heard()
    strange = Labels(("a", "b", "c"))
    renamed = LabelScores(predictions.items, strange, predictions.scores, "score")
    with pytest.raises(MisuseError, match="knows none of the 3 labels"):
        fitted(PlacePrior(), renamed, truth, items, pl.DataFrame({"label": strange.names}))
    with pytest.raises(MisuseError, match="needs to know the place"):
        PlacePrior().check(replace(TASK, inputs=("recording",)))
    with pytest.raises(MisuseError, match="floor"):
        PlacePrior(floor=0)


def test_the_location_model_is_a_source_of_the_general_prior_too():
    predictions, truth, items = heard()
    codes = truth.argmax(axis=1).astype(np.int32)
    photos = LabelScores(predictions.items, LABELS, np.log(predictions.scores), "logit")
    about = replace(lesson(photos, codes, items, taxa=TAXA), train=lesson(photos, codes, items).val)
    step = fit_step(make_step("prior:source=birdnet"), photos, about)
    assert step.exponents[0] > 0 and step.log_loss["fitted"] < step.log_loss["0"]
    assert any("location model" in sentence for sentence in step.external_data)
    again = step_from_data(step_to_data(step), step.arrays)
    changed = again.apply(photos, items)
    assert (changed.scores == step.apply(photos, items).scores).all()
    assert changed.probabilities().sum(axis=1) == pytest.approx(1, abs=1e-5)
    nowhere = items.with_columns(pl.lit(None, pl.Float64).alias("lat"))
    assert again.apply(photos, nowhere).probabilities() == pytest.approx(photos.probabilities(), abs=1e-6)


def test_a_centroid_on_soundscapes_can_ask_and_the_run_declares_it(bird_world, tmp_path, monkeypatch):
    birds = open_dataset("birdclef-2020", bird_world).taxa["species"].to_list()
    known = BirdNet().species
    # Simulated birds have no range: they take those of the first birds on BirdNET's list.
    monkeypatch.setattr(BirdNet, "species", tuple((name, "") for name in birds) + known[len(birds) :])
    steps = ["presence", "place-prior"]
    result = fieldmark.fit("birdclef-2020", bird_world, "centroid", tmp_path / "run", steps=steps)
    assert any("location model of BirdNET" in sentence for sentence in result.run.external_data)
    stored = read_predictions(tmp_path / "run" / "predictions" / "test.parquet")
    assert fieldmark.predict(tmp_path / "run", bird_world).scores == pytest.approx(stored.scores, abs=1e-4)


def test_labels_are_joined_with_birdnet_by_any_name_and_say_how():
    species = (("Turdus merula", "Eurasian Blackbird"), ("Corvus corax", "Common Raven"))
    labels = Labels(("Turdus merula", "common_raven", "Turdus merulus", "yeti"))
    places, matches = joined_with_birdnet(Taxonomy.of(labels, TAXA.clear()), species)
    assert places.tolist() == [0, 1, 0, -1]
    assert [one.how for one in matches] == ["exact", "spelling", "spelling", "not found"]
    assert "1 not found (yeti)" in matches_in_words(matches)


def test_a_neighbor_that_other_sources_know_is_not_taken_for_a_sound_of_birdnet():
    everything = BirdNet().species
    without = tuple(one for one in everything if one[0] != "Turdus merula")
    assert joined_with_birdnet(Taxonomy.of(Labels(("Turdus merula",)), TAXA.clear()), without)[0].tolist() == [-1]
