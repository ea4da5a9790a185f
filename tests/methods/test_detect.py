"""Find, crop, classify: the crop follows the finder, and answers are those of the classifier."""

from __future__ import annotations

import pytest

import fieldmark
from fieldmark.errors import MisuseError
from fieldmark.fitting.configuring import configured_method
from fieldmark.methods.detect import Detect
from fieldmark.models import load_model


def test_the_finder_decides_the_crop():
    configured = configured_method("detect", {"finder": "yolox", "classifier": "knn"})
    assert configured.features[""]["crop"] == "yolox"
    assert configured_method("detect", {}).features[""]["crop"] == "saliency"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"finder": "saliancy"}, "no finder=saliancy. Did you mean saliency"),
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
