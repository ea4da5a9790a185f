"""The masks of FungiTastic-Mini.

```
ROOT/
  masks/FungiTastic-Mini-{Train,Validation,Test}Masks.parquet    (also found directly in ROOT)
```

Quirks:

- One row per part, or per piece of one (`file_name, label, width, height, rle`; see `masks.mask_tables`). Parts
  may overlap, and may be drawn in several rows: several caps on one photo.
- The last row of a photo is the whole, merged by the organizers; their own code takes nothing else for the binary
  mask, whatever its label says. In the real release this is believed to be `fruiting_body` throughout.
- `label` may be `microscopic`: the photo shows spores, and no fruiting body.
- The size is that of the full photo, not that of the smaller copies. Not all photos have masks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fieldmark.masks.mask_tables import MaskTable, read_mask_table
from fieldmark.masks.parts import MICROSCOPIC, Mask, merged_last
from fieldmark.masks.runlengths import MaskRow, decode_runs, without_box
from fieldmark.storage.release import Release
from fieldmark.tables.inputs import KeyedBy, Layer, MaskLayer

MASK_FILES = ("TrainMasks", "ValidationMasks", "TestMasks")


def decode_rle(numbers: Sequence[int], height: int, width: int) -> Mask:
    """The mask behind run lengths that may end with the four numbers of a box.

    >>> decode_rle([1, 2, 3, 1, 0, 2, 1], height=2, width=3).astype(int)
    array([[0, 1, 1],
           [0, 0, 0]])

    Raises:
        ValueError: When the runs do not fit into the picture.
    """
    return decode_runs(without_box(np.asarray(numbers, dtype=np.int64), height * width), height, width)


def mask_files(release: Release) -> list[str]:
    """The mask files that are there, in `masks/` or in the root."""
    names = [f"{folder}FungiTastic-Mini-{name}.parquet" for name in MASK_FILES for folder in ("masks/", "")]
    return [name for name in names if release.exists(name)]


def read_masks(release: Release, path: str) -> MaskTable:
    """The rows of one of the files."""
    return read_mask_table(release.read(path), release.where(path))


def instance_counts(table: MaskTable) -> Counter[str]:
    """How many instances there are of each part: all rows but the merged one that ends each photo."""
    last = dict(zip(table.file_names, range(len(table)), strict=True))
    alone = {name for name, number in Counter(table.file_names).items() if number == 1}
    return Counter(
        label
        for row, (name, label) in enumerate(zip(table.file_names, table.labels, strict=True))
        if row != last[name] or name in alone
    )


@dataclass(frozen=True)
class PhotoMasks(MaskLayer):
    """The masks of a photo by part, and the whole as the organizers merged it."""

    release: Release

    @cached_property
    def _tables(self) -> list[MaskTable]:
        return [read_masks(self.release, path) for path in mask_files(self.release)]

    @cached_property
    def _rows(self) -> dict[str, list[tuple[MaskTable, int]]]:
        by_photo: dict[str, list[tuple[MaskTable, int]]] = {}
        for table in self._tables:
            for row, name in enumerate(table.file_names):
                by_photo.setdefault(name, []).append((table, row))
        return by_photo

    def rows(self, ids: Sequence[str]) -> list[tuple[MaskRow, ...]]:
        return [merged_last(self.instances(media_id)) for media_id in ids]

    def instances(self, media_id: str) -> tuple[MaskRow, ...]:
        """Every row of a photo by itself, as the release lists them; the last one is the whole."""
        return tuple(table.open(row, complete=False) for table, row in self._rows.get(media_id, []))

    def names(self, ids: Sequence[str]) -> set[str]:
        """The parts that are drawn in some photos, without decoding a mask."""
        return {table.labels[row] for media_id in ids for table, row in self._rows.get(media_id, [])}


@dataclass(frozen=True)
class Microscopic(Layer):
    """Whether a photo shows spores under a microscope; None where it has no mask."""

    release: Release
    input: ClassVar[str] = ""
    by: ClassVar[KeyedBy] = "media_id"

    @cached_property
    def _flags(self) -> dict[str, bool]:
        flags: dict[str, bool] = {}
        for path in mask_files(self.release):
            table = read_masks(self.release, path)
            for name, label in zip(table.file_names, table.labels, strict=True):
                flags[name] = flags.get(name, False) or label == MICROSCOPIC
        return flags

    def read(self, ids: Sequence[str]) -> list[bool | None]:
        return [self._flags.get(media_id) for media_id in ids]
