"""Opening the photos of a release: which cannot be read, and which look the same across its parts."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from fieldmark.datasets.checking import Problems
from fieldmark.datasets.duplicates import near_pairs, perceptual_hash
from fieldmark.datasets.identical import across, identical_files
from fieldmark.foundation.map_blocks import all_cores, map_blocks
from fieldmark.foundation.numbering import numbered_names
from fieldmark.foundation.progress import progress
from fieldmark.release import Release

BLOCK_PHOTOS = 64


def check_photos(release: Release, paths: Sequence[str] | pl.Series, problems: Problems) -> pl.DataFrame:
    """Opens every photo, and notes those that cannot be read.

    Args:
        release: The root.
        paths: The photos, all of which are there.
        problems: Where what is found is noted.

    Returns:
        `path` and perceptual `hash` of those that can be read.
    """

    column = pl.Series("path", paths, dtype=pl.String)

    def hash_block(start: int) -> list[int | None]:
        return [_hash(data) for data in release.read_many(column.slice(start, BLOCK_PHOTOS).to_list())]

    hashes, broken = array("Q"), list[int]()
    with progress("opening photos", len(column)) as tick:
        for block in map_blocks(hash_block, range(0, len(column), BLOCK_PHOTOS), all_cores("thread")):
            broken += [len(hashes) + place for place, number in enumerate(block) if number is None]
            hashes.extend(number or 0 for number in block)
            tick(len(block))
    photos = pl.DataFrame({"path": column, "hash": np.frombuffer(hashes, dtype=np.uint64)})
    if broken:
        problems.add("error", "a photo cannot be read", column.gather(broken).to_list())
        photos = photos.filter(~pl.int_range(pl.len()).is_in(broken))
    return photos


def check_split_photos(
    release: Release, split_of: Mapping[str, str], problems: Problems, *, near_duplicates: bool
) -> None:
    """Opens the photos of a release with splits of its own, and compares those of different splits.

    Args:
        release: The root.
        split_of: The split that each photo belongs to, by its path.
        problems: Where what is found is noted.
        near_duplicates: Whether photos that only look the same are sought as well.
    """
    photos = check_photos(release, list(split_of), problems)
    check_copies(release, split_of, problems, "photo")
    if near_duplicates:
        pairs = alike_pairs(photos, [split_of[path] for path in photos["path"]])
        if pairs:
            problems.add(
                "warning", "photos in two splits look the same", [f"{one} and {other}" for one, other in pairs]
            )


def check_copies(release: Release, split_of: Mapping[str, str], problems: Problems, kind: str) -> list[list[str]]:
    """Notes files with the same bytes in two parts.

    Returns:
        All groups of files with the same bytes, wherever they lie.
    """
    groups = identical_files(release, split_of)
    note_copies(groups, split_of, problems, kind)
    return groups


def note_copies(groups: Sequence[Sequence[str]], split_of: Mapping[str, str], problems: Problems, kind: str) -> None:
    """Notes which groups of files with the same bytes lie in two parts."""
    leaking = across(groups, split_of)
    if leaking:
        problems.add("error", f"the same {kind} is in two parts", leaking)


def alike_pairs(photos: pl.DataFrame, sides: Sequence[str] | pl.Series) -> list[tuple[str, str]]:
    """Photos (`path`, `hash`) of different sides that look the same."""
    group = numbered_names(pl.Series(sides, dtype=pl.String))[1]
    paths = photos["path"]
    return [(paths[first], paths[second]) for first, second in sorted(near_pairs(photos["hash"].to_numpy(), group))]


def _hash(data: bytes) -> int | None:
    try:
        return perceptual_hash(data)
    except (OSError, SyntaxError, ValueError):
        return None
