"""Photos that may be copies of each other: those that share patches, found without comparing all with all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from fieldmark.releases.picture_patches import BITS

# Up to so many differing bits a patch may be the same one.
MOST_BITS = 10
# Into how many bands hashes are cut, and in how many of them two must agree to be compared, by the number of hashes:
# the more there are, the more bits they have to share.
BANDS = ((1 << 17, 4, 1), (1 << 22, 6, 2), (1 << 62, 5, 2))
# So many patches a photo shares with its copy; the whole counts as much. Two are shared by chance by one pair of photos
# in 5,000: where there are many hashes it takes three, which 98 in 100 copies that keep half of a photo have.
FEW_HASHES, SHARED, SHARED_OF_MANY = 1 << 17, 2, 3
# The row of a hash stands beside the bits of its bands, of which there are at most 26.
ROW_BITS = 32
# A hash is compared with so many others that share its bands, a photo with so many others that share most with it.
MOST_COMPARED, MOST_CANDIDATES = 32, 16


def near_pairs(hashes: NDArray[np.uint64], *, bands: tuple[int, int] | None = None) -> NDArray[np.int64]:
    """Pairs of rows whose hashes differ in at most ten bits and agree in some bands, each pair once.

    With four bands of 16 bits, of hashes that differ in five bits seven in ten agree in one of them; a copy shares many
    patches. Rows that agree are compared each with the next one, then with the one after that, all at once; where
    very many agree, as patches of a frame or of a printed scale do, each with the next 32 alone.

    Args:
        hashes: One for each patch.
        bands: How many bands there are, and how many must be the same; by the number of rows if not given.

    Returns:
        Two columns of rows, the smaller first.
    """
    number, same = bands or next(choice for most, *choice in BANDS if len(hashes) <= most)
    edges = pairwise(round(BITS * band / number) for band in range(number + 1))
    found = [np.empty(0, dtype=np.int64)]
    for some in combinations(edges, same):
        found += _near(hashes, some)
    codes = np.unique(np.concatenate(found))  # far sooner than of rows of two
    return np.stack(np.divmod(codes, max(len(hashes), 1)), axis=1)


def _near(hashes: NDArray[np.uint64], bands: Sequence[tuple[int, int]]) -> Iterator[NDArray[np.int64]]:
    """Pairs of rows that agree in some bands and differ in few bits, each as one number.

    The bits of the bands and the row stand in one number: plain numbers are sorted far sooner than their places.
    """
    key = np.zeros(len(hashes), dtype=np.uint64)
    for start, end in bands:
        key <<= np.uint64(end - start)
        key |= hashes >> np.uint64(start) & np.uint64((1 << (end - start)) - 1)
    key <<= np.uint64(ROW_BITS)
    key |= np.arange(len(hashes), dtype=np.uint64)
    key.sort()
    order = (key & np.uint64((1 << ROW_BITS) - 1)).astype(np.int64)
    key >>= np.uint64(ROW_BITS)
    ends = np.append(np.flatnonzero(key[1:] != key[:-1]) + 1, len(key))
    ends = np.repeat(ends, np.diff(ends, prepend=0))
    places = np.arange(len(order))
    for step in range(1, MOST_COMPARED + 1):
        places = places[places + step < ends[places]]
        if not len(places):
            return
        first, second = order[places], order[places + step]
        near = np.bitwise_count(hashes[first] ^ hashes[second]) <= MOST_BITS
        first, second = first[near], second[near]
        yield np.minimum(first, second) * len(hashes) + np.maximum(first, second)


def candidate_pairs(
    hashes: NDArray[np.uint64], photo: NDArray[np.integer], whole: NDArray[np.bool_], side: NDArray[np.integer]
) -> list[tuple[int, int]]:
    """Photos of different sides that may be copies of each other, each pair once.

    Args:
        hashes: One for each patch.
        photo: Which photo each patch is of.
        whole: Which of them are a whole photo.
        side: Which photos are not compared with each other.
    """
    rows = near_pairs(hashes)
    first, second = photo[rows[:, 0]].astype(np.int64), photo[rows[:, 1]].astype(np.int64)
    apart = side[first] != side[second]
    rows, first, second = rows[apart], first[apart], second[apart]
    photos = len(side)
    code, place = np.unique(np.minimum(first, second) * photos + np.maximum(first, second), return_inverse=True)
    least = SHARED if len(hashes) <= FEW_HASHES else SHARED_OF_MANY
    shared = np.bincount(place, np.where(whole[rows].all(axis=1), least, 1), minlength=len(code))
    code, shared = code[shared >= least], shared[shared >= least]
    pairs = np.stack([code // photos, code % photos], axis=1)[np.argsort(-shared, kind="stable")]
    kept = np.zeros(len(pairs), dtype=np.bool_)
    for column in range(2):
        kept |= _earlier(pairs[:, column]) < MOST_CANDIDATES
    return sorted((one, other) for one, other in pairs[kept].tolist())


def _earlier(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often each value stands before its place.

    >>> _earlier(np.array([7, 5, 7, 7]))
    array([0, 0, 1, 2])
    """
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.diff(values[order], prepend=-1))
    counted = np.empty(len(values), dtype=np.int64)
    counted[order] = np.arange(len(values)) - np.repeat(starts, np.diff(starts, append=len(values)))
    return counted
