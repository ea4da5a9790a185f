"""Copies of photos across the parts of a fit, by the looks that were stored with their features.

Found are copies of whole photos: scaled, mirrored, turned by quarters, brighter or compressed anew. Those that were cut
are found by `fieldmark check --near-duplicates` alone. Photos that may be copies are opened once more and compared, as
the check does; few are, so that a fit hardly takes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fieldmark.features.store import content_key
from fieldmark.methods.base import media_of
from fieldmark.models.supply import Supply
from fieldmark.releases.duplicates import candidate_pairs
from fieldmark.releases.picture_alignment import GrayPicture, are_copies
from fieldmark.releases.picture_patches import UNDECIDED, hashes_of
from fieldmark.runs.provenance import LEAKAGE
from fieldmark.storage.addresses import recorded_place
from fieldmark.views.open_benchmark import SHOWN_FIRST, Opened
from fieldmark.work.blocks import all_cores, map_blocks

# So many photos are compared with what they may be copies of; a count that reaches them is a lower limit.
MOST_COMPARED = 300


def remarks_on_looks(opened: Opened, supply: Supply, data: str | Path) -> list[str]:
    """A sentence for val and for test where photos look like some that come before them; equal bytes do not count."""
    parts = [getattr(opened.view, name) for name in SHOWN_FIRST]
    looks = supply.main.looks if supply.main is not None and supply.main.medium.visual else []
    listing = f"fieldmark check {opened.benchmark.dataset} {recorded_place(data)} --near-duplicates"
    if any(rows is None for _, rows in looks):
        return [f"Photos that look the same were not sought, since features of an earlier version serve: {listing}."]
    if not looks:
        return []
    order = {
        one: place
        for place, part in reversed(list(enumerate(parts)))
        if part is not None
        for one in part.items["media_ids"].explode().drop_nulls()
    }
    ids = [one for media, _ in looks for one in media if one in order]
    rows = np.concatenate([rows[[one in order for one in media]] for media, rows in looks if rows is not None])
    place = np.array([order[one] for one in ids])

    def read(row: int) -> bytes:
        return media_of(parts[place[row]]).read(ids[row])

    found = copied(rows, place, read)
    least = "at least " if len(found) >= MOST_COMPARED else ""
    remarks = []
    for later in (2, 3):
        copies, photos = sum(place[row] == later for row in found), int((place == later).sum())
        if copies:
            remarks.append(
                f"{LEAKAGE}{least}{copies:,} of {photos:,} photos of {SHOWN_FIRST[later]} look like photos of parts "
                f"before it: scores on them are too high. All of them: {listing}."
            )
    return remarks


def copied(looks: NDArray[np.uint8], place: NDArray[np.integer], read: Callable[[int], bytes]) -> list[int]:
    """The rows of photos in val and test that are copies of photos in an earlier part, without those of equal bytes."""
    photo, _, hashes = hashes_of(looks.astype(np.float32), UNDECIDED)
    pairs = candidate_pairs(hashes, photo, np.ones(len(photo), dtype=np.bool_), place)
    later = sorted((one, other) if place[one] > place[other] else (other, one) for one, other in pairs)

    def compare(group: tuple[int, list[int]]) -> int | None:
        row, earlier = group
        data = read(row)
        others = (read(other) for other in earlier)
        one = GrayPicture.of(data)
        same = any(
            content_key(other) != content_key(data) and are_copies(one, GrayPicture.of(other)) for other in others
        )
        return row if same else None

    asked = islice(_by_first(later, place), MOST_COMPARED)
    return [row for row in map_blocks(compare, asked, all_cores("thread")) if row is not None]


def _by_first(pairs: list[tuple[int, int]], place: NDArray[np.integer]) -> Iterator[tuple[int, list[int]]]:
    for row, some in groupby((pair for pair in pairs if place[pair[0]] > 1), key=lambda pair: pair[0]):
        yield row, [other for _, other in some]
