"""The world and the reader, which were written apart, agree."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import fieldmark
from fieldmark.datasets.fungitastic_check import check_fungitastic
from fieldmark.exporting.coco import export_coco
from fieldmark.release import Release
from fieldmark.runs.masks import resized


@pytest.fixture(scope="module", params=["2024", "2025"])
def world(request, tmp_path_factory) -> tuple[Path, dict]:
    root = tmp_path_factory.mktemp("world") / "fungitastic"
    return root, fieldmark.world("fungitastic", root, size="tiny", release=request.param)


def test_every_count_of_the_check_is_what_the_world_says_it_made(world):
    root, mark = world
    report = check_fungitastic(Release(root), media=True)
    assert report.simulated and report.sound, report.problems
    naming = {"ClosedSet-Val": "Val", "ClosedSet-Test": "Test"}
    for part in report.counts:
        subset, _, name = part.part.partition("-Closed")
        made = mark["counts"].get(part.part) or mark["counts"][f"{subset}-{naming[f'Closed{name}']}"]
        assert (part.found.observations, part.found.photos) == (made["observations"], made["images"])
        if part.found.classes is not None:
            assert (part.found.classes, part.found.unknown_classes) == (made["classes"], made["unknown_classes"])
    assert len(report.counts) == len(mark["counts"])


def test_every_layer_opens(world):
    dataset = fieldmark.dataset("fungitastic", world[0], "Mini")
    masks = [dataset.layers["masks"](media_id) for media_id in dataset.media["media_id"]]
    drawn = [found for found in masks if found]
    assert drawn and all("fruiting_body" in found or "microscopic" in found for found in drawn)
    spores = [bool(dataset.layers["microscopic"](media_id)) for media_id in dataset.media["media_id"]]
    assert spores == [bool(found) and "microscopic" in found for found in masks]
    assert any(dataset.layers["caption"](media_id) for media_id in dataset.media["media_id"])
    observation = dataset.media["observation_id"][0]
    climate = dataset.layers["climate"](observation)
    assert set(climate["monthly"]) == {"tas", "tasmin", "tasmax", "pr"} and len(climate["annual"]) == 19
    assert len(climate["monthly"]["tas"]) == 240
    assert dataset.layers["satellite_rgb"](observation).shape == (128, 128, 3)
    assert dataset.layers["satellite_nir"](observation).shape == (128, 128)


def test_masks_survive_the_export_to_coco(world, tmp_path):
    dataset = fieldmark.dataset("fungitastic", world[0], "Mini")
    written = export_coco(dataset, tmp_path / "mini.json", part="Train")
    data = json.loads((tmp_path / "mini.json").read_text())
    name_of = {image["id"]: image["file_name"].rpartition("/")[2] for image in data["images"]}
    drawn = [entry for entry in data["annotations"] if "segmentation" in entry]
    assert len(drawn) == written.masks > 5 and len(data["annotations"]) == len(data["images"])
    for entry in drawn:
        masks = dataset.layers["masks"](name_of[entry["image_id"]])
        counts, (height, width) = entry["segmentation"]["counts"], entry["segmentation"]["size"]
        pixels = np.repeat(np.arange(len(counts)) % 2 == 1, counts).reshape(width, height).T
        assert (pixels == resized(masks["fruiting_body"], (height, width))).all() and pixels.sum() == entry["area"]
        assert {part["name"] for part in entry["parts"]} == set(masks) - {"fruiting_body"}


def test_masks_lie_over_the_mushroom_and_not_over_the_ground(world):
    """The fruiting body differs in color from what surrounds it, photo by photo more often than not."""
    dataset = fieldmark.dataset("fungitastic", world[0], "Mini")
    apart = []
    for media_id in dataset.media["media_id"]:
        masks = dataset.layers["masks"](media_id)
        if masks and "fruiting_body" in masks and 0.02 < masks["fruiting_body"].mean() < 0.9:
            photo = np.asarray(Image.open(world[0] / dataset.media.filter(media_id=media_id)["path"][0]).convert("RGB"))
            small = Image.fromarray(masks["fruiting_body"]).resize(photo.shape[1::-1], Image.Resampling.NEAREST)
            inside = np.asarray(small, dtype=bool)
            gap = np.linalg.norm(photo[inside].mean(axis=0) - photo[~inside].mean(axis=0))
            apart.append(gap > photo.std())
    assert len(apart) > 5 and np.mean(apart) > 0.6


@pytest.mark.parametrize(
    "benchmark",
    [
        "fungitastic/closed",
        "fungitastic-mini/closed",
        "fungitastic/open",
        "fungitastic/cost-poison",
        "fungitastic-fewshot",
    ],
)
def test_benchmarks_fit_and_score_on_the_world(world, tmp_path, benchmark):
    result = fieldmark.fit(benchmark, world[0], "frequent", tmp_path / "run")
    assert result.run.simulated
    assert result.scorecard.split == ("val" if world[1]["release"] == "2024" else "test")
    assert (tmp_path / "run" / "predictions" / "test.parquet").exists()
    assert (tmp_path / "run" / "run.csv").exists()
    if world[1]["release"] == "2025":
        page = fieldmark.report([tmp_path / "run"], tmp_path / "page.html").read_text()
        assert "(simulated data)" in page and ("an unknown species" in page) == (
            benchmark in ("fungitastic/open", "fungitastic/cost-poison")
        )
