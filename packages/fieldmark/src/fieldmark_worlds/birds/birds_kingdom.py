"""The invented birds: what tells their voices apart, and what people call them."""

from __future__ import annotations

import numpy as np
import polars as pl

from fieldmark_worlds.nature.kingdom import Categorical, Continuous, Kingdom

SYLLABLES = ("a", "b", "c")


def _of_syllables(name: str, *, drift: float, within: float, mean: float = 0.0) -> tuple[Continuous, ...]:
    return tuple(Continuous(f"{name}_{which}", mean, drift, within) for which in SYLLABLES)


# Every trait drifts down the tree, so that birds of one genus sing alike. Pitch and the shapes of the syllables tell
# species apart; loudness and the tempo of the day vary as much between individuals.
BIRDS = Kingdom(
    name="Animalia",
    suffixes={"phylum": "ozoa", "class": "aves", "order": "iformes", "family": "idae"},
    habitats=("forest", "edge", "meadow", "wetland"),
    substrates=("canopy", "understory", "ground"),
    continuous=(
        Continuous("pitch", drift=1.0, within=0.35),
        Continuous("tempo", drift=0.7, within=0.8),
        Continuous("harmonics", mean=-0.9, drift=1.0, within=0.6),
        Continuous("roughness", mean=-1.2, drift=0.6, within=0.6),
        Continuous("loudness", drift=0.4, within=1.5),
        Continuous("pause", drift=0.6, within=1.0),
        *_of_syllables("step", drift=0.9, within=0.5),
        *_of_syllables("slope", drift=1.0, within=0.6),
        *_of_syllables("bend", drift=0.9, within=0.6),
        *_of_syllables("length", drift=1.0, within=0.5),
        *_of_syllables("repeats", mean=-0.2, drift=1.0, within=0.6),
        *_of_syllables("vibrato", mean=-0.9, drift=1.0, within=0.6),
    ),
    categorical=(
        Categorical("song", ("a", "ab", "aab", "abc", "aba", "abcb", "ac"), (0.15, 0.2, 0.13, 0.17, 0.13, 0.11, 0.11)),
        Categorical("call", ("a", "b", "c", "bb"), (0.3, 0.25, 0.3, 0.15)),
    ),
    peak_day=150.0,
    peak_spread_days=35.0,
)

# Words that no field guide puts together.
_LOOKS = """
Amber Ashen Barred Brindled Cinder Copper Dappled Dusky Fallow Frosted Gilded Hazel Inky Lichen Marbled Misty Mottled
Ochre Pale Pewter Russet Saffron Sable Sooty Straw Tawny Umber Veiled Waxen Whorled
"""
_KINDS = """
Chatling Cheeper Chimelet Flutelet Fluter Lispling Murmurling Peeplet Pipling Quaverling Reedlet Rattlet Sighlet Singlet
Tinklet Trillet Tremolet Twitterling Warblet Wheezlet Whistlet Zizzlet
"""


def name_birds(taxa: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Adds an English name and a class id to every species.

    Class ids look like the codes of eBird (six letters) but end in 0, which those never do.
    """
    genera = taxa["genus"].unique(maintain_order=True).to_list()
    known_kinds = _KINDS.split()
    kinds = [known_kinds[number % len(known_kinds)] for number in rng.permutation(len(genera))]
    kind_of = dict(zip(genera, kinds, strict=True))
    taken: set[str] = set()
    codes, names = [], []
    for genus, species in taxa.select("genus", "species").iter_rows():
        looks = [look for look in rng.permutation(_LOOKS.split()) if f"{look} {kind_of[genus]}" not in names]
        names.append(f"{looks[0]} {kind_of[genus]}" if looks else f"{species.split()[1].capitalize()} {kind_of[genus]}")
        stem = f"{genus[:3]}{species.split()[1][:3]}".lower()
        code = next(name for name in (f"{stem}{'' if n == 0 else n}0" for n in range(100)) if name not in taken)
        taken.add(code)
        codes.append(code)
    return taxa.with_columns(pl.Series("code", codes), pl.Series("common_name", names))
