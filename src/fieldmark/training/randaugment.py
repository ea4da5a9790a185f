"""RandAugment for a whole batch on the device: every example draws its own operations.

Cubuk et al., "RandAugment: practical automated data augmentation with a reduced search space" (2020), with the
operations and magnitudes of torchvision, whose own version applies the same operations to all examples of a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional
from torchvision.transforms.v2 import functional as colors

from fieldmark.training.devices import to_device
from fieldmark.training.draws import Draws

Tensor = Any

MAGNITUDES = 31
GEOMETRIC = ("shear-x", "shear-y", "translate-x", "translate-y", "rotate")
SIGNED = ("brightness", "color", "contrast", "sharpness")
UNSIGNED = ("posterize", "solarize", "autocontrast", "equalize")
OPERATIONS = ("identity", *GEOMETRIC, *SIGNED, *UNSIGNED)


def rand_augment(pixels: Tensor, draws: Draws, operations: int, magnitude: int) -> Tensor:
    """Applies a few operations at random to each photo of a batch (uint8, batch x 3 x height x width)."""
    for turn in range(operations):
        chosen = draws.integers(f"operation {turn}", len(OPERATIONS))
        signs = np.where(draws.chance(f"sign {turn}"), -1.0, 1.0)
        pixels = apply_operations(pixels, chosen, signs, magnitude)
    return pixels


def apply_operations(pixels: Tensor, chosen: NDArray[np.int64], signs: NDArray[np.float64], magnitude: int) -> Tensor:
    """Applies to each photo the operation of its number in `OPERATIONS`."""
    share = magnitude / (MAGNITUDES - 1)
    result = pixels.clone()

    def change(members: NDArray[np.bool_], operation: Callable[[Tensor], Tensor]) -> None:
        if members.any():
            rows = to_device(np.flatnonzero(members), pixels.device)
            result[rows] = operation(pixels[rows])

    first = OPERATIONS.index(GEOMETRIC[0])
    moved = (chosen >= first) & (chosen < first + len(GEOMETRIC))
    matrices = _matrices(chosen[moved] - first, signs[moved] * share, pixels.shape[-1])
    change(moved, lambda some: _affine(some, matrices))
    for name in SIGNED:
        for sign in (-1.0, 1.0):
            members = (chosen == OPERATIONS.index(name)) & (signs == sign)
            change(members, lambda some, name=name, sign=sign: _blend(some, name, 1 + sign * share * 0.9))  # type: ignore[misc]
    for name in UNSIGNED:
        change(chosen == OPERATIONS.index(name), lambda some, name=name: _unsigned(some, name, magnitude))  # type: ignore[misc]
    return result


def _matrices(numbers: NDArray[np.int64], strengths: NDArray[np.float64], side_px: int) -> NDArray[np.float32]:
    """For each photo where its pixels come from, as rows (x, y, 1) -> (x, y) in units of half its side."""
    matrices = np.tile(np.eye(2, 3, dtype=np.float32), (len(numbers), 1, 1))
    for row, (number, strength) in enumerate(zip(numbers, strengths, strict=True)):
        match GEOMETRIC[number]:
            # A shear keeps the upper left corner where it is, so it comes with a shift.
            case "shear-x":
                matrices[row, 0, 1:] = 2 * (strength * 0.3,)
            case "shear-y":
                matrices[row, 1, [0, 2]] = strength * 0.3
            case "translate-x":
                matrices[row, 0, 2] = -2 * int(strength * side_px * 150 / 331) / side_px
            case "translate-y":
                matrices[row, 1, 2] = -2 * int(strength * side_px * 150 / 331) / side_px
            case "rotate":
                angle = np.deg2rad(30 * strength)
                matrices[row, :, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return matrices


def _affine(pixels: Tensor, matrices: NDArray[np.float32]) -> Tensor:
    theta = to_device(matrices, pixels.device)
    grid = functional.affine_grid(theta, list(pixels.shape), align_corners=False)
    moved = functional.grid_sample(pixels.float(), grid, mode="nearest", padding_mode="zeros", align_corners=False)
    return moved.to(torch.uint8)


def _blend(pixels: Tensor, name: str, factor: float) -> Tensor:
    operation: dict[str, Callable[[Tensor, float], Tensor]] = {
        "brightness": colors.adjust_brightness,
        "color": colors.adjust_saturation,
        "contrast": colors.adjust_contrast,
        "sharpness": colors.adjust_sharpness,
    }
    return operation[name](pixels, factor)


def _unsigned(pixels: Tensor, name: str, magnitude: int) -> Tensor:
    match name:
        case "posterize":
            return colors.posterize(pixels, 8 - round(magnitude / ((MAGNITUDES - 1) / 4)))
        case "solarize":
            return colors.solarize(pixels, 255 * (1 - magnitude / (MAGNITUDES - 1)))
        case "autocontrast":
            return colors.autocontrast(pixels)
        case _:
            return colors.equalize(pixels)
