from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from fieldmark.cli.main import app
from fieldmark.features.available import KNOWN, available_backbones
from fieldmark.features.hub import cached_files, hub_answers
from fieldmark.training.recipe import read_recipe, shipped_recipes


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))

    def put(repository: str, *names: str) -> None:
        folder = tmp_path / f"models--{repository.replace('/', '--')}" / "snapshots" / "revision"
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            (folder / name).write_bytes(b"x")

    return put


def test_what_lies_in_the_cache_is_ready_and_the_rest_says_what_to_do(cache):
    cache("imageomics/bioclip", "open_clip_config.json", "open_clip_pytorch_model.bin")
    cache("BVRA/beit-fungi", "config.json", "model.safetensors")
    cache("someone/tokenizer", "config.json")
    found = {one.name: one for one in available_backbones()}
    assert found["efficientnet_lite0"].ready and found["efficientnet_lite0"].weights.suffix == ".pth"
    assert found["hf-hub:imageomics/bioclip"].ready and found["hf-hub:BVRA/beit-fungi"].ready
    assert "hf-hub:someone/tokenizer" not in found
    clip = found["openclip:ViT-B-32"]
    assert not clip.ready and clip.weights is None and "--set weights=FILE" in clip.to_do


def test_the_verb_tells_people_and_programs_the_same(cache):
    cache("timm/resnet50.a1_in1k", "config.json", "model.safetensors")
    runner = CliRunner()
    listed = json.loads(runner.invoke(app, ["backbones", "--json"]).stdout)
    shown = runner.invoke(app, ["backbones"]).stdout
    assert {one["name"] for one in listed if one["ready"]} >= {"efficientnet_lite0", "resnet50.a1_in1k"}
    for one in listed:
        line = next(line for line in shown.splitlines() if line.startswith(one["name"] + " "))
        assert ("not downloaded" in line) != one["ready"]
    assert "hf download REPOSITORY" in shown


def test_every_known_backbone_has_its_name_in_timm_or_open_clip():
    import open_clip
    import timm

    for known in KNOWN:
        if known.module == "timm":
            assert timm.get_pretrained_cfg(known.name).hf_hub_id == known.repository
        elif known.name.startswith("openclip:"):
            assert open_clip.get_pretrained_cfg(known.name.removeprefix("openclip:"), "openai")["hf_hub"].startswith(
                known.repository
            )


def test_a_repository_that_is_not_there_has_no_files_and_offline_means_offline(cache, monkeypatch):
    assert cached_files("no/where") == {}
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert hub_answers.__wrapped__() is False
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert hub_answers.__wrapped__() is False
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:1")
    assert hub_answers.__wrapped__() is True


def test_every_network_of_the_recipes_of_table_4_is_listed():
    wanted = {read_recipe(name)["network"] for name in shipped_recipes() if name.startswith("fungitastic-")}
    assert wanted <= {known.name for known in KNOWN}
