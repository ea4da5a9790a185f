"""Trains a detector on the boxes of a release, and scores it on those of val."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.features.crops import DETECTOR_FILE, box_as_drawn
from fieldmark.features.photos import PhotoError, upright_size
from fieldmark.methods.base import media_of
from fieldmark.metrics.instances import average_precision, box_overlaps, match_instances
from fieldmark.registry import require
from fieldmark.releases.photo_boxes import ShareBox
from fieldmark.settings import configure
from fieldmark.storage.files import appearing_file
from fieldmark.views.open_benchmark import open_benchmark, open_release
from fieldmark.views.parts import Part

Shares = NDArray[np.float64]


@dataclass(frozen=True)
class TrainedDetector:
    """A detector that was trained.

    Args:
        file: Where it lies.
        photos: From how many photos with boxes it learned.
        val_photos: On how many it was scored.
        ap_50: Average precision on val at an overlap of one half; None where val has no boxes.
    """

    file: Path
    photos: int
    val_photos: int
    ap_50: float | None


def detector(
    benchmark: str, data: str | Path, out: str | Path, *, settings: Mapping[str, Any] | None = None, seed: int = 0
) -> TrainedDetector:
    """Trains Faster R-CNN on the boxes of train and writes its file.

    Args:
        benchmark: The benchmark whose train it learns from.
        data: The root of the release.
        out: The file, ending in `.detector`.
        settings: See `training.detection.DetectorRecipe`.
        seed: The seed of parts that are drawn, and of the training.

    Raises:
        MisuseError: When the release has no boxes, or a setting is wrong.
    """
    file = Path(out)
    if file.suffix != DETECTOR_FILE:
        raise MisuseError(f"{out}: expected a file ending in {DETECTOR_FILE}, such as snakes{DETECTOR_FILE}.")
    module: Any = require("fieldmark.training.detection", "Training a detector")
    recipe = configure({"seed": seed, **(settings or {})}, module.DetectorRecipe)[0]
    declared = BENCHMARKS[benchmark]
    opened = open_benchmark(declared, open_release(declared, data), seed=seed)
    ids, boxes = drawn_boxes(opened.view.train)
    if not ids:
        raise MisuseError(f"{data} has no boxes of its training photos: put them into boxes.csv (docs/cropping.md).")
    packs: Any = require("fieldmark.training.packs", "Training a detector")
    pack = packs.open_pack(ids, media_of(opened.view.train).read, recipe.size, "raw", packs.default_packs())
    weights = module.train_detector(lambda rows: pack.squares(rows)[0], boxes, recipe)
    about = {"size": recipe.size, "sure": recipe.sure, "recipe": asdict(recipe), "photos": len(ids)}
    about |= {"benchmark": declared.name, "version": declared.version, "data_digest": opened.dataset.digest}
    finders: Any = require("fieldmark.features.detectors", "Training a detector")
    tensors: Any = require("safetensors.torch", "Training a detector")
    with appearing_file(file) as partial:
        tensors.save_file(weights, partial, {finders.DETECTOR: json.dumps(about)})
    val = opened.view.val
    asked, truth = drawn_boxes(val) if val is not None else ([], np.zeros((0, 4)))
    scored = None
    if val is not None and asked:
        scored = _precision(finders.TrainedFinder.open(file), [media_of(val).read(one) for one in asked], truth)
    return TrainedDetector(file, len(ids), len(asked), scored)


def drawn_boxes(part: Part) -> tuple[list[str], Shares]:
    """The photos of a part that have a box and can be read, and their boxes as shares of their sides."""
    if "boxes" not in part.layers:
        return [], np.zeros((0, 4))
    media = media_of(part)
    ids = part.items["media_ids"].explode().drop_nulls().unique(maintain_order=True).to_list()
    kept, boxes = [], []
    for one, drawn in zip(ids, part.layers["boxes"].read(ids), strict=True):
        if drawn is None:
            continue
        try:
            size = upright_size(media.read(one))
        except PhotoError:
            continue
        on_photo = drawn.on(*size) if isinstance(drawn, ShareBox) else drawn
        box = box_as_drawn(on_photo, size, media.where(one))
        if box.shortest > 0:
            kept.append(one)
            boxes.append(box)
    return kept, np.array(boxes, dtype=np.float64).reshape(-1, 4)


def _precision(finder: Any, photos: list[bytes], truth: Shares) -> float:
    """Average precision at an overlap of one half, of the surest box of each photo."""
    images, alone = [], np.zeros(1, dtype=np.bool_)
    for data, box in zip(photos, truth, strict=True):
        found = finder.look(data)[:4].astype(np.float64)
        said = found[None] if found[2] > 0 else np.zeros((0, 4))
        sides = [np.concatenate([one[:, :2], one[:, 2:] - one[:, :2]], axis=1) for one in (said, box[None])]
        images.append(match_instances(box_overlaps(sides[0], sides[1], alone), np.ones(len(said)), alone))
    return average_precision([images]).ap_50
