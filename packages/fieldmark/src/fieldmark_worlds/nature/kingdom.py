"""What a kingdom declares: its names, where and when its species live, and the traits by which they are told apart.

Nature (`nature.py`) grows species of any kingdom from such a declaration and knows nothing of how they are depicted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

# One individual: a latent value for every continuous trait, the option for every categorical one.
Specimen = Mapping[str, float | str]

RANKS = ("kingdom", "phylum", "class", "order", "family", "genus", "species")


@dataclass(frozen=True)
class Continuous:
    """A trait measured on an unbounded latent scale; the painter maps it to a bounded one.

    Args:
        name: As it is stored.
        mean: Latent value of a typical species of the kingdom.
        drift: How far species differ, relative to the other traits.
        within: Spread between individuals of one species, relative to the other traits.
    """

    name: str
    mean: float = 0.0
    drift: float = 1.0
    within: float = 1.0


@dataclass(frozen=True)
class Categorical:
    """A trait with named options and, for a typical species of the kingdom, their probabilities."""

    name: str
    options: tuple[str, ...]
    typical: tuple[float, ...]


@dataclass(frozen=True)
class Kingdom:
    """All that nature needs to know about a kingdom.

    Args:
        name: The kingdom.
        suffixes: Endings of the names of phylum, class, order and family.
        habitats: Where individuals are met.
        substrates: What they grow or sit on.
        continuous: Traits that vary on a scale.
        categorical: Traits with options.
        peak_day: Day of the year around which most species have their season.
        peak_spread_days: How far the seasons of species lie apart.
    """

    name: str
    suffixes: Mapping[str, str]
    habitats: tuple[str, ...]
    substrates: tuple[str, ...]
    continuous: tuple[Continuous, ...]
    categorical: tuple[Categorical, ...]
    peak_day: float
    peak_spread_days: float

    @property
    def trait_names(self) -> tuple[str, ...]:
        """Names of all traits, continuous ones first."""
        return (*(trait.name for trait in self.continuous), *(trait.name for trait in self.categorical))


@dataclass(frozen=True)
class Traits:
    """Traits of many individuals: latent values (n, continuous) and option codes (n, categorical)."""

    kingdom: Kingdom
    latents: Floats
    options: Codes

    def __len__(self) -> int:
        return len(self.latents)

    def take(self, rows: Codes) -> Traits:
        """Returns the individuals with these row numbers, in this order."""
        return Traits(self.kingdom, self.latents[rows], self.options[rows])

    def specimen(self, row: int) -> Specimen:
        """Returns one individual by trait name."""
        specimen: dict[str, float | str] = {
            trait.name: float(self.latents[row, i]) for i, trait in enumerate(self.kingdom.continuous)
        }
        for i, trait in enumerate(self.kingdom.categorical):
            specimen[trait.name] = trait.options[int(self.options[row, i])]
        return specimen
