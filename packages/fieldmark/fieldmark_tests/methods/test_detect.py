"""Find, crop, classify: the crop follows the finder, and answers are those of the classifier."""

from __future__ import annotations

import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.features.finders import make_finder
from fieldmark.fitting.configuration import configured_method
from fieldmark.fitting.detectors import detector
from fieldmark.methods.detect import Detect
from fieldmark.models import load_model


def test_the_finder_decides_the_crop():
    configured = configured_method("detect", {"finder": "yolox", "classifier": "knn"})
    assert configured.features[""]["crop"] == "yolox"
    assert configured_method("detect", {}).features[""]["crop"] == "saliency"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"finder": "saliancy"}, "finder=saliancy: .* Did you mean saliency"),
        ({"crop": "boxes"}, "pass --set finder="),
        ({"classifier": "finetune"}, "no classifier of features"),
        ({"classifier": "detect"}, "no classifier of features"),
    ],
)
def test_what_cannot_be_is_refused(settings, sentence):
    with pytest.raises(MisuseError, match=sentence):
        configured_method("detect", settings)


def test_boxes_given_are_cut_out_and_the_model_answers_again(snake_world, tmp_path):
    settings = {"finder": "boxes", "classifier": "centroid", "size": 64, "weights": "random"}
    done = fieldmark.fit("snakeclef-2020", snake_world, "detect", tmp_path / "run", settings=settings)
    assert done.scorecard is not None and 0 <= done.scorecard.metrics["top_1"].value <= 1
    method = load_model(tmp_path / "run").fitted.method
    assert isinstance(method, Detect) and method.finder == "boxes"
    whole = fieldmark.fit(
        "snakeclef-2020", snake_world, "detect", tmp_path / "whole", settings={**settings, "finder": "none"}
    )
    assert (done.scorecard.pseudo["log_loss"] != whole.scorecard.pseudo["log_loss"]).any()


def test_a_detector_trained_on_boxes_finds_them_for_detect(snake_world, tmp_path):
    file = tmp_path / "snakes.detector"
    recipe = {"size": 64, "epochs": 1, "batch": 8, "sure": 0.0}
    made = detector("snakeclef-2020", snake_world, file, settings=recipe)
    assert made.photos > 40 and made.val_photos > 0 and 0 <= made.ap_50 <= 1
    settings = {"finder": str(file), "classifier": "centroid", "size": 64, "weights": "random"}
    done = fieldmark.fit("snakeclef-2020", snake_world, "detect", tmp_path / "run", settings=settings)
    assert any("the detector in snakes.detector (SHA-256 " in one for one in done.run.external_data)
    assert load_model(tmp_path / "run").fitted.method.finder == str(file)
    (tmp_path / "other.detector").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"other.detector.*a detector that `fieldmark detector` trained"):
        make_finder(str(tmp_path / "other.detector"))


def test_a_release_without_boxes_and_a_file_of_another_name_are_refused(make_release, tmp_path):
    with pytest.raises(MisuseError, match="has no boxes of its training photos"):
        detector("folder", make_release(), tmp_path / "a.detector")
    with pytest.raises(MisuseError, match=r"expected a file ending in \.detector"):
        detector("folder", make_release(), tmp_path / "a.pt")
