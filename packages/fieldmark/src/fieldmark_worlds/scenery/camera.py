"""The observer's camera: what it does to the light that falls into it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageFilter

from fieldmark_worlds.scenery.noise import Array


@dataclass(frozen=True)
class Camera:
    """What the observer's camera does to every photo.

    Attributes:
        blur_px: Softness, in pixels of a photo of 192.
        noise: Standard deviation of its noise, as a share of full scale.
        warmth: White balance: above 0 redder, below 0 bluer.
        exposure: Brightness, as a factor.
    """

    blur_px: float = 0.3
    noise: float = 0.01
    warmth: float = 0.0
    exposure: float = 1.0


def develop(canvas: Array, size_px: int, camera: Camera, rng: np.random.Generator) -> Image.Image:
    """Turns light into a photo: vignette, exposure, white balance, tone curve, softness and noise."""
    side = len(canvas)
    axis = np.linspace(-1, 1, side, dtype=np.float32)
    vignette = 1 - np.float32(rng.uniform(0.05, 0.3)) * (axis[:, None] ** 2 + axis[None, :] ** 2) / 2
    balance = np.array([1 + camera.warmth, 1, 1 - camera.warmth], dtype=np.float32)
    balance *= np.float32(camera.exposure * rng.lognormal(0.12, 0.1))
    light = canvas * vignette[..., None] * balance
    # Highlights roll off instead of clipping.
    tone = np.sqrt(light / (1 + np.float32(0.28) * light * light))
    photo = Image.fromarray((np.clip(tone, 0, 1) * 255).astype(np.uint8))
    photo = photo.resize((size_px, size_px), Image.Resampling.BICUBIC)
    softness = camera.blur_px * size_px / 192 + float(rng.gamma(1.5, 0.15))
    photo = photo.filter(ImageFilter.GaussianBlur(max(softness, 0.35)))
    grain = rng.standard_normal((size_px, size_px, 3), dtype=np.float32) * np.float32(255 * camera.noise)
    return Image.fromarray(np.clip(np.asarray(photo, dtype=np.float32) + grain, 0, 255).astype(np.uint8))
