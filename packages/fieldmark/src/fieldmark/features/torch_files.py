"""Tensors from a file that torch has written, without importing torch, which takes two seconds.

The packaged weights have the layout that `torch.save` wrote before version 1.6: five pickles (a magic number, the
version of the layout, facts about the machine, the tensors themselves, the keys of their storages), then for each
storage its length as eight bytes and its values. A pickle can run anything; this reader knows the few names that
tensors need and refuses all others.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import InputError

MAGIC = 0x1950A86A20F9469CFC6C
DTYPES = {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8"), "HalfStorage": np.dtype("<f2")}


@dataclass
class _Storage:
    dtype: np.dtype[Any]
    values: NDArray[Any] = field(default_factory=lambda: np.empty(0))


@dataclass
class _Tensor:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def array(self) -> NDArray[Any]:
        size = self.storage.dtype.itemsize
        strides = tuple(size * stride for stride in self.strides)
        return np.lib.stride_tricks.as_strided(self.storage.values[self.offset :], self.shape, strides, writeable=False)


def _rebuilt(storage: _Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any) -> _Tensor:
    return _Tensor(storage, offset, shape, strides)


class _Reader(pickle.Unpickler):
    """Reads tensors and nothing else."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.storages: dict[str, _Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuilt
        if module == "torch" and name in DTYPES:
            return DTYPES[name]
        raise pickle.UnpicklingError(f"{module}.{name} has no place among tensors")

    def persistent_load(self, pid: Any) -> _Storage:
        _, dtype, key, *_ = pid
        return self.storages.setdefault(key, _Storage(dtype))


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a file by name, in its order.

    Raises:
        InputError: When the file has another layout, or anything but tensors in it.
    """
    try:
        with path.open("rb") as file:
            if _Reader(file).load() != MAGIC:
                raise pickle.UnpicklingError("another magic number")
            for _ in range(2):
                _Reader(file).load()
            reader = _Reader(file)
            tensors = reader.load()
            for key in _Reader(file).load():
                storage = reader.storages[key]
                (length,) = np.fromfile(file, dtype="<i8", count=1)
                storage.values = np.fromfile(file, dtype=storage.dtype, count=int(length))
        return {name: tensor.array() for name, tensor in tensors.items()}
    except (pickle.UnpicklingError, ValueError, KeyError, EOFError, AttributeError, TypeError) as error:
        raise InputError(
            path, found=f"something else ({error})", expected="tensors as torch.save writes them"
        ) from error
