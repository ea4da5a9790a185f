"""Opening the photos of a release: which cannot be read, and which look the same across its parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from fieldmark.datasets.checking import Problems
from fieldmark.datasets.duplicates import near_pairs, perceptual_hash
from fieldmark.progress import progress
from fieldmark.release import Release
from fieldmark.work import all_cores, blocks_of, map_blocks


def check_photos(
    release: Release, paths: Sequence[str], splits: Sequence[str], problems: Problems, *, near_duplicates: bool
) -> None:
    """Opens every photo; with `near_duplicates` also compares those of different splits.

    Args:
        release: The root.
        paths: The photos, all of which are there.
        splits: The split that each belongs to.
        problems: Where what is found is noted.
        near_duplicates: Whether photos are compared.
    """

    def hash_block(block: Sequence[str]) -> list[int | None]:
        return [_hash(release, path) for path in block]

    hashes: list[int | None] = []
    with progress("opening photos", len(paths)) as tick:
        for block in map_blocks(hash_block, blocks_of(paths, 64), all_cores("thread")):
            hashes += block
            tick(len(block))
    photos = pl.DataFrame({"path": paths, "split": splits, "hash": pl.Series(hashes, dtype=pl.UInt64)})
    broken = photos.filter(pl.col("hash").is_null())
    if len(broken):
        problems.add("error", "a photo cannot be read", broken["path"].to_list())
    if near_duplicates:
        pairs = _pairs(photos.drop_nulls("hash"))
        if pairs:
            problems.add("warning", "photos in two splits look the same", pairs)


def _hash(release: Release, path: str) -> int | None:
    try:
        return perceptual_hash(release.read(path))
    except (OSError, SyntaxError, ValueError):
        return None


def _pairs(photos: pl.DataFrame) -> list[str]:
    group = np.unique(photos["split"].to_numpy(), return_inverse=True)[1]
    paths = photos["path"].to_list()
    return [f"{paths[first]} and {paths[second]}" for first, second in near_pairs(photos["hash"].to_numpy(), group)]
