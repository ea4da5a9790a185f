import numpy as np
import onnx
import onnxruntime
import pytest

import fieldmark
from fieldmark.errors import MisuseError
from fieldmark.exporting.answering_network import answering_network
from fieldmark.exporting.weight_precision import with_precision
from fieldmark.features.photos import decode_square
from fieldmark.models import load_model

METHODS = {
    "linear": {"l2": 0.01},
    "lda": {"shrinkage": 0.5},
    "ridge": {"l2": 0.1},
    "prototypes": {"shrinkage": 0.5, "borrow": 1.0},
    "knn": {"k": 3, "output": "stages"},
    "centroid": {"output": "second-order"},
    "openset": {"score": "vim", "classifier_settings": "l2=0.01"},
}


def answers(graph, **inputs):
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    from fieldmark_tests.fixtures import write_release

    return write_release(tmp_path_factory.mktemp("answering") / "photos")


@pytest.mark.parametrize("name", METHODS)
def test_the_graph_scores_a_photo_as_the_model_does(name, photos, tmp_path):
    settings = {"size": 32, "views": "flips", **METHODS[name]}
    if name == "openset":
        settings |= {"choose": "held-out"}
    fieldmark.fit("folder", photos, name, tmp_path / "run", settings=settings, steps=[])
    model = load_model(tmp_path / "run")
    network = answering_network(model)
    photo = sorted(photos.rglob("*.jpg"))[5]
    squares = np.stack([decode_square(photo.read_bytes(), view) for view in network.views])
    said, expected = answers(network.graph, squares=squares), model.predict_photos([photo])
    assert len(squares) == 2
    np.testing.assert_allclose(said["scores"], expected.scores, rtol=1e-4, atol=1e-4)
    if name == "openset":
        np.testing.assert_allclose(said["unknown"][:, 0], expected.unknown, rtol=1e-4)


NOVELTY = (
    "max-softmax",
    "max-logit",
    "energy",
    "entropy",
    "nearest-mean",
    "knn",
    "mahalanobis",
    "residual",
    "relative-mahalanobis",
    "round-neighbor",
    "average",
    "combined",
)


def test_every_score_of_strangeness_is_that_of_the_method(photos, tmp_path):
    from dataclasses import replace

    settings = {"size": 32, "score": "all", "choose": "held-out", "classifier_settings": "l2=0.01"}
    fieldmark.fit("folder", photos, "openset", tmp_path / "run", settings=settings, steps=[])
    model = load_model(tmp_path / "run")
    photo = sorted(photos.rglob("*.jpg"))[3]
    for name in NOVELTY:
        fitted = replace(model.fitted, method=replace(model.fitted.method, chosen=name))
        chosen = replace(model, fitted=fitted)
        network = answering_network(chosen)
        squares = np.stack([decode_square(photo.read_bytes(), view) for view in network.views])
        said = answers(network.graph, squares=squares)["unknown"][:, 0]
        np.testing.assert_allclose(said, chosen.predict_photos([photo]).unknown, rtol=1e-3, atol=1e-4, err_msg=name)


def test_smaller_weights_make_a_smaller_file_of_nearly_the_same_scores(color_model):
    network = answering_network(load_model(color_model))
    squares = np.random.default_rng(0).integers(0, 256, (1, 32, 32, 3), dtype=np.uint8)
    size, scores = {}, {}
    for precision in ("single", "half", "8-bit"):
        graph = with_precision(network.graph, precision)
        onnx.checker.check_model(graph)
        size[precision], scores[precision] = len(graph.SerializeToString()), answers(graph, squares=squares)["scores"]
    assert size["half"] < 0.55 * size["single"] and size["8-bit"] < 0.3 * size["single"]
    scale = np.abs(scores["single"]).max()
    assert np.abs(scores["half"] - scores["single"]).max() < 0.02 * scale
    assert 0 < np.abs(scores["8-bit"] - scores["single"]).max() < 0.5 * scale


@pytest.mark.parametrize(
    ("method", "settings", "because"),
    [
        ("frequent", {}, "reads other things than photos alone"),
        ("knn", {"size": 32, "vote": "majority"}, "vote=weighted"),
    ],
)
def test_what_cannot_be_a_graph_is_refused_with_the_reason(method, settings, because, photos, tmp_path):
    fieldmark.fit("folder", photos, method, tmp_path / "run", settings=settings, steps=[])
    with pytest.raises(MisuseError, match=because):
        answering_network(load_model(tmp_path / "run"))
