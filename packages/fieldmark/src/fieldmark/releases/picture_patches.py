"""Patches by which copies of a photo are recognized: they stay the same when it is cut, scaled, mirrored or turned.

A patch lies around a blob, an extreme of the difference of two Gaussian blurs in place and scale (Lowe, 2004), so that
a copy has it at the same place of the scene. Its hash is the signs of its lowest cosine coefficients. Mirroring or
turning a patch by a quarter changes signs of coefficients or exchanges rows and columns: every patch is brought into
the one of its eight orientations in which the two lowest coefficients are positive and the vertical one is the larger.
The first patch of a photo is the whole of it.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fieldmark.storage.picture_files import as_rgb, open_picture, refuse_huge

# The long side of the gray pictures that are compared; small photos are enlarged up to twice.
LONG_SIDE_PX, MOST_ENLARGED, LEAST_SIDE_PX = 160, 2, 16
# Blurs: the first, and how many follow, each wider by the square root of two.
FIRST_SIGMA_PX, BLURS = 1.4, 7
# Blobs with less contrast are noise (of 255); a patch reaches so many sigmas to each side; the strongest are kept.
LEAST_CONTRAST, REACH_SIGMAS, MOST_PATCHES = 1.5, 5.0, 32
PATCH_SIDE, BITS = 16, 64
# The whole is hashed in a second orientation where a coefficient that decides is smaller than this share of them all.
UNDECIDED = 0.1

Gray = NDArray[np.float32]
# The lowest coefficients without the mean and without the two whose signs the orientation makes positive.
_HASHED = sorted(
    ((u, v) for u in range(9) for v in range(9) if u + v > 1), key=lambda uv: (uv[0] ** 2 + uv[1] ** 2, uv)
)[:BITS]
_GRID = ((np.arange(PATCH_SIDE) + 0.5) / (PATCH_SIDE / 2) - 1).astype(np.float32)


class Patches(NamedTuple):
    """Patches of a photo: centers and half sides in pixels of its gray picture, orientation and hash of each.

    The first `wholes` are the whole photo, in each orientation that it may have.
    """

    centers: NDArray[np.float32]  # (n, 2): y, x
    reach: NDArray[np.float32]  # (n, 2)
    orientation: NDArray[np.uint8]
    hashes: NDArray[np.uint64]
    wholes: int


def gray_picture(data: bytes) -> Gray:
    """A photo in gray, its long side 160 pixels; a photo of less than half of that is made twice as large.

    Raises:
        OSError, SyntaxError, ValueError: When it cannot be read to its end.
    """
    with open_picture(data) as photo:
        photo.draft("L", (LONG_SIDE_PX, LONG_SIDE_PX))
        refuse_huge(photo)
        scale = min(LONG_SIDE_PX / max(photo.size), MOST_ENLARGED)
        width, height = (max(LEAST_SIDE_PX, round(scale * side)) for side in photo.size)
        gray = photo if photo.mode == "L" else as_rgb(photo).convert("L")
        return np.asarray(gray.resize((width, height), Image.Resampling.BILINEAR), dtype=np.float32)


def patches_of(gray: Gray) -> Patches:
    """The patches of a gray picture: the whole (once, or in several orientations), then those around its blobs."""
    blurred = _blurs(gray)
    level, centers, radius = _blobs(blurred)
    rows, whole_turned, whole = hashes_of(squashed(gray)[None], UNDECIDED)
    order, turned, hashes = hashes_of(_cut_out(blurred, level, centers, radius))
    half = np.tile(np.asarray(gray.shape, dtype=np.float32) / 2, (len(rows), 1))
    return Patches(
        np.concatenate([half - 0.5, centers[order]]),
        np.concatenate([half, np.repeat(radius[order, None], 2, axis=1)]),
        np.concatenate([whole_turned, turned]),
        np.concatenate([whole, hashes]),
        len(whole),
    )


def squashed(gray: NDArray[np.float32] | NDArray[np.uint8]) -> Gray:
    """A picture squashed to 16 x 16 pixels, each the mean of what it covers."""
    small = Image.fromarray(gray).resize((PATCH_SIDE, PATCH_SIDE), Image.Resampling.BOX)
    return np.asarray(small, dtype=np.float32)


def hashes_of(squares: Gray, undecided: float = 0.0) -> tuple[NDArray[np.intp], NDArray[np.uint8], NDArray[np.uint64]]:
    """The hashes of squares of 16 pixels: which square, the orientation it is hashed in, and the hash.

    Args:
        squares: One after the other.
        undecided: Below which share of all coefficients one that decides on the orientation counts as zero: such a
            square is hashed in each orientation that it may have.
    """
    cosines = _cosines()
    coefficients = np.asarray(cosines @ squares @ cosines.T, dtype=np.float32)
    down, right = coefficients[:, 1, 0], coefficients[:, 0, 1]
    lowest = (coefficients[:, :4, :4] ** 2).sum((1, 2)) - coefficients[:, 0, 0] ** 2
    near_zero = undecided * np.sqrt(np.maximum(lowest, 0))
    rows, orientations, hashes = [], [], []
    for code in range(8):
        flip_y, flip_x, transposed = code & 1, code >> 1 & 1, code >> 2
        fits = ((-down if flip_y else down) >= -near_zero) & ((-right if flip_x else right) >= -near_zero)
        fits &= (abs(down) - abs(right) if not transposed else abs(right) - abs(down)) >= -near_zero
        some = np.flatnonzero(fits)
        turned = coefficients[some]
        if flip_y:
            turned[:, 1::2] *= -1
        if flip_x:
            turned[:, :, 1::2] *= -1
        rows.append(some)
        orientations.append(np.full(len(some), code, dtype=np.uint8))
        hashes.append(_signs(turned.transpose(0, 2, 1) if transposed else turned))
    return np.concatenate(rows), np.concatenate(orientations), np.concatenate(hashes)


@cache
def _cosines() -> Gray:
    from scipy.fft import dct  # imported late, as below: extraction and `identify` need neither

    lowest: Gray = dct(np.eye(PATCH_SIDE), axis=0, norm="ortho").astype(np.float32)[:9]
    return lowest


def _signs(coefficients: Gray) -> NDArray[np.uint64]:
    down, right = zip(*_HASHED, strict=True)
    bits = np.ascontiguousarray(np.packbits(coefficients[:, down, right] > 0, axis=1))
    return bits.view(np.uint64)[:, 0]


def _blurs(gray: Gray) -> Gray:
    """The picture blurred more and more."""
    from scipy.ndimage import gaussian_filter

    blurred = [gaussian_filter(gray, FIRST_SIGMA_PX, truncate=2.5)]
    for number in range(1, BLURS):
        # A blur of a blurred picture adds squares of sigmas, which double from one to the next.
        more = FIRST_SIGMA_PX * 2 ** ((number - 1) / 2)
        blurred.append(gaussian_filter(blurred[-1], more, truncate=2.5))
    return np.stack(blurred)


def _blobs(blurred: Gray) -> tuple[NDArray[np.intp], NDArray[np.float32], NDArray[np.float32]]:
    """Level, center and half side of the patches around the strongest blobs that lie within the picture."""
    contrast = abs(blurred[1:] - blurred[:-1])
    inner = contrast[1:-1, 1:-1, 1:-1]
    level, y, x = np.nonzero((inner >= _largest_around(contrast)) & (inner > LEAST_CONTRAST))
    place = np.stack([level, y, x], axis=1) + 1
    strength = inner[level, y, x]
    order = np.argsort(-strength, kind="stable")[: 4 * MOST_PATCHES]
    place, strength = place[order], strength[order]
    exact = place.astype(np.float32)
    for axis in range(3):
        step = np.eye(3, dtype=np.intp)[axis]
        before, after = contrast[tuple((place - step).T)], contrast[tuple((place + step).T)]
        # The vertex of the parabola through three values.
        curved = np.maximum(2 * strength - before - after, 1e-6)
        exact[:, axis] += np.clip((after - before) / (2 * curved), -0.5, 0.5)
    radius = REACH_SIGMAS * FIRST_SIGMA_PX * 2 ** (exact[:, 0] / 2)
    centers = exact[:, 1:]
    within = ((centers - radius[:, None] >= -1) & (centers + radius[:, None] <= blurred.shape[1:])).all(axis=1)
    kept = np.flatnonzero(within)[:MOST_PATCHES]
    return place[kept, 0], centers[kept], radius[kept].astype(np.float32)


def _largest_around(values: Gray) -> Gray:
    """The largest of the 27 values around each inner one."""
    for axis in range(3):
        values = np.moveaxis(values, axis, 0)
        values = np.moveaxis(np.maximum(np.maximum(values[:-2], values[1:-1]), values[2:]), 0, axis)
    return values


def _cut_out(blurred: Gray, level: NDArray[np.intp], centers: NDArray[np.float32], radius: NDArray[np.float32]) -> Gray:
    """Squares of 16 pixels around centers, out of the picture that is blurred one step less than the blob."""
    height, width = blurred.shape[1:]
    offsets = radius[:, None] * _GRID
    y, x = (np.clip(centers[:, axis, None] + offsets, 0, side - 1.001) for axis, side in enumerate((height, width)))
    top, left = y.astype(np.intp), x.astype(np.intp)
    down, right = (y - top)[:, :, None], (x - left)[:, None, :]
    first = (((level - 1)[:, None] * height + top) * width)[:, :, None] + left[:, None, :]
    values = blurred.reshape(-1)
    upper = values[first] * (1 - right) + values[first + 1] * right
    lower = values[first + width] * (1 - right) + values[first + width + 1] * right
    return np.asarray(upper * (1 - down) + lower * down, dtype=np.float32)
