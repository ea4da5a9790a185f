import json

import numpy as np
import onnx
import onnxruntime
import pytest

import fieldmark
from fieldmark.errors import MisuseError
from fieldmark.exporting.answering_network import answering_network
from fieldmark.exporting.onnx import export_onnx
from fieldmark.models import load_model
from fieldmark.training.boxes import middle_boxes
from fieldmark.training.packs import decode_squashed


def test_an_exported_network_answers_as_the_model_does(make_release, tmp_path, monkeypatch):
    monkeypatch.setenv("FIELDMARK_CACHE", str(tmp_path / "cache"))
    root = make_release()
    settings = {"recipe": "scratch", "size": 32, "epochs": 1, "batch": 4, "workers": 1}
    fieldmark.fit("folder", root, "finetune", tmp_path / "run", settings=settings, steps=[])
    model = load_model(tmp_path / "run")
    exported = export_onnx(model, tmp_path / "network.onnx")
    assert exported.labels == 3 and exported.size_px == 32 and exported.difference < 1e-3
    stored = onnx.load(tmp_path / "network.onnx")
    facts = {entry.key: json.loads(entry.value) for entry in stored.metadata_props}
    assert facts["labels"] == list(model.labels.names)
    session = onnxruntime.InferenceSession(tmp_path / "network.onnx")
    photos = np.random.default_rng(1).random((5, 3, 32, 32), dtype=np.float32)
    assert session.run(None, {"photos": photos})[0].shape == (5, 3)
    _check_what_it_is_shown(model, sorted(root.rglob("*.jpg"))[0])


def _check_what_it_is_shown(model, photo):
    """The graph for apps takes the squashed photo, and is shown of it what evaluation shows."""
    network = answering_network(model)
    assert network.squashed is not None and not network.views
    square, aspect = decode_squashed(photo.read_bytes(), network.squashed["side_px"])
    how = network.squashed["eval_crop"], network.squashed["eval_share"]
    boxes = middle_boxes(np.array([aspect], dtype=np.float32), *how)
    session = onnxruntime.InferenceSession(network.graph.SerializeToString())
    scores = session.run(["scores"], {"squares": square[None], "boxes": boxes})[0]
    np.testing.assert_allclose(scores, model.predict_photos([photo]).scores, rtol=1e-3, atol=1e-3)


def test_a_head_on_frozen_features_has_no_network_to_export(make_release, tmp_path):
    fieldmark.fit("folder", make_release(), "frequent", tmp_path / "run")
    with pytest.raises(MisuseError, match="finetune and published"):
        export_onnx(load_model(tmp_path / "run"), tmp_path / "network.onnx")
    assert not (tmp_path / "network.onnx").exists()
