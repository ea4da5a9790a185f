"""Photos that look the same: a perceptual hash, and pairs that differ in few of its bits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fieldmark.foundation.picture_files import open_picture

HASH_SIDE = 8
BITS = HASH_SIDE * HASH_SIDE
# Beyond so many rows, hashes are cut into one band more, and into two more.
MANY_ROWS = (1 << 18, 1 << 23)


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
    hashes: NDArray[np.uint64], group: NDArray[np.integer], *, most_bits: int = 3, bands: int | None = None
) -> Iterator[tuple[int, int]]:
    """Pairs of rows of different groups whose hashes differ in at most `most_bits` bits, each pair once.

    Hashes that differ in at most three bits agree in at least one of four bands of 16 bits, in two of five of 13, or in
    three of six of 11, so only rows that share as much are compared: each with the next one, then with the one after
    that, all rows at once. The more rows, the more bits they have to share: with 16 bits, each of n rows would be
    compared with n / 16,384 others that have nothing to do with it.

    Args:
        hashes: One for each photo.
        group: Which of them are not compared with each other.
        most_bits: In how many bits a pair may differ.
        bands: Into how many bands hashes are cut, more than `most_bits`; chosen by the number of rows if not given.
    """
    if bands is None:
        bands = most_bits + 1 + sum(len(hashes) > rows for rows in MANY_ROWS)
    if most_bits >= bands:
        raise ValueError(f"hashes in {bands} bands agree in one of them if they differ in at most {bands - 1} bits")
    edges = [round(BITS * number / bands) for number in range(bands + 1)]
    masks = [sum(1 << bit for bit in range(*edge)) for edge in pairwise(edges)]
    shared = [np.uint64(sum(some)) for some in combinations(masks, bands - most_bits)]
    for number, mask in enumerate(shared):
        key = hashes & mask
        order = np.argsort(key, kind="stable")
        ends = np.searchsorted(key[order], key[order], side="right")
        places, step = np.arange(len(order)), 1
        while len(places := places[places + step < ends[places]]):
            first, second = order[places], order[places + step]
            differing = hashes[first] ^ hashes[second]
            near = (np.bitwise_count(differing) <= most_bits) & (group[first] != group[second])
            for earlier in shared[:number]:  # bands that both share have told of the pair already
                near &= (differing & earlier) != 0
            yield from zip(first[near].tolist(), second[near].tolist(), strict=True)
            step += 1
