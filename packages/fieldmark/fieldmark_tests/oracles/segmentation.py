"""Masks as lists of rows of pixels: FungiTastic, appendix A.5, equations 9 and 10, pixel by pixel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

Mask = list[list[bool]]
Parts = Mapping[str, Mask]

WHOLE = "fruiting_body"
SPORES = "microscopic"
BACKGROUND = "background"
NO_PARTS = (WHOLE, SPORES, BACKGROUND)


def empty_mask(height: int, width: int) -> Mask:
    """A mask without a pixel."""
    return [[False] * width for _ in range(height)]


def either(masks: Sequence[Mask], height: int, width: int) -> Mask:
    """Where any of the masks is."""
    return [[any(mask[y][x] for mask in masks) for x in range(width)] for y in range(height)]


def resized(mask: Mask, height: int, width: int) -> Mask:
    """Each pixel from the one whose area its center lies in."""
    rows, columns = len(mask), len(mask[0])
    return [
        [mask[int((y + 0.5) * rows / height)][int((x + 0.5) * columns / width)] for x in range(width)]
        for y in range(height)
    ]


def fruiting_body(parts: Parts) -> Mask:
    """The merged mask where there is one, else everything that is a part."""
    if WHOLE in parts:
        return parts[WHOLE]
    masks = [mask for name, mask in parts.items() if name not in NO_PARTS]
    return either(masks, len(masks[0]), len(masks[0][0]))


def pixels(answer: Mask, truth: Mask) -> tuple[int, int]:
    """The pixels in both masks, and in either."""
    both = union = 0
    for answered_row, true_row in zip(answer, truth, strict=True):
        for answered, true in zip(answered_row, true_row, strict=True):
            both += answered and true
            union += answered or true
    return both, union


def size_of(parts: Parts) -> tuple[int, int]:
    """Height and width of the masks of a photo."""
    mask = next(iter(parts.values()))
    return len(mask), len(mask[0])


def scored_photos(truth: Mapping[str, Parts]) -> list[str]:
    """The photos that show more than spores."""
    return [photo for photo, parts in truth.items() if set(parts) != {SPORES}]


def last_row_as_whole(truth: Mapping[str, Parts]) -> dict[str, dict[str, Mask]]:
    """The truth as the organizers' code reads a table of it: the last row of a photo is the whole, unless of spores."""
    found: dict[str, dict[str, Mask]] = {}
    for photo, parts in truth.items():
        found[photo] = dict(parts)
        names = [name for name in parts if name != SPORES]
        if names:
            found[photo][WHOLE] = parts[names[-1]]
    return found


def mean_iou(run: Mapping[str, Parts], truth: Mapping[str, Parts]) -> float:
    """Equation 9: the mean over photos of intersection over union; nothing against nothing counts 1."""
    values = []
    for photo in scored_photos(truth):
        height, width = size_of(truth[photo])
        both, union = pixels(resized(fruiting_body(run[photo]), height, width), fruiting_body(truth[photo]))
        values.append(both / union if union else 1.0)
    return sum(values) / len(values)


def mean_iou_of_parts(run: Mapping[str, Parts], truth: Mapping[str, Parts], *, background: bool) -> float:
    """Equation 10: the mean over parts of intersection over union, pixels pooled over all photos.

    A part that neither truth nor run shows anywhere is no part. The background is where no part is.
    """
    photos = scored_photos(truth)
    names = sorted({name for masks in (run, truth) for photo in photos for name in masks[photo]} - set(NO_PARTS))
    both = dict.fromkeys((BACKGROUND, *names), 0)
    union = dict.fromkeys((BACKGROUND, *names), 0)
    for photo in photos:
        height, width = size_of(truth[photo])
        answered = {name: resized(mask, height, width) for name, mask in run[photo].items()}
        for name, (answer, true) in _by_part(answered, truth[photo], names, height, width).items():
            counts = pixels(answer, true)
            both[name], union[name] = both[name] + counts[0], union[name] + counts[1]
    averaged = [name for name in union if union[name] and (background or name != BACKGROUND)]
    return sum(both[name] / union[name] for name in averaged) / len(averaged) if averaged else math.nan


def _by_part(run: Parts, truth: Parts, names: Sequence[str], height: int, width: int) -> dict[str, tuple[Mask, Mask]]:
    """The masks of each part in run and truth, and of the background."""
    nothing = empty_mask(height, width)
    pairs = {name: (run.get(name, nothing), truth.get(name, nothing)) for name in names}
    covered = [either([pair[side] for pair in pairs.values()], height, width) for side in (0, 1)]
    outside = [[[not pixel for pixel in row] for row in mask] for mask in covered]
    return {BACKGROUND: (outside[0], outside[1]), **pairs}
