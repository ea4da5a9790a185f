"""Patches of maps as numbers: what is in the middle, and what is around it."""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.features.crops import Box
from fieldmark.features.photos import PhotoError
from fieldmark.registry import require

Patch = NDArray[np.float32]

# Raised whenever the same patches would give other numbers.
PATCH_VERSION = 1


@dataclass(frozen=True)
class PatchStatistics:
    """For each band the value in the middle, the mean and the spread; for bands of codes the share of each code.

    Args:
        code_bands: The bands whose values name something (land cover), so that their mean says nothing.
        codes: How many codes there are; larger ones count nowhere.
    """

    code_bands: tuple[int, ...] = ()
    codes: int = 0

    @property
    def digest(self) -> str:
        """A fingerprint of everything the numbers depend on."""
        told = repr((PATCH_VERSION, self.code_bands, self.codes)).encode()
        return f"patches-{hashlib.blake2b(told, digest_size=16).hexdigest()}"

    def decode(self, data: bytes, box: Box | None = None) -> Patch:
        """The patch in a `.npy` or GeoTIFF file, bands first; boxes are for photos."""
        return decode_patch(data)

    def __call__(self, pixels: Sequence[Patch]) -> dict[str, NDArray[Any]]:
        return {"features": np.stack([self.of(patch) for patch in pixels])}

    def of(self, patch: Patch) -> Patch:
        """The numbers of one patch of bands x height x width, NaN where there is no value.

        >>> PatchStatistics().of(np.array([[[1, 2, 3], [4, 5, 6], [7, 8, np.nan]]], dtype=np.float32))
        array([5.      , 4.5     , 2.291288], dtype=float32)
        >>> PatchStatistics(code_bands=(0,), codes=3).of(np.array([[[0, 2], [2, 2]]], dtype=np.float32))
        array([0.  , 0.  , 0.75], dtype=float32)
        """
        return np.concatenate([self._of_band(number, band) for number, band in enumerate(patch)]).astype(np.float32)

    def _of_band(self, number: int, band: Patch) -> NDArray[np.float64]:
        if number in self.code_bands:
            there = band[np.isfinite(band)].astype(np.int64)
            there = there[(there >= 0) & (there < self.codes)]
            shares = np.bincount(there, minlength=self.codes) / band.size
            shares[0] = 0.0  # 0 stands for nothing known
            return shares
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a patch without any value has no mean
            middle = band[band.shape[0] // 2, band.shape[1] // 2]
            return np.array([middle, np.nanmean(band, dtype=np.float64), np.nanstd(band, dtype=np.float64)])


def decode_patch(data: bytes) -> Patch:
    """The bands x height x width of a patch file, NaN where it has no value.

    `.npy` files hold height x width, or bands as the last of three axes (GeoLifeCLEF 2020), or as the first.

    Raises:
        PhotoError: When the bytes are neither `.npy` nor GeoTIFF.
    """
    if data.startswith(b"\x93NUMPY"):
        try:
            values = np.load(io.BytesIO(data), allow_pickle=False)
        except ValueError as error:
            raise PhotoError(f"a broken patch ({error})") from error
        if values.ndim not in (2, 3):
            raise PhotoError(f"an array of {values.ndim} axes")
        if values.ndim == 2:
            values = values[None]
        elif values.shape[2] < values.shape[0]:
            values = np.moveaxis(values, 2, 0)
        return np.asarray(values, dtype=np.float32)
    rasterio: Any = require("rasterio", "Reading patches of maps")
    try:
        with warnings.catch_warnings(), rasterio.MemoryFile(data) as memory:
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            with memory.open() as file:
                return np.asarray(file.read(masked=True).astype(np.float32).filled(np.nan))
    except rasterio.errors.RasterioIOError as error:
        raise PhotoError(f"{len(data)} bytes that are neither .npy nor GeoTIFF") from error
