"""Masks of photos: the whole and its parts, and another size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from PIL import Image

from fieldmark.masks.runlengths import Mask, MaskRow

WHOLE, MICROSCOPIC = "fruiting_body", "microscopic"
NEVER_PARTS = (WHOLE, MICROSCOPIC, "background")

__all__ = ["MICROSCOPIC", "NEVER_PARTS", "WHOLE", "Mask", "joined", "masks_by_part", "merged_last", "only_spores"]
__all__ += ["resized", "whole"]


def whole(parts: Mapping[str, Mask]) -> Mask:
    """The mask of the fruiting body: the merged one where there is one, else everything that is a part of it.

    Where nothing is a part of it (a photo of spores), it is empty. There must be a mask of something.
    """
    if WHOLE in parts:
        return parts[WHOLE]
    return joined(parts)


def joined(parts: Mapping[str, Mask]) -> Mask:
    """Everything that is a part; empty where nothing is. There must be a mask of something."""
    empty = np.zeros_like(next(iter(parts.values())))
    return np.asarray(np.logical_or.reduce([empty, *(mask for name, mask in parts.items() if name not in NEVER_PARTS)]))


def merged_last(rows: Sequence[MaskRow]) -> tuple[MaskRow, ...]:
    """The masks of a photo of FungiTastic, whose last row is the whole, whatever its label says.

    Its own code takes nothing else for the binary mask. Other rows called after the whole are dropped, since they are
    instances of it. The last row is a part as well where its label names one. Spores have no whole.
    """
    of_body = [row for row in rows if row.label != MICROSCOPIC]
    if not of_body:
        return tuple(rows)
    return (*(row for row in rows if row.label != WHOLE), of_body[-1]._replace(label=WHOLE))


def masks_by_part(rows: Sequence[MaskRow]) -> dict[str, Mask]:
    """The masks of a photo by part; several of one part become one."""
    parts: dict[str, Mask] = {}
    for row in rows:
        mask = row.mask()
        parts[row.label] = parts[row.label] | mask if row.label in parts else mask
    return parts


def only_spores(rows: Sequence[MaskRow]) -> bool:
    """Whether the masks of a photo show nothing but spores under a microscope, or there are none."""
    return {row.label for row in rows} <= {MICROSCOPIC}


def resized(mask: Mask, shape: tuple[int, ...]) -> Mask:
    """A mask at another size, each pixel from the nearest one."""
    if mask.shape == shape:
        return mask
    size = (shape[1], shape[0])
    return np.asarray(Image.fromarray(mask).resize(size, Image.Resampling.NEAREST), dtype=np.bool_)
