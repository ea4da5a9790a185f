"""Patches of maps as examples: cut down once, kept on disk, turned and mirrored on the way into the network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.features.patches import decode_patch
from fieldmark.foundation.progress import progress
from fieldmark.training.draws import Draws

Tensor = Any
Halves = NDArray[np.float16]
# Patches that are read at once.
BLOCK = 256


def pack_patches(
    ids: Sequence[str], readers: Sequence[Callable[[Sequence[str]], list[bytes | None]]], size: int, path: Path
) -> Halves:
    """Patches of some ids as one array on disk: ids x bands x size x size.

    The bands of all readers stand one after the other; what a patch lacks is NaN. Each is averaged down to the size.

    Args:
        ids: The ids.
        readers: For each kind of patch, what gives the files of some ids.
        size: The side in pixels.
        path: Where the array goes.
    """
    packed: Halves | None = None
    path.parent.mkdir(parents=True, exist_ok=True)
    with progress("packing patches", len(ids)) as tick:
        for start in range(0, len(ids), BLOCK):
            some = ids[start : start + BLOCK]
            block = np.concatenate([_stacked(read(some), size) for read in readers], axis=1)
            if packed is None:
                shape = (len(ids), *block.shape[1:])
                packed = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=shape)
            if block.shape[1] > packed.shape[1]:
                raise ValueError("the first block of patches lacks a kind that others have")
            packed[start : start + len(some), : block.shape[1]] = block
            tick(len(some))
    assert packed is not None  # a part has items
    return packed


def _stacked(files: list[bytes | None], size: int) -> NDArray[np.float32]:
    patches = [None if one is None else decode_patch(one) for one in files]
    bands = next((len(one) for one in patches if one is not None), 1)
    made = np.full((len(patches), bands, size, size), np.nan, dtype=np.float32)
    for row, one in enumerate(patches):
        if one is not None:
            made[row] = shrunk(one, size)
    return made


def shrunk(patch: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    """A patch averaged down to a square of `size`, or repeated up to it.

    >>> shrunk(np.arange(16, dtype=np.float32).reshape(1, 4, 4), 2).tolist()
    [[[2.5, 4.5], [10.5, 12.5]]]
    """
    high, wide = patch.shape[1:]
    if high % size or wide % size:
        rows, columns = (np.arange(size) * side // size for side in (high, wide))
        return patch[:, rows[:, None], columns]
    blocks = patch.reshape(len(patch), size, high // size, size, wide // size)
    return np.asarray(blocks.mean(axis=(2, 4)))


def band_moments(packed: Halves, most: int = 2000) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and spread of each band over some patches, without what is missing."""
    some = packed[np.linspace(0, len(packed) - 1, min(len(packed), most)).astype(np.int64)].astype(np.float64)
    there = np.isfinite(some)
    number = np.maximum(there.sum(axis=(0, 2, 3)), 1)
    mean = np.where(there, some, 0).sum(axis=(0, 2, 3)) / number
    centered = np.where(there, some - mean[:, None, None], 0)
    spread = np.sqrt((centered**2).sum(axis=(0, 2, 3)) / number)
    return mean.astype(np.float32), np.where(spread > 1e-6, spread, 1.0).astype(np.float32)


@dataclass(frozen=True)
class PatchSource:
    """Patches with the classes found there.

    Args:
        patches: The packed patches.
        labels: The class of each.
    """

    patches: Halves
    labels: NDArray[np.int32]
    groups: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def read(self, rows: NDArray[np.int64], draws: Draws | None) -> tuple[NDArray[Any], ...]:
        squares = np.asarray(self.patches[rows])
        if draws is None:
            return (squares, np.zeros(len(rows), dtype=np.int64))
        # A square of land looks as likely from any side: eight ways to turn and mirror it.
        return squares, np.floor(draws.uniform("turn", 0.0, 8.0)).astype(np.int64) % 8

    def read_targets(self, rows: NDArray[np.int64], draws: Draws | None) -> NDArray[np.int32]:
        return self.labels[rows]


@dataclass(frozen=True)
class PatchTransform:
    """Turns and mirrors patches and brings their bands to one scale; what is missing becomes the mean.

    Args:
        mean: Of each band.
        spread: Of each band.
    """

    mean: tuple[float, ...]
    spread: tuple[float, ...]

    def __call__(self, raw: Sequence[Tensor], draws: Draws | None) -> Tensor:
        squares, turns = raw[0].float(), raw[1]
        mean, spread = (torch.tensor(one, device=squares.device).view(1, -1, 1, 1) for one in (self.mean, self.spread))
        inputs = torch.nan_to_num((squares - mean) / spread)
        if draws is None:
            return inputs
        turned = torch.empty_like(inputs)
        for turn in range(8):
            own = turns == turn
            if bool(own.any()):
                some = torch.rot90(inputs[own], turn % 4, dims=(2, 3))
                turned[own] = some.flip(3) if turn >= 4 else some
        return turned
