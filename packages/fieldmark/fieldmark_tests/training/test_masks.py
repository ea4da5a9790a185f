from __future__ import annotations

import numpy as np

from fieldmark.masks.runlengths import MaskRow
from fieldmark.runs.masks import Masks
from fieldmark.training.boxes import random_boxes, resample
from fieldmark.training.draws import Draws, example_seeds
from fieldmark.training.masks import class_mask, mask_pack, resample_nearest


def test_the_smaller_of_two_parts_that_overlap_is_on_top():
    stem, ring = np.ones((4, 4), dtype=bool), np.zeros((4, 4), dtype=bool)
    ring[1] = True
    drawn = class_mask({"stem": stem, "ring": ring}, ["ring", "stem"], 4)
    assert drawn.tolist() == [[3] * 4, [2] * 4, [3] * 4, [3] * 4]


def test_a_mask_is_cropped_and_mirrored_with_its_photo():
    import torch

    rng = np.random.default_rng(0)
    masks = np.kron(rng.integers(0, 2, (16, 4, 4)), np.ones((12, 12))).astype(np.uint8)
    draws = Draws(example_seeds(0, 0, np.arange(16)))
    boxes = random_boxes(np.full(16, 1.3, dtype=np.float32), 0.4, True, draws)
    assert (boxes[:, 0] > boxes[:, 2]).any()  # some are mirrored
    photos = torch.from_numpy(255 * masks)[:, None].expand(-1, 3, -1, -1)
    shown = resample(photos, torch.from_numpy(boxes), 24)[:, 0].numpy() > 127
    assert (shown == resample_nearest(masks, boxes, 24).astype(bool)).mean() > 0.97  # but for pixels on an edge


def test_a_pack_of_masks_is_made_once_and_anew_for_other_masks(tmp_path):
    def masks(value):
        return Masks(("a",), ((MaskRow.of("cap", np.full((3, 5), value)),),))

    first = mask_pack(masks(True), ["cap"], 8, tmp_path)
    assert first.shape == (1, 8, 8) and (first == 2).all()
    written = next(tmp_path.glob("*/masks.npy")).stat().st_mtime_ns
    mask_pack(masks(True), ["cap"], 8, tmp_path)
    assert next(tmp_path.glob("*/masks.npy")).stat().st_mtime_ns == written
    assert (mask_pack(masks(False), ["cap"], 8, tmp_path) == 0).all()
    assert len(list(tmp_path.glob("*/masks.npy"))) == 2
