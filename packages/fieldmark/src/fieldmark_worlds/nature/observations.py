"""Going out and looking: observations of a nature, each with the traits of the specimen that was met.

Who observes is drawn without regard to what is found. The observer's camera therefore says nothing about the species,
and what the traits say about the species is all that a photo can say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import polars as pl

from fieldmark_worlds.nature.kingdom import Codes, Floats, Traits
from fieldmark_worlds.nature.nature import Nature
from fieldmark_worlds.scenery.country import scatter

# Shares of observations with 1, 2, 3 and 4 photos.
PHOTO_SHARES = (0.7, 0.19, 0.08, 0.03)
_ROWS_AT_ONCE = 2_000


@dataclass(frozen=True)
class Sightings:
    """What was seen.

    Attributes:
        table: One row per observation: `observation_id, species, label, date, year, month, day, latitude, longitude,
            cell, elevation_m, temperature_c, precipitation_mm, habitat, substrate, observer, photos`; `species`,
            `cell` and `day` (0 to 364) are numbers into the arrays of the nature.
        observer_codes: (n,) row of each observer in the nature's observers.
        traits: The specimens, in the same order.
    """

    table: pl.DataFrame
    observer_codes: Codes
    traits: Traits

    def __len__(self) -> int:
        return self.table.height

    @property
    def species(self) -> Codes:
        """(n,) the species of each observation."""
        return self.table["species"].to_numpy().astype(np.int64)

    def take(self, rows: Codes) -> Sightings:
        """Returns the observations with these row numbers, in this order."""
        return Sightings(self.table[rows], self.observer_codes[rows], self.traits.take(rows))

    @classmethod
    def together(cls, parts: Sequence[Sightings]) -> Sightings:
        """Returns several observations of one nature as one, in this order."""
        return cls(
            pl.concat([part.table for part in parts]),
            np.concatenate([part.observer_codes for part in parts]),
            Traits(
                parts[0].traits.kingdom,
                np.concatenate([part.traits.latents for part in parts]),
                np.concatenate([part.traits.options for part in parts]),
            ),
        )


def observe(
    nature: Nature, years: Sequence[int], count: int, rng: np.random.Generator, *, first_id: int = 1
) -> Sightings:
    """Draws observations in random order, spread evenly over some years.

    Args:
        nature: What there is to see.
        years: The years of the observations.
        count: How many.
        rng: The randomness of the finds.
        first_id: Number of the first observation.
    """
    year = rng.choice(np.array(years), size=count)
    species = np.empty(count, dtype=np.int64)
    for one in sorted(set(years)):
        here = np.flatnonzero(year == one)
        species[here] = rng.choice(len(nature), size=len(here), p=nature.prior([one]))
    observer = rng.choice(len(nature.observers.names), size=count, p=nature.observers.activity)
    cell = _pick_cells(nature, species, observer, rng)
    latitude, longitude = scatter(rng, nature.country, cell)
    day = _pick(nature.day_probabilities[species], rng)
    dates = [date(int(y), 1, 1) + timedelta(days=int(d)) for y, d in zip(year, day, strict=True)]
    kingdom, country = nature.settings.kingdom, nature.country
    habitat = _pick(nature.habitat_probabilities[species], rng)
    substrate = _pick(nature.substrate_probabilities[species], rng)
    table = pl.DataFrame(
        {
            "observation_id": np.arange(first_id, first_id + count),
            "species": species,
            "label": nature.taxa["label"].gather(species),
            "date": dates,
            "year": year,
            "month": [d.month for d in dates],
            "day": day,
            "latitude": latitude.round(4),
            "longitude": longitude.round(4),
            "cell": cell,
            "elevation_m": country.elevation_m[cell].round(0),
            "temperature_c": country.temperature_c[cell].round(1),
            "precipitation_mm": country.precipitation_mm[cell].round(0),
            "habitat": [kingdom.habitats[i] for i in habitat],
            "substrate": [kingdom.substrates[i] for i in substrate],
            "observer": [nature.observers.names[i] for i in observer],
            "photos": rng.choice(len(PHOTO_SHARES), size=count, p=PHOTO_SHARES) + 1,
        }
    )
    return Sightings(table, observer.astype(np.int64), draw_traits(nature, species, rng))


def draw_traits(nature: Nature, species: Codes, rng: np.random.Generator) -> Traits:
    """Draws one specimen of each of the species given."""
    latents = nature.means[species] + nature.sds[species] * rng.standard_normal((len(species), nature.means.shape[1]))
    options = [_pick(probabilities[species], rng) for probabilities in nature.option_probabilities]
    return Traits(nature.settings.kingdom, latents, np.column_stack(options))


def _pick_cells(nature: Nature, species: Codes, observer: Codes, rng: np.random.Generator) -> Codes:
    """Draws places that suit the species and lie where the observer goes."""
    cells = np.empty(len(species), dtype=np.int64)
    for start in range(0, len(species), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        cells[rows] = _pick(nature.cell_affinity[species[rows]] * nature.observers.travel[observer[rows]], rng)
    return cells


def _pick(weights: Floats, rng: np.random.Generator) -> Codes:
    """Draws one column per row, in proportion to the weights of that row."""
    cumulative = np.cumsum(weights, axis=1)
    drawn = rng.random(len(weights))[:, None] * cumulative[:, -1:]
    # A draw that rounds up to the very end would fall behind the last column.
    columns: Codes = np.minimum((cumulative <= drawn).sum(axis=1), weights.shape[1] - 1)
    return columns
