"""Real photos of snakes (`snakes_philippines`): all methods on whole photos and on crops by three finders.

Features, finders and trainings want a GPU, which may sit in a machine without a table library:

    python -m studies.evidence.snake_photos list DIR               parts and classes, boxes of U²-Netp, the weights of
    YOLOX python -m studies.evidence.snake_photos train DIR PHOTOS OUT   on the GPU; writes boxes, features and logits
    python -m studies.evidence.snake_photos score OUT              writes studies/results/snake-photos.json

The settings of `finetune` are those that `studies.evidence.finetuning` chose on birds; those of finders are their
defaults. Nothing is chosen on these photos but what a method chooses on their val.
"""

from __future__ import annotations

import json
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from studies.evidence.finetuning import AT_ONCE, CHOSEN, SEEDS, SIZE_PX, answer_of, recipe_of
from studies.evidence.study_parts import run_part

COMMAND = "python -m studies.evidence.snake_photos"
DATA, LISTING, YOLOX_FILE = "snakes_philippines", "listing.json", "yolox.pth"
FINDERS = ("none", "saliency", "yolox")
PARTS = ("train", "val", "test")


def list_photos(out: Path) -> None:
    """Writes which photo belongs to which part and class, what stands out in it, and the weights of YOLOX as halves."""
    import torch

    import fieldmark
    from fieldmark.features.crops import USUAL_MARGIN
    from fieldmark.features.saliency import salient_boxes
    from fieldmark.features.store import default_store
    from fieldmark.features.yolox import packaged_weights
    from fieldmark.views.open_benchmark import open_benchmark
    from studies.evidence.results import real_data

    data = real_data(DATA)
    if data is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    opened = open_benchmark(fieldmark.benchmark("folder"), fieldmark.dataset("folder", data), seed=0)
    labels = opened.view.labels
    path_of = dict(zip(opened.dataset.media["media_id"], opened.dataset.media["path"], strict=True))
    listed: dict[str, Any] = {"classes": list(labels.names)}
    for part in PARTS:
        table = opened.items[part]
        photos = [path_of[item] for item in table["item_id"]]
        listed[part] = {"photos": photos, "labels": labels.encode(table["label"]).tolist()}
    everything = [photo for part in PARTS for photo in listed[part]["photos"]]
    found = salient_boxes(everything, lambda path: (data / path).read_bytes(), default_store(), USUAL_MARGIN)
    listed["saliency"] = {photo: list(box) for photo, box in found.boxes.items()}
    (out / LISTING).write_text(json.dumps(listed))
    weights = torch.load(packaged_weights(), map_location="cpu", weights_only=True)["model"]
    halves = {name: value.half() if value.is_floating_point() else value for name, value in weights.items()}
    torch.save({"model": halves}, out / YOLOX_FILE)


def train_all(folder: Path, photos: Path, out: Path) -> None:
    """Boxes, features and trainings for each finder; what is done is written at once."""
    out.mkdir(parents=True, exist_ok=True)
    listed = json.loads((folder / LISTING).read_text())
    boxes: dict[str, dict[str, list[float]]] = {"none": {}, "saliency": listed["saliency"]}
    boxes["yolox"] = _animals(listed, photos, folder / YOLOX_FILE)
    (out / LISTING).write_text(json.dumps(listed))
    (out / "boxes.json").write_text(json.dumps(boxes))
    for finder in FINDERS:
        features = _features(listed, photos, boxes[finder])
        np.savez_compressed(out / f"features-{finder}.npz", **features)
        print(finder, {part: values.shape for part, values in features.items()}, flush=True)
    facts, logits = [], []
    with tempfile.TemporaryDirectory() as packs, ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn")) as pool:
        for finder in FINDERS:  # before the trainings look for them all at once
            for part in PARTS:
                pack_of(listed, part, photos, Path(packs), boxes[finder])
        jobs = [(finder, seed) for seed in SEEDS for finder in FINDERS]
        started = [pool.submit(train_once, listed, photos, Path(packs), boxes[job[0]], *job) for job in jobs]
        for done in as_completed(started):
            run = done.result()
            print(json.dumps(run["facts"]), flush=True)
            facts.append(run["facts"])
            logits.append(run["logits"])
            (out / "runs.json").write_text(json.dumps(facts, indent=1))
            np.savez_compressed(out / "logits.npz", *logits)


def train_once(
    listed: dict[str, Any], photos: Path, packs: Path, boxes: dict[str, list[float]], finder: str, seed: int
) -> dict[str, Any]:
    """One training; the logits of val and test."""
    from fieldmark.training.boxes import Crops
    from fieldmark.training.loop import train
    from fieldmark.training.networks import make_network, normalization
    from fieldmark.training.objectives import SingleLabel
    from fieldmark.training.photos import PhotoSource, PhotoTransform

    how, classes = recipe_of("better", CHOSEN["better"], seed), len(listed["classes"])
    network = make_network(how.network, how.weights, classes=classes, size=SIZE_PX, drop_path=how.drop_path, seed=seed)
    transform = PhotoTransform(SIZE_PX, *normalization(network), how.randaugment_ops, how.randaugment_magnitude)

    def source(part: str) -> PhotoSource:
        labels = np.array(listed[part]["labels"], dtype=np.int32)
        crops = Crops(how.eval_crop, how.crop_scale, how.flip, how.eval_share)
        return PhotoSource(pack_of(listed, part, photos, packs, boxes), np.arange(len(labels)), labels, None, crops)

    with tempfile.TemporaryDirectory() as scratch:
        parts = source("train"), source("val")
        trained = train(network, *parts, transform, how, objective=SingleLabel(classes), scratch=Path(scratch))
    network.load_state_dict(trained.weights)
    facts = {"finder": finder, "seed": seed, "val": trained.epochs[trained.best_epoch - 1]["val"]}
    both = [answer_of(network, source(part), transform) for part in ("val", "test")]
    return {"facts": facts, "logits": np.concatenate(both)}


def _animals(listed: dict[str, Any], photos: Path, weights: Path) -> dict[str, list[float]]:
    """The boxes that YOLOX-tiny is sure enough of, grown as any other."""
    from PIL import Image

    from fieldmark.features.crops import USUAL_MARGIN, grown
    from fieldmark.features.detectors import YoloxFinder
    from fieldmark.features.yolox import AnimalFinder

    finder, sure, boxes = AnimalFinder(str(weights)), YoloxFinder().sure, {}
    for path in (path for part in PARTS for path in listed[part]["photos"]):
        photo = Image.open(photos / path).convert("RGB")
        found = finder.best([photo])[0]
        box = grown(found.box, photo.width / photo.height, USUAL_MARGIN) if found.sure >= sure else None
        if box is not None:
            boxes[path] = list(box)
    print(f"yolox: {len(boxes)} boxes", flush=True)
    return boxes


def _features(listed: dict[str, Any], photos: Path, boxes: dict[str, list[float]]) -> dict[str, Any]:
    """Lite0's features of each part, with the crops of a finder."""
    from fieldmark.features.extraction import extract
    from fieldmark.features.settings import FeatureSettings
    from fieldmark.features.store import FeatureStore
    from fieldmark.models.supply.sources import load_backbone

    backbone = load_backbone(FeatureSettings(size=SIZE_PX))

    def read(path: str) -> bytes:
        return (photos / path).read_bytes()

    with tempfile.TemporaryDirectory() as scratch:
        store = FeatureStore(Path(scratch), backbone.digest)
        made = {
            part: extract(listed[part]["photos"], read, backbone, store, boxes=_photo_boxes(listed[part], boxes))
            for part in PARTS
        }
    return {part: values.astype(np.float16) for part, values in made.items()}


def _photo_boxes(part: dict[str, Any], boxes: dict[str, list[float]]) -> Any:
    from fieldmark.features.crops import Box, PhotoBoxes

    own = {path: Box(*boxes[path]) for path in part["photos"] if path in boxes}
    return PhotoBoxes("saliency" if own else "", own, len(part["photos"]))


def pack_of(listed: dict[str, Any], part: str, photos: Path, packs: Path, boxes: dict[str, list[float]]) -> Any:
    """The squares of a part, cut to boxes."""
    from fieldmark.training.packs import open_pack
    from fieldmark.training.photos import pack_side

    how = recipe_of("better", CHOSEN["better"], 0)
    side_px = pack_side(SIZE_PX, how.eval_crop, how.eval_share)
    shown = _photo_boxes(listed[part], boxes)
    return open_pack(listed[part]["photos"], lambda path: (photos / path).read_bytes(), side_px, "raw", packs, shown)


def score(folder: Path) -> None:
    """Scores everything on test, with intervals and paired differences."""
    from studies.evidence.results import write_result
    from studies.evidence.snake_scores import scored
    from studies.evidence.tables import write_tables

    result = scored(folder)
    if result is not None:
        print("written to", write_result("snake-photos", result, f"{COMMAND} --help"), write_tables())


if __name__ == "__main__":
    run_part(__doc__, {"list": list_photos, "train": train_all, "score": score})
