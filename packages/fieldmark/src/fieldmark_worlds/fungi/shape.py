"""The solid shape of one mushroom, and where rays of sight meet it.

A mushroom is a body of revolution: a cap between an upper and a lower profile, and a stem whose radius changes with
height (ring, bulb and volva included). Profiles are tables, so that any shape costs the same to look at.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fieldmark_worlds.fungi.looks import Look

Array = NDArray[np.float32]
Indices = NDArray[np.intp]

_ENTRIES = 512
_MOST_STEPS = 36
_STEPS_BETWEEN_SORTING = 3
# Profiles are steep in places, and a full step there could jump through the surface.
_STEP_SHARE = np.float32(0.9)

CAP, UNDERSIDE, STEM, RING = 1, 2, 3, 4


@dataclass(frozen=True)
class Shape:
    """Profiles of a mushroom that stands on the origin and grows along +y.

    Attributes:
        radius: Of the cap.
        height: Of the whole mushroom.
        collar: Height at which the rim of the cap lies.
        top, under: (entries,) upper and lower face of the cap by distance from the axis, from 0 to the radius.
        top_slope, under_slope: Their derivatives by distance from the axis.
        stem: (entries,) radius of the stem by height, from 0 to the height.
        stem_slope: Its derivative by height.
        ring_from, ring_to: Heights between which the stem is a ring; equal where there is none.
        bend: How far the cap leans to the side of the base.
        waviness: Amplitude of the rim's undulation.
        wave: (3,) two frequencies and a phase of the undulation.
        tooth: Length of the teeth under the cap; 0 for none.
        tooth_frequency: How densely they stand.
    """

    radius: float
    height: float
    collar: float
    top: Array
    under: Array
    top_slope: Array
    under_slope: Array
    stem: Array
    stem_slope: Array
    ring_from: float
    ring_to: float
    bend: float
    waviness: float
    wave: tuple[float, float, float]
    tooth: float
    tooth_frequency: float

    @cached_property
    def top_flatness(self) -> Array:
        """Cosine of the slope of the upper face: it turns heights above the face into distances."""
        return _flatness(self.top_slope)

    @cached_property
    def under_flatness(self) -> Array:
        """Cosine of the slope of the lower face."""
        return _flatness(self.under_slope)

    @cached_property
    def stem_flatness(self) -> Array:
        """Cosine of the slope of the stem against the axis."""
        return _flatness(self.stem_slope)


@dataclass(frozen=True)
class Hits:
    """Where rays met the mushroom, in its own coordinates.

    Attributes:
        rays: Which of the rays hit.
        part: CAP, UNDERSIDE, STEM or RING.
        x, y, z: The points; x and z count from the bent axis.
        normal: (3, n) outward unit vectors.
        rho: Distance from the axis as a share of the cap's radius.
    """

    rays: Indices
    part: NDArray[np.int8]
    x: Array
    y: Array
    z: Array
    normal: Array
    rho: Array


def shape_of(look: Look, rng: np.random.Generator) -> Shape:
    """Returns the shape of a look, with a bend and an undulation of its own."""
    radius, length = look.cap_radius, look.stem_length
    rho = np.linspace(0, 1, _ENTRIES)
    bell = 1.7 + 0.8 * min(1.0, look.cap_height / radius)
    top = look.cap_height * (1 - rho**bell) ** 0.62
    knob = look.umbo * radius * (0.55 if look.umbo > 0 else 0.9)
    top = top + knob * np.exp(-((rho / (0.3 if knob > 0 else 0.5)) ** 2))
    flesh = radius * 0.035 + (0.12 * radius + 0.5 * look.cap_height) * np.sqrt(1 - rho**2) * (1 - 0.35 * rho)
    under = top - flesh
    y = np.linspace(0, length + max(float(top.max()), 0.05), _ENTRIES)
    stem, ring_from, ring_to = _stem_profile(look, y, attached=length + float(under[0] + top[0]) / 2)
    teeth = look.underside == "teeth"
    return Shape(
        radius=radius,
        height=float(y[-1]),
        collar=length,
        top=(length + top).astype(np.float32),
        under=(length + under).astype(np.float32),
        top_slope=_slope(top, rho * radius),
        under_slope=_slope(under, rho * radius),
        stem=stem.astype(np.float32),
        stem_slope=_slope(stem, y),
        ring_from=ring_from,
        ring_to=ring_to,
        bend=float(rng.normal(0, 0.09)) * length,
        waviness=look.waviness * radius,
        wave=(float(rng.uniform(1.5, 3.2)), float(rng.uniform(-3.2, 3.2)), float(rng.uniform(0, 6.3))),
        tooth=(0.05 + 0.05 * look.underside_spacing) * radius if teeth else 0.0,
        tooth_frequency=(44 - 18 * look.underside_spacing) / radius,
    )


def _stem_profile(look: Look, y: NDArray[np.float64], attached: float) -> tuple[NDArray[np.float64], float, float]:
    """Returns the radius of the stem at heights `y`, and the heights between which it is a ring."""
    length, width = look.stem_length, look.stem_radius
    up = np.clip(y / length, 0, 1.3)
    # It widens a little where it meets the cap.
    stem = width * (1 + look.stem_taper * (0.5 - up)) + width * np.clip(up - 0.9, 0, 1)
    ring_from = ring_to = 0.0
    if look.ring:
        ring_to = 0.74 * length
        ring_from = ring_to - max(0.11 * length, 0.14)
        hang = np.clip((ring_to - y) / (ring_to - ring_from), 0, 1)
        hem = np.clip((y - ring_from) / (0.2 * (ring_to - ring_from)), 0, 1)
        stem = stem + (0.06 + 0.5 * width) * np.where(y > ring_from, hang**0.7, 0) * np.sqrt(hem)
    foot = 0.5 * width
    if look.base == "bulb":
        swelling = 0.07 + 0.5 * width
        stem = stem + swelling * np.exp(-(((y - 0.8 * swelling) / (1.3 * swelling)) ** 2))
        foot = 0.8 * (width + swelling)
    if look.base == "volva":
        cup, sheath = 0.22 * length + 0.1, 1.25 * width + 0.08
        lobes = (0.9 + 0.18 * (y / cup) ** 3) * np.sqrt(np.clip((1.02 * cup - y) / (0.15 * cup), 0, 1))
        stem = np.maximum(stem, np.where(y < 1.02 * cup, sheath * lobes, 0))
        foot = sheath
    rounded = np.clip(y / foot, 0, 1)
    stem = stem * np.sqrt(1 - (1 - rounded) ** 2)
    # It ends inside the cap, where it cannot be seen.
    return np.where(y > attached, 0.0, stem), ring_from, ring_to


def _slope(profile: NDArray[np.float64], along: NDArray[np.float64]) -> Array:
    # Held below vertical: the edge of the cap and of the ring are closed by their own planes.
    return np.clip(np.gradient(profile, along), -6, 6).astype(np.float32)


def _flatness(slope: Array) -> Array:
    return np.cos(np.arctan(slope))


def trace(shape: Shape, across: Array, up: Array, pitch: float, *, pixel: float) -> Hits:
    """Follows parallel rays until they meet the mushroom.

    Args:
        shape: What is looked at.
        across: (n,) where each ray passes the picture plane, to the right of the foot.
        up: (n,) the same, above the foot.
        pitch: How far the camera looks down on the mushroom, in radians; below 0 it looks up.
        pixel: Width of a pixel; a ray that comes closer than half of it has arrived.
    """
    sin, cos = np.float32(np.sin(pitch)), np.float32(np.cos(pitch))
    y0, z0 = up * cos, -up * sin
    depth, far = _bounds(shape, across, y0, z0, sin, cos)
    alive = np.flatnonzero(depth > far)
    arrived: list[Indices] = []
    x_alive, y_alive, z_alive, depth_alive, far = across[alive], y0[alive], z0[alive], depth[alive], far[alive]
    for step in range(_MOST_STEPS):
        cap, stem = distances(shape, x_alive, y_alive + depth_alive * sin, z_alive + depth_alive * cos)[:2]
        gap = np.minimum(cap, stem)
        depth_alive = np.subtract(depth_alive, gap * _STEP_SHARE, dtype=np.float32)
        if step % _STEPS_BETWEEN_SORTING == _STEPS_BETWEEN_SORTING - 1 or step == _MOST_STEPS - 1:
            depth[alive] = depth_alive
            there = gap < 0.5 * pixel
            arrived.append(alive[there])
            on = ~there & (depth_alive > far)
            alive, x_alive, y_alive, z_alive = alive[on], x_alive[on], y_alive[on], z_alive[on]
            depth_alive, far = depth_alive[on], far[on]
            if not len(alive):
                break
    rays = np.sort(np.concatenate(arrived))
    depth = depth[rays]
    return _surface(shape, rays, across[rays], y0[rays] + depth * sin, z0[rays] + depth * cos)


def _bounds(shape: Shape, x: Array, y0: Array, z0: Array, sin: np.float32, cos: np.float32) -> tuple[Array, Array]:
    """Returns the depths at which rays enter and leave the box around the mushroom; the former is less where none."""
    margin = np.float32(shape.waviness + shape.tooth)
    widest = np.float32(max(shape.radius, float(shape.stem.max()))) + margin
    shift = np.float32(abs(shape.bend))
    chord = np.sqrt(np.maximum(widest**2 - np.maximum(np.abs(x) - shift, 0) ** 2, 0)) + np.float32(1e-4)
    cos = np.float32(max(float(cos), 1e-3))
    enter, leave = (chord - z0) / cos, (-chord - z0) / cos
    enter[chord < 2e-4] = -np.inf
    if abs(sin) > 1e-3:
        over, under = (np.float32(shape.height) + margin - y0) / sin, (-margin - y0) / sin
        enter = np.minimum(enter, np.maximum(over, under))
        leave = np.maximum(leave, np.minimum(over, under))
    return enter.astype(np.float32), leave.astype(np.float32)


def distances(shape: Shape, x: Array, y: Array, z: Array) -> tuple[Array, Array, Array, Array, Array, Indices, Indices]:
    """Returns how far points are from cap and stem, and what the surface needs to know.

    Returns:
        Distance to the cap, to the stem, height above the cap's upper face, depth below its lower face, distance
        from the axis, and the rows of the cap's and the stem's tables. Distances are lower bounds, or nearly so.
    """
    share = y * np.float32(1 / shape.height)
    x = x - np.float32(shape.bend) * np.clip(share, 0, 1) ** 2
    r = np.sqrt(x * x + z * z)
    rho = r * np.float32(1 / shape.radius)
    at = np.minimum(rho * np.float32(_ENTRIES - 1), np.float32(_ENTRIES - 1)).astype(np.intp)
    lifted = y
    if shape.waviness > 0.01:
        kx, kz, phase = shape.wave
        swell = np.sin(x * np.float32(kx / shape.radius) + z * np.float32(kz / shape.radius) + np.float32(phase))
        lifted = y - swell * (np.minimum(rho * rho, 1) * np.float32(shape.waviness))
    above = (lifted - shape.top[at]) * shape.top_flatness[at]
    below = (shape.under[at] - lifted) * shape.under_flatness[at]
    if shape.tooth:
        k = np.float32(shape.tooth_frequency)
        spikes = np.maximum(np.sin(x * k + z * (k * np.float32(0.3))) * np.sin(z * k - x * (k * np.float32(0.3))), 0)
        below = below * np.float32(0.55) - spikes * np.float32(0.55 * shape.tooth) * (rho < 0.97)
    cap = np.maximum(np.maximum(above, below), r - np.float32(shape.radius))
    level = np.clip(share * np.float32(_ENTRIES - 1), 0, _ENTRIES - 1).astype(np.intp)
    stem = (r - shape.stem[level]) * shape.stem_flatness[level]
    stem = np.maximum(stem, np.maximum(-y, y - np.float32(shape.height)))
    return cap, stem, above, below, r, at, level


def _surface(shape: Shape, rays: Indices, x: Array, y: Array, z: Array) -> Hits:
    cap, stem, above, below, r, at, level = distances(shape, x, y, z)
    x = x - np.float32(shape.bend) * np.clip(y / np.float32(shape.height), 0, 1) ** 2
    on_cap = cap < stem
    # The rim is a band of its own: it looks outward, and it is skin.
    on_rim = on_cap & (r - np.float32(shape.radius) > np.maximum(above, below))
    on_top = on_cap & ((above >= below) | on_rim)
    part = np.where(on_top, CAP, np.where(on_cap, UNDERSIDE, STEM)).astype(np.int8)
    part[(part == STEM) & (y > shape.ring_from) & (y < shape.ring_to)] = RING
    slope = np.where(on_top, np.where(on_rim, 2, -shape.top_slope[at]), np.where(on_cap, shape.under_slope[at], 1))
    rise = np.where(on_top, 1, np.where(on_cap, -1, -shape.stem_slope[level]))
    outward = slope / np.maximum(r, 1e-4)
    normal = np.stack([x * outward, rise, z * outward]).astype(np.float32)
    normal /= np.sqrt((normal**2).sum(axis=0))
    return Hits(rays, part, x, y, z, normal, r * np.float32(1 / shape.radius))
