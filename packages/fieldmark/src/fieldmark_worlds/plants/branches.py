"""The shape of a branch: a stem, leaves on its nodes and flowers at its end, as outlines in a plane.

Lengths are shares of the length of the stem, which grows upward from (0, 0).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldmark_worlds.plants.plant_looks import PlantLook

Points = NDArray[np.float64]
# How many points an outline has on each side.
OUTLINE_POINTS = 40
LEAFLET_PAIRS, FINGERS = 4, 5
# Nodes begin this far up the stem, and the flowers sit on its end.
FIRST_NODE = 0.14


@dataclass(frozen=True)
class Blade:
    """A leaf, a leaflet or a petal: its outline and its veins, each a line of points.

    Attributes:
        outline: The points around it.
        veins: Lines of two points or more, the midrib first.
        kind: "leaf" or "petal".
        light: How bright it is among its like.
    """

    outline: Points
    veins: tuple[Points, ...]
    kind: str
    light: float = 1.0


@dataclass(frozen=True)
class Branch:
    """A branch: the line of its stem, its blades from back to front, and the hearts of its flowers."""

    stem: Points
    stalks: tuple[Points, ...]
    blades: tuple[Blade, ...]
    hearts: tuple[tuple[float, float, float], ...]

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, bottom, right and top of everything."""
        points = np.concatenate([self.stem, *(blade.outline for blade in self.blades)])
        (left, bottom), (right, top) = points.min(axis=0), points.max(axis=0)
        return float(left), float(bottom), float(right), float(top)


def grow_branch(look: PlantLook, rng: np.random.Generator, *, flat: bool) -> Branch:
    """Grows a branch.

    Args:
        look: The individual.
        rng: Chance in bends, sizes and poses.
        flat: Whether it is pressed: all blades lie in the plane. In life they turn, and are seen at a slant.
    """
    stem = _stem(rng, bend=0.25 if flat else 0.4)
    blades: list[Blade] = []
    heights = np.linspace(FIRST_NODE, 0.93, look.nodes)
    per_node = {"alternate": 1, "opposite": 2, "whorled": 4}[look.arrangement]
    for number, height in enumerate(heights):
        foot, along = _on_stem(stem, float(height))
        size = look.leaf_length * (1.05 - 0.5 * float(height)) * float(rng.normal(1, 0.1))
        for place in range(per_node):
            side = (1 if (number + place) % 2 else -1) * (1.0 if place < 2 else 0.45)
            angle = along + side * (look.leaf_angle + float(rng.normal(0, 0.12)))
            slant = 1.0 if flat else float(rng.uniform(0.45, 1.0))
            light = 1.0 + float(rng.normal(0, 0.06 if flat else 0.16))
            blades += leaf_blades(look, foot, angle, size, slant, light)
    rng.shuffle(blades)
    stalks, petals, hearts = _flowers(look, stem, rng, flat=flat)
    return Branch(stem, tuple(stalks), (*blades, *petals), tuple(hearts))


def _stem(rng: np.random.Generator, bend: float) -> Points:
    height = np.linspace(0, 1, 30)
    curve = rng.normal(0, bend) * height**2 + rng.normal(0, 0.03) * np.sin(5 * height)
    return np.column_stack([curve, height])


def _on_stem(stem: Points, height: float) -> tuple[Points, float]:
    """A point of the stem and its direction there, radians from the x axis."""
    place = min(int(height * (len(stem) - 1)), len(stem) - 2)
    step = stem[place + 1] - stem[place]
    return stem[place], float(np.arctan2(step[1], step[0]))


def leaf_blades(look: PlantLook, foot: Points, angle: float, size: float, slant: float, light: float) -> list[Blade]:
    """The blades of one leaf: one, or the leaflets of a compound leaf."""
    if look.leaf_form in ("simple", "lobed"):
        return [_blade(look, foot, angle, size, slant, light)]
    blades = []
    if look.leaf_form == "palmate":
        for finger in np.linspace(-1.1, 1.1, FINGERS):
            length = size * (0.85 - 0.2 * abs(float(finger)))
            blades.append(_blade(look, foot, angle + float(finger) * slant, length, slant, light, narrow=0.55))
        return blades
    direction = np.array([np.cos(angle), np.sin(angle)])
    for pair in range(LEAFLET_PAIRS):
        at = foot + direction * size * (0.3 + 0.25 * pair)
        for side in (-1, 1):
            blades.append(_blade(look, at, angle + side * 1.0 * slant, size * 0.42, slant, light, narrow=0.8))
    blades.append(_blade(look, foot + direction * size * 1.1, angle, size * 0.42, slant, light, narrow=0.8))
    return blades


def _blade(
    look: PlantLook, foot: Points, angle: float, size: float, slant: float, light: float, narrow: float = 1.0
) -> Blade:
    along = np.linspace(0, 1, OUTLINE_POINTS)
    half = half_breadth(look, along) * look.leaf_breadth * narrow / 2
    veins = [np.array([[0.0, 0.0], [0.96, 0.0]])]
    for start in np.linspace(0.1, 0.8, look.veins):
        reach = float(np.interp(start + 0.12, along, half)) * 0.85
        veins += [np.array([[start, 0.0], [start + 0.12, side * reach]]) for side in (-1, 1)]
    outline = np.concatenate([np.column_stack([along, half]), np.column_stack([along, -half])[::-1]])
    turn = _turn(angle, size, slant)
    return Blade(foot + outline @ turn, tuple(foot + vein @ turn for vein in veins), "leaf", light)


def half_breadth(look: PlantLook, along: Points) -> Points:
    """The outline of a leaf: half its breadth along its length, at most 1."""
    x = np.clip(along, 1e-4, 1 - 1e-4)
    base, tip, widest = look.leaf_base, look.leaf_tip, look.leaf_widest
    profile = (x / widest) ** (base * widest / (1 - widest + widest)) * ((1 - x) / (1 - widest)) ** tip
    profile = profile / profile.max()
    if look.leaf_form == "lobed":
        profile = profile * (0.62 + 0.38 * np.cos(2 * np.pi * 3.5 * x) ** 2)
    if look.tooth_depth:
        profile = profile * (1 - look.tooth_depth * ((x * look.teeth) % 1.0))
    return np.asarray(profile)


def _turn(angle: float, size: float, slant: float) -> Points:
    """What takes a blade along the x axis to its size, slant and direction."""
    cos, sin = np.cos(angle), np.sin(angle)
    return size * np.array([[cos, sin], [-sin * slant, cos * slant]])


def _flowers(
    look: PlantLook, stem: Points, rng: np.random.Generator, *, flat: bool
) -> tuple[list[Points], list[Blade], list[tuple[float, float, float]]]:
    """Stalks, petals and hearts of the flowers at the end of the branch."""
    stalks, petals, hearts = [], [], []
    number = 1 if look.inflorescence == "solitary" else max(2, look.flowers)
    for flower in range(number):
        top, along = _on_stem(stem, 0.97)
        center = top + np.array([np.cos(along), np.sin(along)]) * 0.08
        if look.inflorescence == "umbel":
            fan = along + (flower / max(number - 1, 1) - 0.5) * 2.2
            center = top + 0.2 * np.array([np.cos(fan), np.sin(fan)])
        elif look.inflorescence == "spike":
            center = top + np.array([0.07 * (-1) ** flower, 0.06 + 0.07 * flower])
        stalks.append(np.stack([top, center]))
        slant = float(rng.uniform(0.55, 1.0)) if not flat else float(rng.uniform(0.8, 1.0))
        scale = look.petal_length * float(rng.normal(1, 0.08)) * (1.0 if number == 1 else 0.75)
        first = float(rng.uniform(0, 2 * np.pi))
        for petal in range(look.petals):
            turned = first + 2 * np.pi * petal / look.petals
            petals.append(_petal(look, center, turned, scale, slant, 1.0 + float(rng.normal(0, 0.06))))
        hearts.append((float(center[0]), float(center[1]), scale * 0.22))
    return stalks, petals, hearts


def _petal(look: PlantLook, center: Points, angle: float, size: float, slant: float, light: float) -> Blade:
    along = np.linspace(0, 1, 14)
    half = np.sin(np.pi * along**0.8) * look.petal_breadth / 2
    outline = np.concatenate([np.column_stack([along, half]), np.column_stack([along, -half])[::-1]])
    turned = outline @ _turn(angle, size, 1.0)
    turned[:, 1] *= slant
    return Blade(center + turned, (), "petal", light)
