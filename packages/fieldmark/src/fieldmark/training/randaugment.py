"""RandAugment for a whole batch on the device: every example draws its own operations.

Cubuk et al., "RandAugment: practical automated data augmentation with a reduced search space" (2020), with the
operations and magnitudes of torchvision, whose own version applies the same operations to all examples of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional
from torchvision.transforms.v2 import functional as colors

from fieldmark.training.devices import constant, to_device
from fieldmark.training.draws import Draws

Tensor = Any

MAGNITUDES = 31
GEOMETRIC = ("shear-x", "shear-y", "translate-x", "translate-y", "rotate")
BLENDING = ("brightness", "color", "contrast", "sharpness")
OPERATIONS = ("identity", *GEOMETRIC, *BLENDING, "posterize", "solarize", "autocontrast", "equalize")


def rand_augment(pixels: Tensor, draws: Draws, operations: int, magnitude: int) -> Tensor:
    """Applies a few operations at random to each photo of a batch (uint8, batch x 3 x height x width)."""
    for turn in range(operations):
        pixels = apply_operations(pixels, *drawn_operations(draws, turn), magnitude)
    return pixels


def drawn_operations(draws: Draws, turn: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """For each photo the number of an operation and its sign."""
    chosen = draws.integers(f"operation {turn}", len(OPERATIONS))
    return chosen, np.where(draws.chance(f"sign {turn}"), -1.0, 1.0)


def strengths_of(signs: NDArray[np.float64], magnitude: int) -> NDArray[np.float64]:
    """How strongly each photo is changed, between -1 and 1."""
    return signs * magnitude / (MAGNITUDES - 1)


def posterized_bits(magnitude: int) -> int:
    """How many bits of each level posterizing keeps."""
    return 8 - round(magnitude / ((MAGNITUDES - 1) / 4))


def solarized_from(magnitude: int) -> float:
    """The level from which on solarizing turns levels round."""
    return 255 * (1 - magnitude / (MAGNITUDES - 1))


def apply_operations(pixels: Tensor, chosen: NDArray[np.int64], signs: NDArray[np.float64], magnitude: int) -> Tensor:
    """Applies to each photo the operation of its number in `OPERATIONS`.

    Photos with the same operation are brought together first. What an operation costs is the number of its kernels, not
    the number of photos, so signs and strengths are values of each photo; and nothing here makes the device wait.
    """
    order = np.argsort(chosen, kind="stable")
    strengths = strengths_of(signs[order], magnitude)
    factors = to_device((1 + 0.9 * strengths).astype(np.float32), pixels.device).view(-1, 1, 1, 1)
    together = pixels[to_device(order, pixels.device)]
    bounds = np.searchsorted(chosen[order], np.arange(len(OPERATIONS) + 1))

    def change(first: str, last: str, operation: Callable[[Tensor, slice], Tensor]) -> None:
        members = slice(bounds[OPERATIONS.index(first)], bounds[OPERATIONS.index(last) + 1])
        if members.start < members.stop:
            together[members] = operation(together[members], members)

    def moved(some: Tensor, members: slice) -> Tensor:
        names = [OPERATIONS[number] for number in chosen[order[members]]]
        return move(some, to_device(moving_matrices(names, strengths[members], some.shape[-1]), some.device))

    def color(some: Tensor, members: slice) -> Tensor:
        return blend(some, gray_shades(some), factors[members])

    def contrast(some: Tensor, members: slice) -> Tensor:
        return blend(some, gray_shades(some).mean(dim=(1, 2, 3), keepdim=True), factors[members])

    change(GEOMETRIC[0], GEOMETRIC[-1], moved)
    change("brightness", "brightness", lambda some, members: blend(some, 0, factors[members]))
    change("color", "color", color)
    change("contrast", "contrast", contrast)
    change("sharpness", "sharpness", lambda some, members: _sharpen(some, factors[members]))
    bits, threshold = posterized_bits(magnitude), solarized_from(magnitude)
    change("posterize", "posterize", lambda some, _: colors.posterize(some, bits))
    change("solarize", "solarize", lambda some, _: colors.solarize(some, threshold))
    change("autocontrast", "autocontrast", lambda some, _: colors.autocontrast(some))
    change("equalize", "equalize", lambda some, _: colors.equalize(some))
    return together[to_device(np.argsort(order), pixels.device)]


def moving_matrices(names: Sequence[str], strengths: NDArray[np.float64], side_px: int) -> NDArray[np.float32]:
    """For each photo where its pixels come from, as rows (x, y, 1) -> (x, y) in units of half its side."""
    matrices = np.tile(np.eye(2, 3, dtype=np.float32), (len(names), 1, 1))
    for matrix, name, strength in zip(matrices, names, strengths, strict=True):
        match name:
            # A shear keeps the upper left corner where it is, so it comes with a shift.
            case "shear-x":
                matrix[0, 1:] = 2 * (strength * 0.3,)
            case "shear-y":
                matrix[1, [0, 2]] = strength * 0.3
            case "translate-x":
                matrix[0, 2] = -2 * int(strength * side_px * 150 / 331) / side_px
            case "translate-y":
                matrix[1, 2] = -2 * int(strength * side_px * 150 / 331) / side_px
            case "rotate":
                angle = np.deg2rad(30 * strength)
                matrix[:, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return matrices


def move(pixels: Tensor, matrices: Tensor) -> Tensor:
    """Brings each photo's pixels from where its matrix says; what comes from outside is black."""
    theta = matrices[:, :, :, None, None]
    side_px = pixels.shape[-1]
    centers = (2 * torch.arange(side_px, device=pixels.device) + 1) / side_px - 1
    where = theta[:, :, 0] * centers + theta[:, :, 1] * centers[:, None] + theta[:, :, 2]
    where = where.permute(0, 2, 3, 1)
    moved = functional.grid_sample(pixels.float(), where, mode="nearest", padding_mode="zeros", align_corners=False)
    return moved.to(torch.uint8)


def gray_shades(pixels: Tensor) -> Tensor:
    """The photo in whole shades of gray, by the weights of television (ITU-R BT.601)."""
    red, green, blue = pixels.unbind(1)
    return (0.2989 * red + 0.587 * green + 0.114 * blue).floor_().unsqueeze(1)


def blend(pixels: Tensor, other: Tensor, factors: Tensor) -> Tensor:
    """Between another picture (factor 0) and this one (factor 1), or beyond."""
    return (pixels * factors).add_(other * (1 - factors)).clamp_(0, 255).to(torch.uint8)


def _sharpen(pixels: Tensor, factors: Tensor) -> Tensor:
    """Blends with a picture whose pixels are a little of their neighbors; the rim has not all of them and stays."""
    weights = constant((1 / 13,) * 4 + (5 / 13,) + (1 / 13,) * 4, pixels.device).view(1, 1, 3, 3).expand(3, 1, 3, 3)
    values = pixels.float()
    inner = values[:, :, 1:-1, 1:-1]
    blurred = functional.conv2d(values, weights, groups=3).round_()
    inner.add_((blurred - inner) * (1 - factors))
    return values.clamp_(0, 255).to(torch.uint8)
