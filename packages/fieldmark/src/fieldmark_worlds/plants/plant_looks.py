"""How the traits of an individual look: measures within bounds, colors of the living and of the pressed plant."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass

import numpy as np

from fieldmark_worlds.nature.kingdom import Specimen

Color = tuple[float, float, float]
# What every pressed plant turns to; how far, differs between leaves and petals.
DRIED: Color = (0.42, 0.33, 0.19)
DRIED_PETAL: Color = (0.55, 0.43, 0.28)
LEAF_FADES, PETAL_FADES = 0.72, 0.8
PETALS = {"3": 3, "4": 4, "5": 5, "6": 6, "many": 11}


@dataclass(frozen=True)
class PlantLook:
    """An individual in measures: lengths as shares of the length of a branch, colors between 0 and 1.

    Attributes:
        leaf_length, leaf_breadth: Length, and breadth as a share of it.
        leaf_widest: Where along a leaf it is widest, from its base.
        leaf_tip, leaf_base: How pointed both ends are: exponents of the outline.
        leaf_form, arrangement, inflorescence: As the kingdom names them.
        tooth_depth, teeth: Depth of the teeth as a share of the breadth (0 for none), and their number on each side.
        veins, vein_contrast: Side veins on each side, and how much they stand out.
        leaf_angle: Between leaf and stem, radians.
        nodes: How many nodes with leaves a branch has.
        stem_width: Of the stem at its foot.
        petals, petal_length, petal_breadth: Their number, length, and breadth as a share of it.
        flowers: How many there are on a branch.
        gloss: How much leaves shine.
        leaf, petal: Colors in life.
    """

    leaf_length: float
    leaf_breadth: float
    leaf_widest: float
    leaf_tip: float
    leaf_base: float
    leaf_form: str
    arrangement: str
    inflorescence: str
    tooth_depth: float
    teeth: int
    veins: int
    vein_contrast: float
    leaf_angle: float
    nodes: int
    stem_width: float
    petals: int
    petal_length: float
    petal_breadth: float
    flowers: int
    gloss: float
    leaf: Color
    petal: Color

    @property
    def pressed_leaf(self) -> Color:
        """The color of a leaf after drying."""
        return mixed(self.leaf, DRIED, LEAF_FADES)

    @property
    def pressed_petal(self) -> Color:
        """The color of a petal after drying."""
        return mixed(self.petal, DRIED_PETAL, PETAL_FADES)


def mixed(one: Color, other: Color, share: float) -> Color:
    """Two colors, the second with the given share."""
    red, green, blue = (a + (b - a) * share for a, b in zip(one, other, strict=True))
    return red, green, blue


def look_of_plant(specimen: Specimen) -> PlantLook:
    """The look of an individual from its traits."""

    def between(low: float, high: float, trait: str) -> float:
        return low + (high - low) / (1 + float(np.exp(-1.3 * float(specimen[trait]))))

    toothed = specimen["margin"] == "toothed"
    leaf = colorsys.hsv_to_rgb(between(0.2, 0.42, "leaf_hue"), 0.62, between(0.26, 0.68, "leaf_lightness"))
    lightness = between(0.0, 1.0, "petal_lightness")
    petal = colorsys.hsv_to_rgb(
        between(-0.25, 0.95, "petal_hue") % 1.0, 1.0 - 0.75 * lightness, 0.72 + 0.26 * lightness
    )
    return PlantLook(
        leaf_length=between(0.16, 0.42, "leaf_size"),
        leaf_breadth=between(0.14, 0.95, "leaf_breadth"),
        leaf_widest=between(0.22, 0.74, "leaf_widest"),
        leaf_tip=between(0.35, 1.9, "leaf_tip"),
        leaf_base=between(0.3, 1.5, "leaf_base"),
        leaf_form=str(specimen["leaf_form"]),
        arrangement=str(specimen["arrangement"]),
        inflorescence=str(specimen["inflorescence"]),
        tooth_depth=between(0.08, 0.4, "tooth_depth") if toothed else 0.0,
        teeth=round(between(4, 16, "tooth_number")),
        veins=round(between(3, 13, "vein_number")),
        vein_contrast=between(0.05, 0.6, "vein_contrast"),
        leaf_angle=between(0.35, 1.35, "leaf_angle"),
        nodes=round(between(9, 4, "internode")),
        stem_width=between(0.008, 0.03, "stem_width"),
        petals=PETALS[str(specimen["petals"])],
        petal_length=between(0.05, 0.15, "petal_length"),
        petal_breadth=between(0.25, 0.95, "petal_breadth"),
        flowers=round(between(1, 8, "flower_number")),
        gloss=between(0.0, 0.5, "leaf_gloss"),
        leaf=leaf,
        petal=petal,
    )
