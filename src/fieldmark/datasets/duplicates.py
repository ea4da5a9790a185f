"""Photos that look the same: a perceptual hash, and pairs that differ in few of its bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fieldmark.foundation.picture_files import open_picture

HASH_SIDE = 8
BITS = HASH_SIDE * HASH_SIDE
BANDS = 4


def perceptual_hash(data: bytes) -> int:
    """A 64-bit difference hash: whether each of 8 x 8 cells is darker than its right neighbor.

    It survives resizing, recompression and small changes of light; mirrored or cropped copies are not found.
    """
    with open_picture(data) as photo:
        photo.draft("L", (4 * HASH_SIDE, 4 * HASH_SIDE))
        small = photo.convert("L").resize((HASH_SIDE + 1, HASH_SIDE), Image.Resampling.BOX)
    gray = np.asarray(small, dtype=np.int16)
    return int.from_bytes(np.packbits(gray[:, :-1] < gray[:, 1:]).tobytes(), "big")


def near_pairs(
    hashes: NDArray[np.uint64], group: NDArray[np.integer], *, most_bits: int = 3
) -> Iterator[tuple[int, int]]:
    """Pairs of rows of different groups whose hashes differ in at most `most_bits` bits, each pair once.

    Hashes that differ in at most three bits agree in at least one of four bands of 16 bits, so only rows that share a
    band are compared: each with the next one of the same band, then with the one after that, all rows at once.
    """
    if most_bits >= BANDS:
        raise ValueError(f"at most {BANDS - 1} bits can be told apart with {BANDS} bands")
    width = BITS // BANDS
    mask = np.uint64(2**width - 1)
    for band in range(BANDS):
        key = (hashes >> np.uint64(band * width)) & mask
        order = np.argsort(key, kind="stable")
        ends = np.searchsorted(key[order], key[order], side="right")
        places, step = np.arange(len(order)), 1
        while len(places := places[places + step < ends[places]]):
            first, second = order[places], order[places + step]
            differing = hashes[first] ^ hashes[second]
            near = (np.bitwise_count(differing) <= most_bits) & (group[first] != group[second])
            for earlier in range(band):  # a band that both share has told of the pair already
                near &= (differing >> np.uint64(earlier * width)) & mask != 0
            yield from zip(first[near].tolist(), second[near].tolist(), strict=True)
            step += 1
