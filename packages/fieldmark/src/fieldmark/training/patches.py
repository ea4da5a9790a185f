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
from fieldmark.training.draws import Draws
from fieldmark.work.progress import progress

Tensor = Any
Halves = NDArray[np.float16]
# Patches that are read at once.
BLOCK = 256


def pack_patches(
    ids: Sequence[str],
    readers: Sequence[Callable[[Sequence[str]], list[bytes | None]]],
    size: int,
    path: Path,
    coded: Sequence[bool] = (),
) -> Halves:
    """Patches of some ids as one array on disk: ids x bands x size x size.

    The bands of all readers stand one after the other; what a patch lacks is NaN. Amounts are averaged down to the
    size; codes have no mean, and of each square the pixel in its middle is taken.

    Args:
        ids: The ids.
        readers: For each kind of patch, what gives the files of some ids.
        size: The side in pixels.
        path: Where the array goes.
        coded: For each kind whether it holds codes (land cover); none does where nothing is said.
    """
    kinds = list(zip(readers, coded or [False] * len(readers), strict=True))
    packed: Halves | None = None
    path.parent.mkdir(parents=True, exist_ok=True)
    with progress("packing patches", len(ids)) as tick:
        for start in range(0, len(ids), BLOCK):
            some = ids[start : start + BLOCK]
            block = np.concatenate([_stacked(read(some), size, coded=codes) for read, codes in kinds], axis=1)
            if packed is None:
                shape = (len(ids), *block.shape[1:])
                packed = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=shape)
            if block.shape[1] > packed.shape[1]:
                raise ValueError("the first block of patches lacks a kind that others have")
            packed[start : start + len(some), : block.shape[1]] = block
            tick(len(some))
    assert packed is not None  # a part has items
    return packed


def _stacked(files: list[bytes | None], size: int, *, coded: bool) -> NDArray[np.float32]:
    patches = [None if one is None else decode_patch(one) for one in files]
    bands = next((len(one) for one in patches if one is not None), 1)
    made = np.full((len(patches), bands, size, size), np.nan, dtype=np.float32)
    for row, one in enumerate(patches):
        if one is not None:
            made[row] = sampled(one, size) if coded else shrunk(one, size)
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


def sampled(patch: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    """The pixel in the middle of each square of a patch that is cut down to `size`: what holds codes has no mean.

    >>> sampled(np.array([[[7, 7, 2, 2], [7, 7, 2, 2], [1, 1, 5, 5], [1, 1, 5, 9]]], dtype=np.float32), 2).tolist()
    [[[7.0, 2.0], [1.0, 9.0]]]
    """
    rows, columns = ((2 * np.arange(size) + 1) * side // (2 * size) for side in patch.shape[1:])
    return patch[:, rows[:, None], columns]


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

    A band of codes becomes one channel for each code, 1 where it holds: a network would take codes for heights.

    Args:
        mean: Of each band.
        spread: Of each band.
        codes: For each band how many codes it has, 0 (unknown) among them; 0 for a band of amounts, as all are where
            nothing is said.
    """

    mean: tuple[float, ...]
    spread: tuple[float, ...]
    codes: tuple[int, ...] = ()

    def __call__(self, raw: Sequence[Tensor], draws: Draws | None) -> Tensor:
        squares, turns = raw[0].float(), raw[1]
        mean, spread = (torch.tensor(one, device=squares.device).view(1, -1, 1, 1) for one in (self.mean, self.spread))
        inputs = torch.nan_to_num((squares - mean) / spread)
        if any(self.codes):
            channels = [
                one_hot(squares[:, band], number) if number else inputs[:, band : band + 1]
                for band, number in enumerate(self.codes)
            ]
            inputs = torch.cat(channels, dim=1)
        if draws is None:
            return inputs
        turned = torch.empty_like(inputs)
        for turn in range(8):
            own = turns == turn
            if bool(own.any()):
                some = torch.rot90(inputs[own], turn % 4, dims=(2, 3))
                turned[own] = some.flip(3) if turn >= 4 else some
        return turned


def one_hot(codes: Tensor, number: int) -> Tensor:
    """One channel for each code from 1 on: 1 where it holds; all 0 where the code is 0, missing or beyond them.

    >>> one_hot(torch.tensor([[[2.0, 0.0, float("nan")]]]), 3).tolist()
    [[[[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]]]]
    """
    listed = torch.arange(1, number, device=codes.device).view(1, -1, 1, 1)
    return (codes[:, None] == listed).float()
