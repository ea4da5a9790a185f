"""SAM 2 from a folder: the masks that its own library draws, and folders that hold something else."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError, MisuseError
from fieldmark.features.crops import Box
from fieldmark.features.sam_transformers import TransformerSam
from fieldmark.methods.sam import DIGEST, Sam
from fieldmark.releases import open_dataset
from fieldmark.tables.labels import Labels
from fieldmark.views.open_benchmark import open_benchmark

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

SIDE_PX = 64


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A SAM 2 of a few thousand weights, drawn at random."""
    backbone = {
        "model_type": "sam2_hiera_det_model", "hidden_size": 8, "image_size": [SIDE_PX, SIDE_PX],
        "blocks_per_stage": [1, 1, 2, 1], "embed_dim_per_stage": [8, 16, 32, 64],
        "num_attention_heads_per_stage": [1, 1, 2, 2], "window_size_per_stage": [4, 4, 4, 4],
        "global_attention_blocks": [3], "window_positional_embedding_background_size": [4, 4],
    }  # fmt: skip
    vision = {
        "model_type": "sam2_vision_model", "backbone_config": backbone, "backbone_channel_list": [64, 32, 16, 8],
        "backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]], "fpn_hidden_size": 16,
    }  # fmt: skip
    prompts = {"hidden_size": 16, "image_size": SIDE_PX, "patch_size": 16, "mask_input_channels": 4}
    decoder = {"hidden_size": 16, "mlp_dim": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.Sam2Config(
        vision_config=vision,
        prompt_encoder_config=prompts,
        mask_decoder_config=decoder | {"iou_head_hidden_dim": 16},
    )
    made = tmp_path_factory.mktemp("sam2")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.Sam2Model(config).save_pretrained(made)
    transformers.Sam2ImageProcessor(size={"height": SIDE_PX, "width": SIDE_PX}).save_pretrained(made)
    return made


@pytest.fixture
def photo():
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 120, 3), dtype=np.uint8))


@pytest.mark.parametrize("prompt", ["box", "points", "both"])
def test_masks_are_those_that_the_library_draws_by_itself(folder, photo, prompt):
    box = Box(0.2, 0.3, 0.7, 0.8) if prompt != "points" else None
    points = np.array([[0.5, 0.5], [0.25, 0.75]]) if prompt != "box" else None
    drawn = TransformerSam.open(str(folder)).look(photo).draw(box, points)

    network = transformers.Sam2Model.from_pretrained(folder).eval()
    processor = transformers.Sam2Processor.from_pretrained(folder)
    asked = {}
    if box is not None:
        asked["input_boxes"] = [[[0.2 * 120, 0.3 * 90, 0.7 * 120, 0.8 * 90]]]
    if points is not None:
        asked |= {"input_points": [[[[60, 45], [30, 67.5]]]], "input_labels": [[[1, 1]]]}
    inputs = processor(images=photo, **asked, return_tensors="pt")
    with torch.inference_mode():
        answer = network(**inputs)
    masks = processor.post_process_masks(answer.pred_masks, inputs["original_sizes"])[0][0].numpy()
    best_first = answer.iou_scores[0, 0].argsort(descending=True).tolist()
    assert [one.mask.shape for one in drawn] == [(90, 120)] * 3
    for one, place in zip(drawn, best_first, strict=True):
        assert one.estimate == pytest.approx(float(answer.iou_scores[0, 0, place]))
        assert (one.mask != masks[place]).mean() < 0.01


def test_the_method_draws_with_it_and_notices_other_weights(folder, photo):
    method = Sam(prompt="center", weights=str(folder))
    arrays = method.fit(None).arrays
    drawn = method.draw(method.start(arrays), arrays, photo, Labels(()))
    assert drawn["fruiting_body"].shape == (90, 120)
    assert "sam2" in method.external_data[0] and "MobileSAM" not in method.external_data[0]
    with pytest.raises(InputError, match="another network"):
        method.start({DIGEST: np.frombuffer(b"0" * 32, dtype=np.uint8)})


def test_a_box_that_is_given_is_what_the_network_is_shown(folder, photo, tmp_path):
    for part in ("train", "val", "test"):
        (tmp_path / "images" / part).mkdir(parents=True)
        photo.save(tmp_path / "images" / part / f"{part}.png")
        (tmp_path / "masks").mkdir(exist_ok=True)
        Image.fromarray(np.ones((90, 120), dtype=bool)).save(tmp_path / "masks" / f"{part}.png")
    (tmp_path / "boxes.csv").write_text("photo,x,y,width,height\nimages/test/test.png,24,27,60,45\n")
    opened = open_benchmark(BENCHMARKS["folder/segmentation"], open_dataset("folder-masks", tmp_path))
    method = Sam(prompt="boxes", weights=str(folder))
    drawn = method.answer({}, opened.view.test, opened.view.labels).open("test")["fruiting_body"]
    given = Box(24 / 120, 27 / 90, 84 / 120, 72 / 90)
    np.testing.assert_array_equal(drawn, TransformerSam.open(str(folder)).look(photo).draw(given)[0].mask)
    with pytest.raises(MisuseError, match="no boxes"):
        method.answer({}, replace(opened.view.test, layers={}), opened.view.labels)


def test_a_folder_with_something_else_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no config\.json"):
        Sam(prompt="center", weights=str(tmp_path)).start({})
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(InputError, match=r"no \*\.safetensors"):
        TransformerSam.open(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match="'bert'"):
        TransformerSam.open(str(tmp_path))
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(InputError, match="no JSON object"):
        TransformerSam.open(str(tmp_path))
