"""The backbones that people ask for by name: where they lie, what is stated of them, and that they load."""

from __future__ import annotations

import open_clip
import pytest
import timm
import torch

from fieldmark.errors import MisuseError
from fieldmark.features.hub import HUB
from fieldmark.features.named_backbones import NAMED
from fieldmark.features.settings import FeatureSettings
from fieldmark.identification.zero_shot import is_zero_shot, zero_shot_model
from fieldmark.models.supply.sources import load_backbone
from fieldmark_tests.features.test_clip import embedded, squares, tower, write_repository

assert tower  # a fixture of another file


def test_the_names_are_those_of_the_libraries_that_run_them():
    assert set(NAMED) == {"bioclip-2", "bioclip", "dinov2-b", "dinov3-b", "clip-b32", "siglip2-b"}
    for named in NAMED.values():
        kind, _, name = named.address.partition(":")
        if named.address.startswith(HUB):
            assert name == named.repository
        elif kind == "openclip":
            published = [
                open_clip.get_pretrained_cfg(name, tag)["hf_hub"]
                for tag in open_clip.list_pretrained_tags_by_model(name)
            ]
            assert f"{named.repository}/" in published
        else:
            config = timm.get_pretrained_cfg(named.address)
            assert config.hf_hub_id == named.repository
            assert config.license.lower() == named.license.lower().replace(" ", "-")


@pytest.mark.parametrize(
    ("name", "resize", "mean", "size"), [("clip-b32", "shortest", 0.48145466, 224), ("siglip2-b", "squash", 0.5, 224)]
)
def test_photos_are_prepared_as_open_clip_has_it(name, resize, mean, size):
    network = NAMED[name].address.partition(":")[2]
    tags = open_clip.list_pretrained_tags_by_model(network)
    published = open_clip.get_pretrained_cfg(network, "openai" if "openai" in tags else tags[0])
    assert (published["resize_mode"], published["mean"][0], published["interpolation"]) == (resize, mean, "bicubic")
    assert published["hf_hub"] == f"{NAMED[name].repository}/"
    assert open_clip.get_model_config(network)["vision_cfg"]["image_size"] == size


def test_a_name_loads_the_files_of_its_repository(tower, tmp_path, monkeypatch):
    snapshot = tmp_path / "models--imageomics--bioclip-2" / "snapshots" / "abc"
    write_repository(snapshot, tower.state_dict(), "safetensors")
    (tmp_path / "models--imageomics--bioclip-2" / "refs").mkdir()
    (tmp_path / "models--imageomics--bioclip-2" / "refs" / "main").write_text("abc")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    backbone = load_backbone(FeatureSettings("bioclip-2"))
    assert backbone(squares())["features"] == pytest.approx(embedded(tower, squares()), abs=2e-3)
    assert backbone.about["backbone"] == "bioclip-2"
    assert "TreeOfLife-200M" in FeatureSettings("bioclip-2").external_data[0]


@pytest.mark.parametrize("name", ["dinov2-b", "dinov3-b"])
def test_networks_of_timm_are_read_from_a_file_of_their_weights(name, tmp_path):
    torch.manual_seed(0)
    network = timm.create_model(NAMED[name].address, pretrained=False, img_size=32, num_classes=0)
    torch.save(network.state_dict(), tmp_path / "weights.pth")
    backbone = load_backbone(FeatureSettings(name, weights=str(tmp_path / "weights.pth"), size=32))
    assert backbone(squares(32))["features"].shape == (2, 768) and backbone.name == name


def test_a_wrong_name_gets_the_nearest_one_and_the_list():
    with pytest.raises(
        MisuseError, match=r"no backbone called 'bioclip2'. Did you mean bioclip-2.* Known: bioclip-2, bio"
    ):
        load_backbone(FeatureSettings("bioclip2"))


def test_identify_knows_the_same_names(tmp_path, monkeypatch, run_main):
    assert all(is_zero_shot(name) for name in NAMED)
    with pytest.raises(MisuseError, match=r"dinov2-b knows no names: fit it .*or take one of bioclip-2, bioclip"):
        zero_shot_model("dinov2-b", tmp_path / "list.csv")
    (tmp_path / "photo.jpg").write_bytes(b"")
    code, _, told = run_main("identify", tmp_path / "photo.jpg", "--model", "bioclip3")
    assert code == 1 and "Did you mean bioclip" in " ".join(told.split())


def test_the_list_of_backbones_states_license_and_training_data(run_main, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    _, printed, _ = run_main("backbones")
    for name, named in NAMED.items():
        line = next(line for line in printed.splitlines() if line.startswith(f"{name} "))
        assert named.license in line and named.repository in line
    assert "TreeOfLife-200M" in printed
