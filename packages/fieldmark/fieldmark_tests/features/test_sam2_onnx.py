"""SAM 2 for ONNX Runtime: what its two files are asked, by small ones that answer what they were shown."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from fieldmark.errors import InputError
from fieldmark.features.crops import Box
from fieldmark.features.sam2_onnx import OnnxSam2
from fieldmark.methods.sam import Sam, network_in

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def _saved(path, nodes, inputs, outputs, constants=()):
    def value(name, shape):
        return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)

    graph = onnx.helper.make_graph(
        nodes,
        "small",
        [value(*one) for one in inputs],
        [value(*one) for one in outputs],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An encoder that keeps the red of a photo at a quarter of its size, a decoder that adds 0, 1 and -1 to it.

    Its estimates are the sums of the coordinates, of the labels, and 0.
    """
    made, node = tmp_path_factory.mktemp("onnx"), onnx.helper.make_node
    pool = node("AveragePool", ["image"], ["mean"], kernel_shape=[4, 4], strides=[4, 4])
    red = node("Slice", ["mean", "from", "to", "axis"], ["image_embed"])
    ends = [("from", np.array([0])), ("to", np.array([1])), ("axis", np.array([1]))]
    _saved(
        made / "small_encoder.onnx",
        [pool, red],
        [("image", [1, 3, 1024, 1024])],
        [("image_embed", [1, 1, 256, 256])],
        ends,
    )
    shifts = np.array([0, 1, -1], np.float32).reshape(1, 3, 1, 1)
    sums = [
        node("ReduceSum", ["point_coords"], ["places"], keepdims=0),
        node("ReduceSum", ["point_labels"], ["labels"], keepdims=0),
        node("ReduceSum", ["has_mask_input"], ["none"], keepdims=0),
    ]
    rows = [node("Reshape", [name, "one"], [f"{name}_row"]) for name in ("places", "labels", "none")]
    joined = node("Concat", ["places_row", "labels_row", "none_row"], ["iou_predictions"], axis=1)
    unused = node("ReduceSum", ["mask_input"], ["empty"], keepdims=0)
    shifted = node("Add", ["image_embed", "shifts"], ["shown"])
    masks = node("Add", ["shown", "empty"], ["masks"])
    asked = [("point_coords", [1, "n", 2]), ("point_labels", [1, "n"])]
    _saved(
        made / "small_decoder.onnx",
        [*sums, *rows, joined, unused, shifted, masks],
        [("image_embed", [1, 1, 256, 256]), *asked, ("mask_input", [1, 1, 256, 256]), ("has_mask_input", [1])],
        [("masks", [1, 3, 256, 256]), ("iou_predictions", [1, 3])],
        [("shifts", shifts), ("one", np.array([1, 1]))],
    )
    return made


@pytest.fixture(scope="module")
def seen(folder):
    """A photo whose left half is red."""
    pixels = np.zeros((60, 90, 3), np.uint8)
    pixels[:, :45, 0] = 255
    return OnnxSam2.open(str(folder)).look(Image.fromarray(pixels))


def test_a_box_is_two_points_with_labels_of_their_own(seen):
    by_box = {round(one.estimate, 2) for one in seen.draw(Box(0.25, 0.5, 0.75, 1.0))}
    assert by_box == {1024 * 2.5, 2 + 3, 0}
    both = {round(one.estimate, 2) for one in seen.draw(Box(0.25, 0.5, 0.75, 1.0), np.array([[0.5, 0.5]]))}
    assert both == {1024 * 3.5, 2 + 3 + 1, 0}


def test_without_a_box_a_padding_point_follows(seen):
    estimates = [one.estimate for one in seen.draw(points=np.array([[0.5, 0.25], [0.25, 0.0]]))]
    assert estimates == [1024.0, 1 + 1 - 1, 0]  # the most believed first


def test_masks_are_as_large_as_the_photo_and_lie_where_it_shows_them(seen):
    mask = seen.draw(points=np.array([[0.5, 0.5]]))[0].mask
    assert mask.shape == (60, 90)
    assert mask[:, :43].all() and not mask[:, 47:].any()


def test_sam_takes_the_form_that_lies_in_the_folder(folder, tmp_path):
    assert isinstance(network_in(str(folder)), OnnxSam2)
    assert Sam(weights=str(folder), saliency="u2netp").external_data[0].startswith("whatever the network in onnx")
    (tmp_path / "a_encoder.onnx").write_bytes(b"")
    (tmp_path / "b_encoder.ort").write_bytes(b"")
    with pytest.raises(InputError, match=r"found a_encoder.onnx, b_encoder.ort, expected one encoder of SAM 2"):
        OnnxSam2.open(str(tmp_path))
    (tmp_path / "b_encoder.ort").unlink()
    (tmp_path / "b_decoder.onnx").write_bytes(b"no network")
    with pytest.raises(InputError, match=r"a_encoder.onnx: found something else .* expected a part of SAM 2"):
        OnnxSam2.open(str(tmp_path)).look(Image.new("RGB", (8, 8)))
