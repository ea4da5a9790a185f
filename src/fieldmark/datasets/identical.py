"""Files with the same bytes: found by size first, then by their ends, and only then by all of their bytes.

Photos of equal size are many in a large release, those that also end alike are few: compressed pictures differ in
their last bytes. So nearly nothing is read twice, and copies are found for sure.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import polars as pl

from fieldmark.datasets.base import Dataset
from fieldmark.datasets.inputs import Files
from fieldmark.foundation.map_blocks import all_cores, blocks_of, map_blocks

TAIL_BYTES = 4096
CHUNK_BYTES = 1 << 20
BLOCK_FILES = 64


def identical_files(release: Files, paths: Iterable[str]) -> list[list[str]]:
    """Groups of at least two files with the same bytes, in the order of the paths; empty files are no copies.

    Args:
        release: Where they lie.
        paths: The files; those that are not there are passed over.
    """
    listed = list(dict.fromkeys(paths))
    sizes = release.sizes(listed)
    groups = _split([[path for path in listed if sizes.get(path)]], lambda path: sizes[path])
    for fingerprint in (_tail, _whole):
        alike = [path for group in groups for path in group]

        def of_block(block: Sequence[str], fingerprint: Fingerprint = fingerprint) -> list[bytes]:
            return [fingerprint(release, path, sizes[path]) for path in block]

        in_blocks = map_blocks(of_block, blocks_of(alike, BLOCK_FILES), all_cores("thread"))
        prints = dict(zip(alike, (one for block in in_blocks for one in block), strict=True))
        groups = _split(groups, prints.__getitem__)
    return groups


def observations_together(dataset: Dataset, observations: Iterable[str]) -> dict[str, str]:
    """Which observations share identical media, directly or over others.

    Returns:
        For each such observation the first one (by name) of those that belong together.
    """
    wanted = set(observations)
    media = dataset.media.filter(pl.col("observation_id").is_in(list(wanted)))
    owners: dict[str, list[str]] = {}
    for path, owner in media.select("path", "observation_id").iter_rows():
        owners.setdefault(path, []).append(owner)
    first_of: dict[str, str] = {}

    def first(one: str) -> str:
        while first_of.get(one, one) != one:
            one = first_of[one]
        return one

    for group in identical_files(dataset.release, owners):
        names = {first(owner) for path in group for owner in owners[path]}
        if len(names) > 1:
            first_of |= dict.fromkeys(names, min(names))
    return {one: first(one) for one in first_of}


Fingerprint = Callable[[Files, str, int], bytes]


def _split(groups: Sequence[Sequence[str]], key: Callable[[str], Hashable]) -> list[list[str]]:
    """Each group cut by a key; what stands alone afterwards is left out."""
    split: list[list[str]] = []
    for group in groups:
        by_key: dict[Hashable, list[str]] = {}
        for path in group:
            by_key.setdefault(key(path), []).append(path)
        split += [alike for alike in by_key.values() if len(alike) > 1]
    return split


def _tail(release: Files, path: str, size: int) -> bytes:
    with release.open(path) as file:
        file.seek(max(0, size - TAIL_BYTES), os.SEEK_SET)
        return hashlib.blake2b(file.read(), digest_size=16).digest()


def _whole(release: Files, path: str, size: int) -> bytes:
    hasher = hashlib.blake2b(digest_size=16)
    with release.open(path) as file:
        while chunk := file.read(CHUNK_BYTES):
            hasher.update(chunk)
    return hasher.digest()


def across(groups: Sequence[Sequence[str]], side_of: Mapping[str, object]) -> list[str]:
    """The groups that lie on several sides, as a reader would put them."""
    return [" and ".join(group) for group in groups if len({side_of[path] for path in group}) > 1]
