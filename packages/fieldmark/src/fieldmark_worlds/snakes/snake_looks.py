"""From latent traits to what can be seen of one snake: colors, pattern and proportions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldmark_worlds.nature.kingdom import Specimen

Color = NDArray[np.float32]

# Pigments of skins in the order in which neighbors blend into each other, as sRGB.
_PIGMENTS = (
    (60, 56, 54),
    (96, 72, 52),
    (136, 96, 58),
    (176, 134, 84),
    (198, 172, 118),
    (150, 148, 92),
    (98, 124, 66),
    (62, 132, 78),
    (70, 120, 128),
    (120, 112, 116),
    (176, 76, 48),
    (196, 50, 40),
    (216, 128, 42),
    (226, 190, 74),
)
_PALE = (232, 222, 196)


@dataclass(frozen=True)
class SnakeLook:
    """What one snake looks like; lengths are shares of its own length, colors are linear light.

    Attributes:
        body_color, pattern_color, belly_color: Of the back, of what is drawn on it, of the sides below.
        pattern: Its kind.
        contrast: How clearly the pattern stands out, 0 to 1.
        repeats: How often it repeats along the body.
        filled: The share of the body that it covers.
        radius: Half the thickness at the thickest point.
        taper: How early the body begins to thin out toward the tail.
        head_width, head_length: Relative to the thickness of the neck.
        gloss: 0 for dull, 1 for wet.
        scales: How often scales repeat along the body.
    """

    body_color: Color
    pattern_color: Color
    belly_color: Color
    pattern: str
    contrast: float
    repeats: float
    filled: float
    radius: float
    taper: float
    head_width: float
    head_length: float
    gloss: float
    scales: float


def snake_look_of(specimen: Specimen) -> SnakeLook:
    """The looks of a specimen from its traits."""

    def between(name: str, low: float, high: float, steep: float = 0.9) -> float:
        return low + (high - low) / (1 + float(np.exp(-steep * float(specimen[name]))))

    body = _pigment(
        between("body_hue", 0, 1), between("body_saturation", 0.35, 1.0), between("body_lightness", 0.4, 1.5)
    )
    drawn = _pigment(between("pattern_hue", 0, 1), 0.8, between("pattern_lightness", 0.15, 1.7))
    pale = _linear(np.array(_PALE, np.float32))
    belly = body + (pale - body) * np.float32(between("belly_paleness", 0.1, 0.9))
    return SnakeLook(
        body_color=body,
        pattern_color=drawn,
        belly_color=belly.astype(np.float32),
        pattern=str(specimen["pattern"]),
        contrast=between("pattern_contrast", 0.25, 1.0),
        repeats=between("pattern_count", 9.0, 34.0),
        filled=between("pattern_width", 0.22, 0.62),
        radius=between("body_thickness", 0.013, 0.034),
        taper=between("tail_taper", 0.45, 0.8),
        head_width=between("head_width", 1.0, 2.2),
        head_length=between("head_length", 2.0, 3.6),
        gloss=between("gloss", 0.0, 0.8),
        scales=between("scale_size", 160.0, 90.0),
    )


def _pigment(place: float, saturation: float, brightness: float) -> Color:
    """A color between two neighbors of the list, less saturated and brighter or darker."""
    at = place * (len(_PIGMENTS) - 1)
    low = min(int(at), len(_PIGMENTS) - 2)
    colors = np.array(_PIGMENTS, np.float32)
    mixed = colors[low] + (colors[low + 1] - colors[low]) * np.float32(at - low)
    gray = mixed.mean()
    return _linear(np.clip((gray + (mixed - gray) * np.float32(saturation)) * np.float32(brightness), 4, 250))


def _linear(color: NDArray[np.float32]) -> Color:
    return np.asarray(np.square(color / np.float32(255)), dtype=np.float32)
