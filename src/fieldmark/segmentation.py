"""Masks beside true masks, as the counts of pixels that metrics read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import InputError
from fieldmark.metrics.segmentation import mask_counts, part_counts
from fieldmark.progress import progress
from fieldmark.runs.masks import NEVER_PARTS, Mask, read_masks, resized, whole
from fieldmark.tables import TRUTH
from fieldmark.views import Truth

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class MaskAnswers:
    """Counts of pixels for every photo of the truth: of the fruiting body, and of each part.

    Args:
        truths: The photos and the units they belong to.
        whole_counts: Pixels in truth and answer, and in truth or answer, of the fruiting body.
        part_names: The parts, the background first; empty where the run has none.
        part_table: The same two counts for each part, one row per photo.
    """

    truths: Truth
    whole_counts: tuple[Counts, Counts]
    part_names: tuple[str, ...]
    part_table: tuple[Counts, Counts]

    @property
    def n_classes(self) -> int:
        return max(len(self.part_names) - 1, 1)

    @property
    def intersection(self) -> Counts:
        return self.whole_counts[0]

    @property
    def union(self) -> Counts:
        return self.whole_counts[1]

    @cached_property
    def part_intersection(self) -> Counts:
        self._need_parts()
        return self.part_table[0]

    @cached_property
    def part_union(self) -> Counts:
        return self.part_table[1]

    @property
    def parts(self) -> tuple[str, ...]:
        self._need_parts()
        return self.part_names

    def _need_parts(self) -> None:
        if not self.part_names:
            raise InputError("the masks", found="no parts", expected="one mask per part in truth and run")


def compare_masks(run: Path, truth: Path) -> MaskAnswers:
    """Counts pixels, photo by photo; masks of the run are brought to the size of the true ones.

    Photos in which the truth shows nothing but spores are left out. The independent unit is the observation, which the
    name of a photo ends with (`0-3032614317.JPG`), or the photo where it does not.

    Raises:
        InputError: When a photo of the truth has no mask in the run.
    """
    true, answered = read_masks(truth), read_masks(run)
    known = set(answered.photos)
    missing = [photo for photo in true.photos if photo not in known]
    if missing:
        found = f"no mask for {len(missing)} of {len(true.photos)} photos ({', '.join(missing[:3])}, ...)"
        raise InputError(run, found=found, expected="a mask for each")
    parts = [name for name in true.parts if name not in NEVER_PARTS]
    with_parts = bool(parts) and any(name in answered.parts for name in parts)
    photos: list[str] = []
    whole_counts: list[tuple[int, int]] = []
    tables: list[tuple[Counts, Counts]] = []
    with progress("comparing masks", len(true.photos)) as tick:
        for photo in true.photos:
            tick(1)
            truth_parts = true.open(photo)
            if set(truth_parts) <= {"microscopic"}:
                continue
            photos.append(photo)
            body = whole(truth_parts)
            given = {name: resized(mask, body.shape) for name, mask in answered.open(photo).items()}
            counts = mask_counts(body, whole(given))
            whole_counts.append((int(counts.intersection), int(counts.union)))
            if with_parts:
                pair = (_stack(truth_parts, parts, body.shape), _stack(given, parts, body.shape))
                tables.append(tuple(np.asarray(count, dtype=np.int64) for count in part_counts(*pair)))  # type: ignore[arg-type]
    return MaskAnswers(
        truths=Truth(TRUTH.empty(), tuple(photos), tuple(photo.rpartition("-")[2] for photo in photos)),
        whole_counts=_columns(whole_counts),
        part_names=("background", *parts) if with_parts else (),
        part_table=(np.array([t[0] for t in tables]), np.array([t[1] for t in tables])),
    )


def _columns(counts: list[tuple[int, int]]) -> tuple[Counts, Counts]:
    table = np.array(counts, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _stack(masks: dict[str, Mask], parts: list[str], shape: tuple[int, ...]) -> Mask:
    empty = np.zeros(shape, dtype=np.bool_)
    return np.stack([masks.get(name, empty) for name in parts])
