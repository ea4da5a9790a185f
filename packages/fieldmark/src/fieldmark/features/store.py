"""The feature store: arrays on disk by extractor and by the bytes they were computed from.

```
ROOT/<extractor digest>/<block>.keys.npy       16 bytes per photo; written last, so a block without it does not count
                        <block>.features.npy   float16
                        <block>.logits.npy     float32
                        <block>.looks.npy      16 x 16 bytes per photo, by which copies are found; not of old blocks
                        index.npz              where the keys of many blocks lie (`key_index`); may be missing
                        <content>.remark       what is to be said of a recording that was cut, wherever it is used
```

Blocks are only ever added, each under a name of its own, so that several processes may share a store and an
interrupted one loses at most the block it was working on. A long extraction writes larger blocks the further it is.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fieldmark.features.key_index import KEY_BYTES, Key, KeyIndex, as_bytes, open_index
from fieldmark.storage.file_cache import cache_root
from fieldmark.storage.files import appearing_file
from fieldmark.work.large_arrays import array_in_file, fits_in_memory

__all__ = ["KEY_BYTES", "FeatureStore", "Key", "content_key", "default_store"]

# A block of a long extraction: at least so many photos, a share of those written before, and at most so many.
LEAST_IN_BLOCK, SHARE_IN_BLOCK, MOST_IN_BLOCK = 64, 1 / 16, 512
# What came since the store was opened is looked up in a dictionary up to so many keys, which take 200 bytes each there.
MOST_ADDED = 1 << 13
# What is read at a time for a result that lies in a file; rows may come from many blocks.
BYTES_READ_AT_ONCE = 1 << 24


def content_key(data: bytes) -> Key:
    """The key of a photo or recording: a hash of its bytes, so that moving or renaming it changes nothing."""
    return hashlib.blake2b(data, digest_size=KEY_BYTES).digest()


def default_store() -> Path:
    """Where features are kept: below FIELDMARK_CACHE, or the user's cache folder."""
    return cache_root() / "features"


def _check_rows(keys: Sequence[Key], outputs: Mapping[str, NDArray[Any]]) -> None:
    """Stops where rows would go to the wrong keys."""
    for name, array in outputs.items():
        if len(array) != len(keys):
            raise ValueError(f"{len(array)} rows of {name} for {len(keys)} keys")


class FeatureStore:
    """The stored outputs of one extractor."""

    def __init__(self, root: Path, extractor_digest: str) -> None:
        self.folder = root / extractor_digest
        self._blocks, self._index = open_index(self.folder)
        self._added: dict[Key, tuple[int, int]] = {}  # block and row of what came since
        self._waiting: dict[Key, None] | None = None  # what is gathered and not written yet: each key once, in order
        self._gathered: list[Mapping[str, NDArray[Any]]] = []
        self._written = 0

    def __contains__(self, key: object) -> bool:
        return key in self._added or key in self._index or (self._waiting is not None and key in self._waiting)

    def __len__(self) -> int:
        return len(self._index) + len(self._added) + len(self._waiting or {})

    def add(self, keys: Sequence[Key], outputs: Mapping[str, NDArray[Any]]) -> None:
        """Stores the outputs of a block of photos, one row per key in each array."""
        _check_rows(keys, outputs)
        block = uuid.uuid4().hex
        for name, array in {**outputs, "keys": as_bytes(keys)}.items():
            with appearing_file(self.folder / f"{block}.{name}.npy") as partial, partial.open("wb") as file:
                np.save(file, array)
        self._blocks.append(block)
        new = ((key, row) for row, key in enumerate(keys) if key not in self._index)
        self._added |= {key: (len(self._blocks) - 1, row) for key, row in new}
        if len(self._added) > max(MOST_ADDED, len(self._index) // 4):
            # In this order: threads that read photos ask what is stored meanwhile.
            self._index = self._joined_index()
            self._added = {}

    def add_new(self, keys: Sequence[Key], outputs: Mapping[str, NDArray[Any]]) -> None:
        """Stores the outputs of those photos of a block that are not stored yet, each once.

        Two workers of a cluster may have computed one photo that lies in two blocks.
        """
        _check_rows(keys, outputs)
        row_of: dict[Key, int] = {}
        for row, key in enumerate(keys):
            if key not in self:
                row_of.setdefault(key, row)
        rows = list(row_of.values())
        if rows:
            all_new = len(rows) == len(keys)
            self._keep(list(row_of), outputs if all_new else {name: one[rows] for name, one in outputs.items()})

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """Writes what `add_new` is given meanwhile in larger blocks, and the rest at the end, whatever ends it.

        A process that is killed loses the block it was gathering: a sixteenth of what it had stored, or less.
        """
        if self._waiting is not None:  # somebody gathers already
            yield
            return
        self._waiting, self._written = {}, 0
        try:
            yield
        finally:
            try:
                self._write_waiting()
            finally:
                self._waiting, self._gathered = None, []

    def _keep(self, keys: Sequence[Key], outputs: Mapping[str, NDArray[Any]]) -> None:
        if self._waiting is None:
            self.add(keys, outputs)
            return
        self._waiting |= dict.fromkeys(keys)
        self._gathered.append(outputs)
        if len(self._waiting) >= min(max(LEAST_IN_BLOCK, SHARE_IN_BLOCK * self._written), MOST_IN_BLOCK):
            self._write_waiting()

    def _write_waiting(self) -> None:
        if not self._waiting:
            return
        keys, gathered = list(self._waiting), self._gathered
        self.add(keys, {name: np.concatenate([outputs[name] for outputs in gathered]) for name in gathered[0]})
        self._written += len(keys)
        self._waiting.clear()
        self._gathered = []

    def remark(self, content: Key, sentence: str) -> None:
        """Keeps what is to be said of a recording, so that who finds its features stored can say it too."""
        with appearing_file(self._remark_file(content)) as partial:
            partial.write_text(sentence, encoding="utf-8")

    def remark_on(self, content: Key) -> str | None:
        """What was kept about a recording, None where there is nothing to say."""
        try:
            return self._remark_file(content).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def _remark_file(self, content: Key) -> Path:
        return self.folder / f"{content.hex()}.remark"

    def stored_keys(self) -> KeyIndex:
        """The keys of everything that is stored by now, to be sent elsewhere."""
        self._write_waiting()
        return self._joined_index()

    def _joined_index(self) -> KeyIndex:
        places = np.array(list(self._added.values()), dtype=np.uint32).reshape(-1, 2)
        return self._index.joined(KeyIndex.of(as_bytes(list(self._added)), places[:, 0], places[:, 1]))

    def get(
        self, keys: Iterable[Key] | NDArray[np.uint8], output: str = "features", dtype: DTypeLike | None = None
    ) -> NDArray[Any]:
        """The stored rows of the given keys, in their order, as they are stored or as the type that is asked for.

        Keys may be given as rows of bytes, which take less memory.

        What does not fit into memory (`large_arrays.fits_in_memory`) lies in a file and is read as it is needed.

        Raises:
            KeyError: For a key that is not there.
        """
        self._write_waiting()
        places = self._places(keys if isinstance(keys, np.ndarray) else as_bytes(list(keys)))
        if not len(places):
            return np.empty((0, 0), dtype=dtype or np.float16)
        example = self._rows(places[:1], output, dtype)
        if fits_in_memory(example.nbytes * len(places)):
            return self._rows(places, output, dtype)
        step = max(1, BYTES_READ_AT_ONCE // max(example.nbytes, 1))
        parts = (places[start : start + step] for start in range(0, len(places), step))
        return array_in_file((self._rows(part, output, dtype) for part in parts), self.folder)

    def _places(self, keys: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Block and row of each key."""
        added, index = self._added, self._index  # in this order: what is joined meanwhile is in one of them
        places, found = np.empty((len(keys), 2), dtype=np.int64), index.find(keys)
        there = found >= 0
        places[there, 0], places[there, 1] = index.block[found[there]], index.row[found[there]]
        for position in np.flatnonzero(~there).tolist():
            places[position] = added[keys[position].tobytes()]
        return places

    def _rows(self, places: NDArray[np.int64], output: str, dtype: DTypeLike | None) -> NDArray[Any]:
        """The rows at some places, one block after the other."""
        order = np.argsort(places[:, 0], kind="stable")
        starts = np.flatnonzero(np.diff(places[order, 0], prepend=-1))
        result: NDArray[Any] | None = None
        for positions in np.split(order, starts[1:]):
            block = self._blocks[int(places[positions[0], 0])]
            rows = np.load(self.folder / f"{block}.{output}.npy", mmap_mode="r")
            if result is None:
                result = np.empty((len(places), *rows.shape[1:]), dtype=dtype or rows.dtype)
            result[positions] = rows[places[positions, 1]]
        assert result is not None  # there is at least one place
        return result
