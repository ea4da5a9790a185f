"""The arrays of a model in one file, in the format of safetensors.

Those of very many items (the training features that `knn` keeps) do not fit into memory: they are written block by
block, and mapped when the model is loaded, so that the system reads them as they are needed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from fieldmark.storage.files import appearing_file
from fieldmark.work.large_arrays import fits_in_memory, row_blocks

# The types of numpy under the names that the format gives them.
TYPES = {
    "BOOL": np.bool_,
    **{f"I{bits}": np.dtype(f"<i{bits // 8}").type for bits in (8, 16, 32, 64)},
    **{f"U{bits}": np.dtype(f"<u{bits // 8}").type for bits in (8, 16, 32, 64)},
    **{f"F{bits}": np.dtype(f"<f{bits // 8}").type for bits in (16, 32, 64)},
}
NAMES = {np.dtype(kind): name for name, kind in TYPES.items()}
# The file begins with the length of its header, which is filled up to a multiple of this.
LENGTH_BYTES = ALIGNED_BYTES = 8


def save_arrays(arrays: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Writes arrays into a file, which appears when it is complete.

    A file that was there before stays as it is for arrays that were loaded from it.
    """
    with appearing_file(path) as partial:
        if fits_in_memory(sum(array.nbytes for array in arrays.values())):
            save_file({name: np.asarray(array, order="C") for name, array in arrays.items()}, partial)
        else:
            _save_in_blocks(arrays, partial)


def _save_in_blocks(arrays: Mapping[str, NDArray[Any]], path: Path) -> None:
    # Large numbers first, so that all of them lie where they can be read at once.
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    header, end = {}, 0
    for name in names:
        begin, end = end, end + arrays[name].nbytes
        kind = NAMES[arrays[name].dtype]
        header[name] = {"dtype": kind, "shape": list(arrays[name].shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % ALIGNED_BYTES)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(LENGTH_BYTES, "little") + text)
        for name in names:
            rows = np.atleast_1d(arrays[name])
            for block in row_blocks(rows):
                file.write(rows[block].tobytes())


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Reads what `save_arrays` wrote; a file that does not fit into memory is mapped, and arrays may be changed.

    Raises:
        SafetensorError: When the file is of another format.
    """
    if fits_in_memory(path.stat().st_size):
        return dict(load_file(path))
    with safe_open(path, framework="numpy"):  # checks the header and that the file is as long as it says
        pass
    with path.open("rb") as file:
        length = int.from_bytes(file.read(LENGTH_BYTES), "little")
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    return {name: _mapped(path, LENGTH_BYTES + length, one) for name, one in header.items()}


def _mapped(path: Path, start: int, about: Mapping[str, Any]) -> NDArray[Any]:
    shape, dtype = tuple(about["shape"]), TYPES[about["dtype"]]
    if not np.prod(shape, dtype=np.int64):  # nothing can be mapped
        return np.zeros(shape, dtype=dtype)
    return np.asarray(np.memmap(path, dtype, mode="c", offset=start + about["data_offsets"][0], shape=shape))
