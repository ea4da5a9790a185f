"""What a describing model would say about a photo: what can be seen on it, in sentences, and never the species.

Workers import this module afresh, so it imports no table library.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from fieldmark_worlds.fungi.looks import Color, Look, look_of
from fieldmark_worlds.nature.kingdom import Specimen

# A describing model fails now and then; its answer is then empty.
FAILED_SHARE = 0.02

_COLOR_NAMES = {
    "white": (240, 238, 230),
    "cream": (232, 214, 176),
    "yellow": (222, 186, 84),
    "ochre": (186, 142, 78),
    "orange": (214, 118, 48),
    "red": (184, 54, 42),
    "pinkish": (216, 172, 152),
    "reddish brown": (138, 76, 58),
    "brown": (118, 82, 54),
    "dark brown": (70, 50, 40),
    "olive": (128, 122, 74),
    "gray": (138, 134, 130),
    "dark gray": (84, 80, 80),
    "black": (40, 36, 36),
}
_OPENINGS = ("The image shows", "This photo shows", "The photograph captures", "In this image there is")
_TEXTURES = {
    "smooth": "a smooth surface",
    "scaly": "a surface covered with darker scales",
    "spotted": "pale warts scattered over it",
    "striate": "fine lines running toward its margin",
}
_UNDERSIDES = {
    "gills": "gills",
    "pores": "a layer of small pores",
    "teeth": "short hanging teeth",
    "ridges": "blunt ridges",
}
_BASES = {"plain": "", "bulb": ", swollen at its base", "volva": ", rising from a pale sack at its base"}


def caption_of(specimen: Specimen, visible: Collection[str], rng: np.random.Generator) -> str:
    """Describes a photo of a specimen.

    Args:
        specimen: Its traits by name.
        visible: Parts that can be seen: of "cap", "stem", "ring" and what is under the cap; or "spores".
        rng: Chance in the wording and in what is left unsaid.
    """
    look = look_of(specimen)
    if rng.random() < FAILED_SHARE:
        return ""
    opening = _OPENINGS[int(rng.integers(len(_OPENINGS)))]
    if "spores" in visible:
        return (
            f"{opening} a microscopic view of {color_name(look.underside_color)} spores on a bright background. "
            f"They are {'roundish' if look.underside_spacing > 0.6 else 'elongated'} with a thin wall."
        )
    sentences = [f"{opening} a mushroom{'' if rng.random() < 0.5 else ' growing outdoors'}."]
    # Not everything that can be seen is mentioned.
    sentences += [sentence for sentence in _sentences(look, visible) if rng.random() < 0.9]
    return " ".join(sentences)


def color_name(color: Color) -> str:
    """Returns the everyday word for a color in linear light."""
    seen = np.sqrt(np.clip(color, 0, 1)) * 255
    return min(_COLOR_NAMES, key=lambda name: float(((seen - np.array(_COLOR_NAMES[name])) ** 2).sum()))


def _sentences(look: Look, visible: Collection[str]) -> list[str]:
    sentences = []
    if "cap" in visible:
        steepness = look.cap_height / look.cap_radius
        form = "conical" if steepness > 0.95 else "convex" if steepness > 0.5 else "flattened"
        middle = (
            " with a knob at its center" if look.umbo > 0.15 else " with a hollow center" if look.umbo < -0.15 else ""
        )
        article = "an" if color_name(look.cap_color)[0] in "aeiou" else "a"
        sentences.append(
            f"It has {article} {color_name(look.cap_color)}, {form} cap{middle} and {_TEXTURES[look.texture]}."
        )
        if look.gloss > 0.7:
            sentences.append("The cap looks glossy or wet.")
    if look.underside in visible:
        spacing = ""
        if look.underside == "gills":
            spacing = (
                "crowded "
                if look.underside_spacing < 0.4
                else "widely spaced "
                if look.underside_spacing > 0.65
                else ""
            )
        where = f"{spacing}{color_name(look.underside_color)} {_UNDERSIDES[look.underside]}"
        if look.underside == "pores":
            where = f"{_UNDERSIDES['pores']} of {color_name(look.underside_color)} color"
        sentences.append(f"Under the cap there {'is' if look.underside == 'pores' else 'are'} {where}.")
    if "stem" in visible:
        build = "slender" if look.stem_length / look.stem_radius > 10 else "stout"
        sentences.append(f"The stem is {build} and {color_name(look.stem_color)}{_BASES[look.base]}.")
    if "ring" in visible:
        sentences.append("There is a ring on the stem.")
    return sentences
