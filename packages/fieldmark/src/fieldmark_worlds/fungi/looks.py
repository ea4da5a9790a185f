"""From latent traits to what can be seen: colors, proportions and patterns of one mushroom.

This is the only place where traits become appearance. It squashes the unbounded latents into ranges that look natural.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldmark_worlds.nature.kingdom import Specimen

Color = NDArray[np.float32]

# Pigments of caps in the order in which neighbors blend into each other, as sRGB.
_CAP_PIGMENTS = (
    (118, 100, 116),
    (128, 76, 80),
    (158, 42, 44),
    (204, 62, 30),
    (222, 116, 38),
    (176, 104, 52),
    (122, 78, 48),
    (158, 122, 78),
    (206, 160, 84),
    (228, 192, 78),
    (146, 136, 74),
    (122, 124, 92),
    (120, 124, 124),
)
# From white spores to black ones, by way of cream, salmon, ochre and purple brown.
_SPORE_COLORS = (
    (246, 242, 232),
    (240, 228, 200),
    (232, 196, 164),
    (206, 160, 104),
    (142, 98, 66),
    (92, 64, 62),
    (52, 44, 48),
)
_CREAM = (240, 226, 198)


@dataclass(frozen=True)
class Look:
    """What one mushroom looks like; lengths are in units of a typical cap radius, colors are linear light.

    Attributes:
        cap_color: Pigment of the cap between center and margin.
        center_color: Pigment at the center of the cap.
        margin_color: Pigment at the rim.
        underside_color: Color of gills, pores, teeth or ridges.
        stem_color: Color of the stem.
        cap_radius: Half the width of the cap.
        cap_height: From the rim to the apex.
        umbo: Above 0 a knob at the center, below 0 a hollow; a share of the radius.
        waviness: How far the rim undulates, as a share of the radius.
        gloss: 0 for dull, 1 for wet.
        texture: "smooth", "scaly", "spotted" or "striate".
        texture_density: 0 for sparse, 1 for dense.
        texture_contrast: 0 for faint, 1 for strong.
        underside: "gills", "pores", "teeth" or "ridges".
        underside_spacing: 0 for crowded, 1 for distant.
        stem_length: From the ground to the cap.
        stem_radius: Half the width of the stem at mid-height.
        stem_taper: Above 0 wider below, below 0 wider above.
        ring: Whether the stem has a ring.
        base: "plain", "bulb" or "volva".
    """

    cap_color: Color
    center_color: Color
    margin_color: Color
    underside_color: Color
    stem_color: Color
    cap_radius: float
    cap_height: float
    umbo: float
    waviness: float
    gloss: float
    texture: str
    texture_density: float
    texture_contrast: float
    underside: str
    underside_spacing: float
    stem_length: float
    stem_radius: float
    stem_taper: float
    ring: bool
    base: str


def look_of(specimen: Specimen) -> Look:
    """Returns the look of a specimen; nothing but its traits is read."""

    def squash(name: str, low: float, high: float) -> float:
        return float(low + (high - low) / (1 + np.exp(-1.1 * float(specimen[name]))))

    pigment = _blend(_CAP_PIGMENTS, squash("cap_hue", 0, 1))
    gray = np.float32(pigment.mean())
    cap = gray + (pigment - gray) * np.float32(squash("cap_saturation", 0.25, 1.35))
    cap = _lightened(np.clip(cap, 0.01, 1), squash("cap_lightness", -0.75, 0.75))
    stem = _mix(_linear(_CREAM), cap, squash("stem_tint", 0, 0.85))
    radius = squash("cap_width", 0.62, 1.35)
    return Look(
        cap_color=cap,
        center_color=_lightened(cap, -squash("cap_center_darkness", -0.1, 0.75)),
        margin_color=_lightened(cap, squash("cap_margin_paleness", -0.25, 0.75)),
        underside_color=_blend(_SPORE_COLORS, squash("underside_color", 0, 1)),
        stem_color=_lightened(stem, squash("stem_lightness", -0.75, 0.35)),
        cap_radius=radius,
        cap_height=radius * squash("cap_convexity", 0.18, 1.3),
        umbo=squash("cap_umbo", -0.4, 0.4),
        waviness=squash("cap_waviness", 0.0, 0.16),
        gloss=squash("cap_gloss", 0.0, 1.0),
        texture=str(specimen["texture"]),
        texture_density=squash("texture_density", 0, 1),
        texture_contrast=squash("texture_contrast", 0.3, 1),
        underside=str(specimen["underside"]),
        underside_spacing=squash("underside_spacing", 0, 1),
        stem_length=squash("stem_length", 0.7, 2.9),
        # Broad stems belong to broad caps: otherwise the extremes of both together look like jars.
        stem_radius=squash("stem_width", 0.07, 0.38) * (0.35 + 0.65 * radius),
        stem_taper=squash("stem_taper", -0.35, 0.55),
        ring=specimen["ring"] == "present",
        base=str(specimen["base"]),
    )


def _linear(color: tuple[int, int, int]) -> Color:
    # A square is close enough to the sRGB curve here, and its inverse is the fastest root there is.
    return np.asarray(np.square(np.array(color) / 255), dtype=np.float32)


def _blend(stops: tuple[tuple[int, int, int], ...], position: float) -> Color:
    at = position * (len(stops) - 1)
    below = min(int(at), len(stops) - 2)
    return _mix(_linear(stops[below]), _linear(stops[below + 1]), at - below)


def _mix(one: Color, other: Color, share: float) -> Color:
    mixed: Color = (one + (other - one) * np.float32(share)).astype(np.float32)
    return mixed


def _lightened(color: Color, amount: float) -> Color:
    """Returns a color moved toward cream (above 0) or toward its own shade (below 0)."""
    if amount >= 0:
        return _mix(color, _linear(_CREAM), amount)
    return (color * np.float32(1 + 0.8 * amount)).astype(np.float32)
