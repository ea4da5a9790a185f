"""What happens to a batch of photos on a GPU, in few kernels: for trainings that compile their network.

The functions of `randaugment` launch some 200 kernels for a batch, each over the photos of one operation. Compiled, it
is cheaper to let every operation see every photo and keep what was drawn: a turn of RandAugment is then four kernels.
Pixels are those of `randaugment`, but for the last bit of a product here and there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from fieldmark.training.boxes import resample
from fieldmark.training.devices import to_device
from fieldmark.training.draws import Draws
from fieldmark.training.randaugment import (
    GEOMETRIC,
    OPERATIONS,
    blend,
    drawn_operations,
    gray_shades,
    move,
    moving_matrices,
    posterized_bits,
    solarized_from,
    strengths_of,
)

Tensor = Any

LEVELS = 256
NUMBER = {name: number for number, name in enumerate(OPERATIONS)}


def fused_view(
    squares: Tensor, boxes: Tensor, size_px: int, mean: Tensor, scale: Tensor, draws: Draws, turns: int, magnitude: int
) -> Tensor:
    """Boxes of squares as the network takes them, changed by RandAugment where there are any turns of it."""
    if not turns:
        return _compiled(cropped_and_normalized)(squares, boxes, size_px, mean, scale)
    pixels = _compiled(cropped)(squares, boxes, size_px)
    bits, threshold = posterized_bits(magnitude), solarized_from(magnitude)
    for turn in range(turns):
        chosen, signs = drawn_operations(draws, turn)
        told = to_device(numbers_for(chosen, signs, magnitude, size_px), pixels.device)
        pixels = _compiled(turned)(pixels, told, equalizing_tables(pixels, chosen), bits, threshold)
    return _compiled(normalized)(pixels, mean, scale)


@lru_cache(maxsize=8)
def _compiled(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    compiled: Callable[..., Tensor] = torch.compile(function)
    return compiled


def cropped_and_normalized(squares: Tensor, boxes: Tensor, size_px: int, mean: Tensor, scale: Tensor) -> Tensor:
    """Boxes of squares, normalized."""
    return normalized(resample(squares.permute(0, 3, 1, 2), boxes, size_px), mean, scale)


def cropped(squares: Tensor, boxes: Tensor, size_px: int) -> Tensor:
    """Boxes of squares in whole levels."""
    return resample(squares.permute(0, 3, 1, 2), boxes, size_px).round().clamp(0, 255).to(torch.uint8)


def normalized(pixels: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    """Pixels as the network expects them."""
    return ((pixels - mean) * scale).contiguous(memory_format=torch.channels_last)


def numbers_for(
    chosen: NDArray[np.int64], signs: NDArray[np.float64], magnitude: int, side_px: int
) -> NDArray[np.float32]:
    """For each photo the number of its operation, its factor, and where its pixels come from: one copy for all."""
    strengths = strengths_of(signs, magnitude)
    names = [OPERATIONS[number] for number in chosen]
    matrices = moving_matrices(names, strengths, side_px)
    return np.concatenate([np.stack([chosen, 1 + 0.9 * strengths], axis=1), matrices.reshape(-1, 6)], axis=1).astype(
        np.float32
    )


def turned(pixels: Tensor, told: Tensor, equalizing: Tensor, bits: int, threshold: float) -> Tensor:
    """One operation on each photo.

    Args:
        pixels: uint8, batch x 3 x height x width.
        told: See `numbers_for`.
        equalizing: See `equalizing_tables`.
        bits: What posterizing keeps of a level.
        threshold: From where on solarizing turns levels round.
    """
    number, factors = told[:, 0].view(-1, 1, 1, 1), told[:, 1].view(-1, 1, 1, 1)
    shades = gray_shades(pixels)
    tables = _tables(pixels, shades, number[..., 0], factors[..., 0], bits, threshold)
    tables = torch.where(number[..., 0] == NUMBER["equalize"], equalizing, tables)
    moves = number <= NUMBER[GEOMETRIC[-1]]
    where_from = torch.where(moves, move(pixels, told[:, 2:].view(-1, 2, 3)), pixels)
    result = tables.gather(2, where_from.flatten(2).long()).view_as(pixels)
    result = torch.where(number == NUMBER["color"], blend(pixels, shades, factors), result)
    return torch.where(number == NUMBER["sharpness"], _sharpened(pixels, factors), result)


def _tables(pixels: Tensor, shades: Tensor, number: Tensor, factors: Tensor, bits: int, threshold: float) -> Tensor:
    """For each photo and channel what becomes of each level, where that depends on nothing else (uint8)."""
    levels = torch.arange(LEVELS, device=pixels.device).expand(len(pixels), pixels.shape[1], LEVELS)
    values = levels.float()
    low, high = pixels.amin(dim=(2, 3)).float()[..., None], pixels.amax(dim=(2, 3)).float()[..., None]
    flat = low == high
    stretched = (values - low.masked_fill(flat, 0)) / ((high - low) * (1.0 / 255)).masked_fill(flat, 1)
    result = levels.to(torch.uint8)
    for name, changed in {
        "brightness": blend(values, 0, factors),
        "contrast": blend(values, shades.mean(dim=(2, 3)).view(-1, 1, 1), factors),
        "posterize": (levels & (255 - (1 << (8 - bits)) + 1)).to(torch.uint8),
        "solarize": torch.where(values >= threshold, 255 - levels, levels).to(torch.uint8),
        "autocontrast": stretched.clamp(0, 255).to(torch.uint8),
    }.items():
        result = torch.where(number == NUMBER[name], changed, result)
    return result


def _sharpened(pixels: Tensor, factors: Tensor) -> Tensor:
    """Sums are whole numbers, so that no rounding depends on their order; the rim stays."""
    height, width = pixels.shape[-2:]
    around = functional.pad(pixels.float(), (1, 1, 1, 1))
    total = 4.0 * pixels
    for down in range(3):
        for right in range(3):
            total = total + around[..., down : down + height, right : right + width]
    blurred = (total / 13).round()
    values = pixels.float()
    inner = (values + (blurred - values) * (1 - factors)).clamp(0, 255)
    rows, columns = (torch.arange(side, device=pixels.device) for side in (height, width))
    inside = ((rows > 0) & (rows < height - 1))[:, None] & (columns > 0) & (columns < width - 1)
    return torch.where(inside, inner, values).to(torch.uint8)


def equalizing_tables(pixels: Tensor, chosen: NDArray[np.int64]) -> Tensor:
    """What becomes of each level where a photo is equalized; zeros for the others.

    A histogram is the one thing that is not worth computing for photos that do not ask for it.
    """
    channels = pixels.shape[1]
    tables = torch.zeros((len(pixels), channels, LEVELS), dtype=torch.uint8, device=pixels.device)
    members = np.flatnonzero(chosen == NUMBER["equalize"])
    if not len(members):
        return tables
    places = to_device(members, pixels.device)
    flat = pixels[places].flatten(2).long()
    counts = torch.zeros((len(members), channels, LEVELS), dtype=torch.int64, device=pixels.device)
    counts.scatter_add_(2, flat, torch.ones((), dtype=torch.int64, device=pixels.device).expand_as(flat))
    below = counts.cumsum(2)
    highest = counts.gather(2, below.argmax(2, keepdim=True))  # the pixels of the highest level there is
    step = (flat.shape[2] - highest).div(255, rounding_mode="floor")
    before = functional.pad(below[..., :-1], (1, 0))
    spread = (before + step // 2).div(step.clamp(min=1), rounding_mode="floor").clamp(0, 255)
    spread[..., 0] = 0
    levels = torch.arange(LEVELS, device=pixels.device)
    return tables.index_copy(0, places, torch.where(step == 0, levels, spread).to(torch.uint8))
