from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fieldmark
from fieldmark.errors import MisuseError
from fieldmark.methods.base import Need
from fieldmark.methods.ensemble import Ensemble
from fieldmark.methods.knn import NearestNeighbors
from fieldmark.methods.lda import Discriminant
from fieldmark.methods.places.forest import RandomForest
from fieldmark.methods.places.neighbors import NeighborsInSpace
from fieldmark.runs.predictions import read_predictions
from fieldmark.steps.temperature import best_temperature
from fieldmark_tests.methods.photos_of_three import LABELS
from fieldmark_tests.methods.places.conftest import LABELS as PLACES
from fieldmark_tests.methods.places.conftest import sightings, survey

__all__ = ["sightings", "survey"]  # fixtures of places


def test_an_ensemble_is_the_mean_of_its_members_each_fitted_as_if_alone(view):
    fitted = Ensemble(members="knn:k=3,lda", calibrated=False).fit(view)
    alone = [NearestNeighbors(k=3).fit(view), Discriminant().fit(view)]
    expected = np.mean([one.predict(view.test, LABELS).probabilities() for one in alone], axis=0)
    answers = fitted.predict(view.test, LABELS)
    np.testing.assert_allclose(answers.probabilities(), expected, atol=1e-6)
    again = fitted.method.scores({key: np.array(value) for key, value in fitted.arrays.items()}, view.test)
    assert (again == answers.scores).all()


def test_weights_by_folds_leave_a_member_that_knows_nothing_without_a_say(view):
    made = Ensemble(members="lda,frequent", weights="folds", folds=3).fit(view)
    assert made.arrays["weights"][0] > 0.9 and made.arrays["weights"].sum() == pytest.approx(1)
    assert any(choice.name == "the weights of the members" and choice.on == "train" for choice in made.chosen)
    assert any("chosen on folds of train: lda 0.9" in remark or "lda 1.0" in remark for remark in made.remarks)
    by_val = Ensemble(members="lda,frequent", weights="val", mean="logits").fit(view)
    assert by_val.arrays["weights"][0] > 0.7
    kept = made.method.fit_again(made.arrays, replace(view.with_val_in_train(), val=None))
    assert (kept.arrays["weights"] == made.arrays["weights"]).all()


def test_members_are_calibrated_on_val_before_their_mean_is_taken(view):
    fitted = Ensemble(members="knn:k=3,lda").fit(view)
    expected = []
    for alone in (NearestNeighbors(k=3).fit(view), Discriminant().fit(view)):
        temperature = best_temperature(alone.predict(view.val, LABELS), view.val.truth)
        answers = alone.predict(view.test, LABELS)
        expected.append(replace(answers, scores=answers.scores / temperature, scale="logit").probabilities())
    np.testing.assert_allclose(fitted.predict(view.test, LABELS).probabilities(), np.mean(expected, axis=0), atol=1e-5)


def test_a_forest_and_neighbors_in_space_are_averaged_where_one_label_or_several_hold(sightings, survey):
    members = "random-forest:inputs=environment:trees=10,neighbors:inputs=place"
    one = Ensemble(members=members, calibrated=False).fit(sightings)
    alone = [RandomForest(inputs="environment", trees=10), NeighborsInSpace(inputs="place")]
    chances = [np.exp(method.fit(sightings).predict(sightings.val, PLACES).scores) for method in alone]
    np.testing.assert_allclose(np.exp(one.predict(sightings.val, PLACES).scores), np.mean(chances, axis=0), atol=1e-5)
    several = Ensemble(members=members).fit(survey)
    answers = several.predict(survey.train, PLACES)
    assert several.method.several and answers.scale == "score" and answers.scores.min() >= 0


def test_what_any_member_reads_learns_from_sees_and_brings_in_the_ensemble_does():
    method = Ensemble(
        members="knn,em,pseudo-label,finetune:network=resnet10t:weights=pretrained,neighbors:inputs=place"
    )
    assert set(method.learns_from) == {"train", "unlabeled"} and method.sees == "test set"
    assert method.external_data == ("the pre-trained weights of resnet10t",)
    assert method.needs == (Need("features"), Need("pixels"), Need("features", "place"))
    assert method.targets == ("codes",)


def test_members_of_one_name_have_seeds_of_their_own_and_features_too():
    method = Ensemble(members="triplet,triplet:size=64,triplet", seed=5)
    assert [member.method.seed for member in method.made_members] == [5, 6, 7]
    method = Ensemble(members="linear,linear:backbone=resnet50:size=160,knn:backbone=resnet50:size=160")
    assert [need.key for need in method.needs] == ["", "[backbone=resnet50,size=160]"]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"members": "linaer"}, "no member called 'linaer'. Did you mean linear"),
        ({"members": "linear,unet"}, "score labels, each by itself; unet is none"),
        ({"members": "ensemble"}, "score labels, each by itself; ensemble is none"),
        ({"members": "knn:k=0"}, "member knn: k=0: expected"),
        ({"members": "knn:neighbors=3"}, "member knn: There is no setting called 'neighbors'"),
        ({"members": "frequent:backbone=resnet50"}, "member frequent: There is no setting called 'backbone'"),
        ({"members": "oracle"}, "oracle reads hidden labels"),
        ({"members": "linear:backbone=runs/mine"}, "train the network as a member"),
        ({"members": "knn,lda", "weights": "1,2,3"}, "expected 2 numbers"),
        ({"members": "knn,lda", "weights": "fold"}, "expected equal, val, folds, or numbers"),
        ({"members": "knn,lda", "weights": "-1,2"}, "numbers of at least 0"),
    ],
)
def test_members_and_weights_that_cannot_be_are_refused(settings, sentence):
    with pytest.raises(MisuseError, match=sentence):
        Ensemble(**settings)


def test_an_ensemble_without_members_says_what_to_do(view):
    with pytest.raises(MisuseError, match="needs members: --set members=linear"):
        Ensemble().fit(view)


def test_a_fitted_ensemble_of_two_backbones_and_a_network_answers_again_from_its_folder(make_release, tmp_path):
    root = make_release()
    little = "weights=random:size=32"
    members = f"linear:backbone=resnet10t:{little},knn:backbone=test_resnet:{little}"
    made = fieldmark.fit("folder", root, "ensemble", tmp_path / "run", settings={"members": members})
    assert set(made.model.features) == {
        f"[backbone={name},size=32,weights=random]" for name in ("resnet10t", "test_resnet")
    }
    stored = read_predictions(tmp_path / "run" / "predictions" / "test.parquet")
    again = fieldmark.predict(tmp_path / "run", root)
    np.testing.assert_allclose(again.scores, stored.scores, rtol=1e-4, atol=1e-4)
    photo = fieldmark.load_model(tmp_path / "run").predict_photos([root / "test/Alba alba/0-4.jpg"])
    np.testing.assert_allclose(photo.scores[0], stored.select(["0-4.jpg"]).scores[0], rtol=1e-4, atol=1e-4)


def test_a_network_on_patches_and_a_forest_on_rasters_are_averaged_as_lirmm_did(land_world, tmp_path):
    little = "network=test_resnet:weights=random:size=32:epochs=1:batch=32"
    members = f"cnn:patches=satellite,elevation:{little},random-forest:inputs=environment:trees=5"
    made = fieldmark.fit("geolifeclef-2020", land_world, "ensemble", tmp_path / "run", settings={"members": members})
    assert made.run.modalities == ["satellite", "elevation", "environment"]
    assert made.run.external_data == [] and made.run.trained_on == ["train"]
    again = fieldmark.predict(tmp_path / "run", land_world)
    assert again.scores.shape[1] == 40 and again.scale == "log_probability"


def test_instances_of_one_approach_and_all_adversarial_networks_are_averaged_as_in_plantclef(plant_world, tmp_path):
    little = "network=test_resnet:weights=random:size=32:sheet_epochs=1:field_epochs=1:batch=16"
    members = [f"triplet:answers=nearest:{little}"] * 2 + [f"fsada:auxiliary=1:jigsaw=1:{little}"]
    settings = {"members": ",".join(members), "mean": "logits"}
    made = fieldmark.fit("plantclef-2020", plant_world, "ensemble", tmp_path / "run", settings=settings)
    one, two, _ = (member.method for member in made.model.fitted.method.made_members)
    assert (one.seed, two.seed) == (0, 1) and made.run.modalities == ["photo"]
    assert "The mean of logits of 3 members, weights: triplet 0.33, triplet 0.33, fsada 0.33." in made.run.remarks
