"""The feature store: arrays on disk by extractor and by the bytes they were computed from.

```
ROOT/<extractor digest>/<block>.keys.npy       16 bytes per photo; written last, so a block without it does not count
                        <block>.features.npy   float16
                        <block>.logits.npy     float32
```

Blocks are only ever added, each under a name of its own, so that several processes may share a store and an
interrupted one loses at most the block it was working on.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fieldmark.foundation.file_cache import cache_root
from fieldmark.foundation.files import appearing_file

Key = bytes
KEY_BYTES = 16


def content_key(data: bytes) -> Key:
    """The key of a photo or recording: a hash of its bytes, so that moving or renaming it changes nothing."""
    return hashlib.blake2b(data, digest_size=KEY_BYTES).digest()


def default_store() -> Path:
    """Where features are kept: below FIELDMARK_CACHE, or the user's cache folder."""
    return cache_root() / "features"


@dataclass(frozen=True, eq=False)
class StoredKeys:
    """Which photos a store holds, without the store: sorted keys, which processes of a machine can share."""

    keys: NDArray[np.bytes_]

    @classmethod
    def of(cls, keys: Iterable[Key]) -> StoredKeys:
        return cls(np.sort(np.array(list(keys), dtype=f"S{KEY_BYTES}")))

    def __contains__(self, key: object) -> bool:
        wanted = np.array(key, dtype=self.keys.dtype)[()]  # as the keys are held: without zeros at the end
        place = int(np.searchsorted(self.keys, wanted))
        return place < len(self.keys) and bool(self.keys[place] == wanted)


class FeatureStore:
    """The stored outputs of one extractor."""

    def __init__(self, root: Path, extractor_digest: str) -> None:
        self.folder = root / extractor_digest
        self._place: dict[Key, tuple[str, int]] = {}
        for path in sorted(self.folder.glob("*.keys.npy")):
            self._index(path.name.removesuffix(".keys.npy"), np.load(path))

    def __contains__(self, key: object) -> bool:
        return key in self._place

    def __len__(self) -> int:
        return len(self._place)

    def add(self, keys: Sequence[Key], outputs: Mapping[str, NDArray[Any]]) -> None:
        """Stores the outputs of a block of photos, one row per key in each array."""
        block = uuid.uuid4().hex
        stored = np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(len(keys), KEY_BYTES)
        for name, array in {**outputs, "keys": stored}.items():
            with appearing_file(self.folder / f"{block}.{name}.npy") as partial, partial.open("wb") as file:
                np.save(file, array)
        self._index(block, stored)

    def add_new(self, keys: Sequence[Key], outputs: Mapping[str, NDArray[Any]]) -> None:
        """Stores the outputs of those photos of a block that are not stored yet.

        Two workers of a cluster may have computed one photo that lies in two blocks.
        """
        rows = [row for row, key in enumerate(keys) if key not in self]
        if rows:
            all_new = len(rows) == len(keys)
            self.add(
                [keys[row] for row in rows], outputs if all_new else {name: one[rows] for name, one in outputs.items()}
            )

    def stored_keys(self) -> StoredKeys:
        """The keys of everything that is stored by now, to be sent elsewhere."""
        return StoredKeys.of(self._place)

    def get(self, keys: Iterable[Key], output: str = "features", dtype: DTypeLike | None = None) -> NDArray[Any]:
        """The stored rows of the given keys, in their order, as they are stored or as the type that is asked for.

        Raises:
            KeyError: For a key that is not there.
        """
        places = [self._place[key] for key in keys]
        by_block: dict[str, list[tuple[int, int]]] = {}
        for position, (block, row) in enumerate(places):
            by_block.setdefault(block, []).append((position, row))
        result: NDArray[Any] | None = None
        for block, pairs in by_block.items():
            rows = np.load(self.folder / f"{block}.{output}.npy", mmap_mode="r")
            if result is None:
                result = np.empty((len(places), *rows.shape[1:]), dtype=dtype or rows.dtype)
            positions, wanted = np.array(pairs).T
            result[positions] = rows[wanted]
        return result if result is not None else np.empty((0, 0), dtype=dtype or np.float16)

    def _index(self, block: str, keys: NDArray[np.uint8]) -> None:
        for row, key in enumerate(keys):
            self._place[key.tobytes()] = (block, row)
