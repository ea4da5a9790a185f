"""Networks of open_clip and timm from the files they are published as: tiny random ones, real formats."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import save_file

from fieldmark.errors import InputError, MisuseError
from fieldmark.features.settings import FeatureSettings
from fieldmark.models.supply.sources import load_backbone

TINY = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "patch_size": 16, "head_width": 16},
    "text_cfg": {"context_length": 8, "vocab_size": 64, "width": 16, "heads": 2, "layers": 1},
}
PREPROCESS = {"mean": [0.1, 0.2, 0.3], "std": [0.5, 0.6, 0.7], "interpolation": "bicubic", "resize_mode": "shortest"}


def squares(size: int = 32) -> list[np.ndarray]:
    return list(np.random.default_rng(0).integers(0, 255, (2, size, size, 3), dtype=np.uint8))


@pytest.fixture(scope="module")
def tower() -> torch.nn.Module:
    import open_clip

    torch.manual_seed(1)
    return open_clip.CLIP(**TINY).eval()


def write_repository(folder: Path, tensors: dict[str, torch.Tensor], form: str, config: dict | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(config or {"model_cfg": TINY, "preprocess_cfg": PREPROCESS})
    (folder / "open_clip_config.json").write_text(text)
    if form == "safetensors":
        save_file(
            {name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "open_clip_model.safetensors"
        )
    else:
        torch.save(tensors, folder / f"open_clip_pytorch_model.{form}")
    return folder


def embedded(tower: torch.nn.Module, images: list[np.ndarray]) -> np.ndarray:
    pixels = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255
    mean, std = (torch.tensor(PREPROCESS[key]).view(1, 3, 1, 1) for key in ("mean", "std"))
    with torch.inference_mode():
        return tower.encode_image((pixels - mean) / std).numpy()


@pytest.mark.parametrize("form", ["safetensors", "bin", "pth"])
def test_a_folder_of_open_clip_gives_the_embeddings_of_its_network(tower, tmp_path, form):
    folder = write_repository(tmp_path / "repository", tower.state_dict(), form)
    backbone = load_backbone(FeatureSettings(f"local-dir:{folder}"))
    outputs = backbone(squares())
    assert outputs["features"] == pytest.approx(embedded(tower, squares()), abs=2e-3) and "logits" not in outputs
    how = backbone.preprocessing
    assert (how.size_px, how.crop, how.resize, how.mean) == (32, 1.0, "cut", (0.1, 0.2, 0.3))


def test_a_repository_in_the_cache_of_the_hub_needs_no_network(tower, tmp_path, monkeypatch):
    snapshot = tmp_path / "models--imageomics--bioclip" / "snapshots" / "abc"
    write_repository(snapshot, tower.state_dict(), "bin")
    (tmp_path / "models--imageomics--bioclip" / "refs").mkdir()
    (tmp_path / "models--imageomics--bioclip" / "refs" / "main").write_text("abc")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    backbone = load_backbone(FeatureSettings("hf-hub:imageomics/bioclip"))
    assert backbone(squares())["features"] == pytest.approx(embedded(tower, squares()), abs=2e-3)


@pytest.mark.parametrize("form", ["pt", "safetensors"])
def test_a_file_of_weights_fits_the_network_of_that_name(form, tmp_path, tower, monkeypatch):
    import open_clip

    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, "tiny-clip", TINY)
    path = tmp_path / f"tiny.{form}"
    save_file(tower.state_dict(), path) if form == "safetensors" else torch.save(tower.state_dict(), path)
    backbone = load_backbone(FeatureSettings("openclip:tiny-clip", weights=str(path), resize="squash"))
    assert backbone.preprocessing.resize == "squash" and backbone.about["resize"] == "squash"
    assert torch.equal(backbone.network.visual.proj.cpu(), tower.visual.proj)
    larger = load_backbone(FeatureSettings("openclip:tiny-clip", weights=str(path), size=64))
    assert larger(squares(64))["features"].shape == (2, 16) and larger.preprocessing.size_px == 64
    torch.save({"visual.proj": torch.zeros(3)}, tmp_path / "wrong.pt")
    with pytest.raises(InputError, match=r"wrong.pt: found something else .* expected the weights of tiny-clip"):
        load_backbone(FeatureSettings("openclip:tiny-clip", weights=str(tmp_path / "wrong.pt")))


def test_random_weights_of_open_clip_are_the_same_each_time(monkeypatch):
    import open_clip

    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, "tiny-clip", TINY)
    digests = {load_backbone(FeatureSettings("openclip:tiny-clip", weights="random")).digest for _ in range(2)}
    assert len(digests) == 1


def test_openai_weights_get_the_activation_they_were_trained_with(monkeypatch):
    import open_clip

    asked = {}

    def remember(name, **options):
        asked.update(options, name=name)
        raise RuntimeError("no network")

    monkeypatch.setattr(open_clip, "create_model", remember)
    monkeypatch.setattr("fieldmark.features.hub.hub_answers", lambda: True)
    with pytest.raises(MisuseError, match=r"weights of openclip:ViT-B-32 could not be downloaded from the hub"):
        load_backbone(FeatureSettings("openclip:ViT-B-32", size=224))
    assert asked["pretrained"] == "openai" and asked["force_quick_gelu"] and asked["force_image_size"] == 224
    with pytest.raises(MisuseError, match="could not be downloaded"):
        load_backbone(FeatureSettings("openclip:ViT-B-32", weights="laion2b_e16"))
    assert asked["pretrained"] == "laion2b_e16" and not asked["force_quick_gelu"]


@pytest.mark.parametrize(
    "name", ["openclip:ViT-B-32", "hf-hub:imageomics/bioclip", "vit_base_patch14_reg4_dinov2.lvd142m"]
)
def test_weights_that_cannot_be_had_are_refused_at_once_with_what_to_do(name, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("fieldmark.features.hub.hub_answers", lambda: False)
    with pytest.raises(
        MisuseError, match=rf"weights of {name} could not be downloaded .*`fieldmark backbones` says what"
    ):
        load_backbone(FeatureSettings(name, size=224))


def test_advice_about_weights_names_only_settings_that_there_are(tmp_path, monkeypatch):
    from dataclasses import fields

    from fieldmark.methods.finetune import Finetune
    from fieldmark.training.networks import make_network

    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("fieldmark.features.hub.hub_answers", lambda: False)
    with pytest.raises(MisuseError) as refused:
        make_network("resnet18.a1_in1k", "pretrained", classes=2, size=64)
    advised = set(re.findall(r"--set (\w+)=", str(refused.value)))
    assert advised and advised <= {one.name for one in fields(Finetune)}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"backbone": "openclip:ViT-B-23"}, r"no network called 'ViT-B-23'. Did you mean ViT-B-32"),
        ({"backbone": "openclip:ViT-B-32", "weights": "opanai"}, r"no such weights for ViT-B-32. Did you mean openai"),
        ({"resize": "squish"}, r"resize=squish: .* Did you mean squash"),
        ({"views": "flip"}, r"views=flip: .* Did you mean flips"),
        ({"embeddings": "uint8"}, r"embeddings=uint8: expected"),
    ],
)
def test_what_does_not_exist_is_refused_with_what_does(settings, sentence):
    with pytest.raises(MisuseError, match=sentence):
        load_backbone(FeatureSettings(**settings))


def test_a_folder_that_is_no_repository_is_refused(tmp_path, tower):
    with pytest.raises(InputError, match=r"nowhere: no such folder, expected a folder with open_clip"):
        load_backbone(FeatureSettings(f"local-dir:{tmp_path}/nowhere"))
    folder = write_repository(tmp_path / "a", tower.state_dict(), "bin")
    (folder / "open_clip_pytorch_model.bin").unlink()
    with pytest.raises(InputError, match=r"a: found no weights, expected a file ending in .safetensors"):
        load_backbone(FeatureSettings(f"local-dir:{folder}"))
    (folder / "open_clip_config.json").write_text("{")
    with pytest.raises(InputError, match=r"open_clip_config.json, line 1: found text that is not JSON"):
        load_backbone(FeatureSettings(f"local-dir:{folder}"))


VIT = "vit_tiny_patch16_224"


@pytest.mark.parametrize("form", ["safetensors", "pth"])
def test_a_timm_vision_transformer_is_read_from_a_file_at_another_size_and_number_of_classes(form, tmp_path):
    torch.manual_seed(2)
    trained = timm.create_model(VIT, depth=1, num_classes=7, img_size=32).eval()
    path = tmp_path / f"weights.{form}"
    save_file(trained.state_dict(), path) if form == "safetensors" else torch.save(trained.state_dict(), path)
    with pytest.raises(InputError, match=rf"expected the weights of {VIT}. It may be a file for another network"):
        load_backbone(FeatureSettings(VIT, weights=str(path)))  # twelve blocks, and the file has one
    full = timm.create_model(VIT, num_classes=7, img_size=32).eval()
    save_file(full.state_dict(), path) if form == "safetensors" else torch.save(full.state_dict(), path)
    same = load_backbone(FeatureSettings(VIT, weights=str(path), size=32))
    outputs = same(squares())
    assert outputs["logits"].shape == (2, 7) and same.preprocessing.size_px == 32
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (same.preprocessing.mean, same.preprocessing.std))
    pixels = (torch.from_numpy(np.stack(squares())).permute(0, 3, 1, 2).float() / 255 - mean) / std
    with torch.inference_mode():
        assert outputs["logits"] == pytest.approx(full(pixels).numpy(), abs=1e-4)
    larger = load_backbone(FeatureSettings(VIT, weights=str(path), size=64))  # its positions are resampled
    assert larger(squares(64))["features"].shape == (2, 192)


def test_a_repository_of_timm_in_a_folder_is_told_from_one_of_open_clip(tmp_path):
    torch.manual_seed(3)
    network = timm.create_model("resnet10t", num_classes=5)
    save_file(network.state_dict(), tmp_path / "model.safetensors")
    config = {"architecture": "resnet10t", "num_classes": 5, "pretrained_cfg": {"input_size": [3, 64, 64]}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    backbone = load_backbone(FeatureSettings(f"local-dir:{tmp_path}"))
    assert torch.equal(backbone.network.fc.weight.cpu(), network.fc.weight) and backbone.preprocessing.size_px == 64
    shutil.copy(tmp_path / "config.json", tmp_path / "model.safetensors")
    with pytest.raises(InputError, match="found files that cannot be loaded"):
        load_backbone(FeatureSettings(f"local-dir:{tmp_path}"))


def test_features_without_a_classifier_come_without_logits():
    backbone = load_backbone(FeatureSettings("test_vit.r160_in1k", weights="random", size=160))
    assert "logits" in backbone(squares(160))
    backbone.network.reset_classifier(0)
    assert set(backbone(squares(160))) == {"features"}
