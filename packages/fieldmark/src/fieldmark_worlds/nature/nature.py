"""One simulated nature: species with looks, seasons, habitats and abundances, all drawn from one seed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from fieldmark.errors import MisuseError
from fieldmark.settings import Settings
from fieldmark_worlds.nature.kingdom import Codes, Floats, Kingdom
from fieldmark_worlds.nature.taxa import grow_tree
from fieldmark_worlds.scenery.country import Country, Observers, gather_observers, grow_country

DAYS = 365


@dataclass(frozen=True)
class NatureSettings(Settings):
    """How rich a nature is.

    Args:
        species: How many there are, common and rare.
        genera: Into how many genera they fall.
        kingdom: What they are.
        years: The years that can be observed, in order.
        zipf: Exponent of the long tail of abundance: 0 for all equal, 1 for Zipf's law.
        year_walk: Standard deviation of the yearly step of log abundance.
        newcomers: Share of species that appear only in one of the later years.
        newcomers_from: First year in which a newcomer may appear.
        observers: How many people report.
    """

    species: int
    genera: int
    kingdom: Kingdom
    years: tuple[int, ...] = (2018, 2019, 2020, 2021, 2022)
    zipf: float = 1.0
    year_walk: float = 0.3
    newcomers: float = 0.08
    newcomers_from: int = 2021
    observers: int = 60

    def check_settings(self) -> None:
        if not 1 <= self.genera <= self.species:
            raise MisuseError(f"{self.species} species cannot fall into {self.genera} genera.")
        if self.newcomers_from not in self.years[1:]:
            raise MisuseError(
                f"Newcomers from {self.newcomers_from} need that year and an earlier one in {self.years}."
            )


@dataclass(frozen=True)
class Nature:
    """A nature that can be observed. Species are rows 0 to S - 1 everywhere.

    Given the species, traits, day, habitat, substrate and place (the last given the observer too) are independent, so
    that every likelihood has a closed form.

    Attributes:
        settings: What it was grown from.
        taxa: `label`, the ranks, `poisonous`, `first_year`; one row per species.
        genus_of: (S,) number of the genus.
        means: (S, continuous) mean latent of each trait.
        sds: (S, continuous) spread between individuals.
        option_probabilities: For each categorical trait (S, options).
        day_probabilities: (S, 365).
        habitat_probabilities: (S, habitats).
        substrate_probabilities: (S, substrates).
        cell_affinity: (S, cells) how well each cell suits the species.
        abundance: (years, S) share of each species among the finds of a year.
        country: Where it is.
        observers: Who looks.
    """

    settings: NatureSettings
    taxa: pl.DataFrame
    genus_of: Codes
    means: Floats
    sds: Floats
    option_probabilities: tuple[Floats, ...]
    day_probabilities: Floats
    habitat_probabilities: Floats
    substrate_probabilities: Floats
    cell_affinity: Floats
    abundance: Floats
    country: Country
    observers: Observers

    @property
    def labels(self) -> list[str]:
        """Binomials, in the order of the species."""
        return self.taxa["label"].to_list()

    def __len__(self) -> int:
        return self.taxa.height

    def prior(self, years: Iterable[int]) -> Floats:
        """Returns (S,) the share of each species among finds spread evenly over these years."""
        rows = [self.settings.years.index(year) for year in years]
        mean: Floats = self.abundance[rows].mean(axis=0)
        return mean


def grow_nature(settings: NatureSettings, seed: int) -> Nature:
    """Grows a nature; equal settings and seeds give equal natures."""
    # One stream per aspect: a change in one of them leaves the others as they were.
    tree_rng, season_rng, haunt_rng, range_rng, fate_rng, people_rng = (
        np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(6)
    )
    kingdom = settings.kingdom
    tree = grow_tree(tree_rng, kingdom, species=settings.species, genera=settings.genera)
    country = grow_country(range_rng)
    first_year, abundance = _fortunes(fate_rng, settings)
    return Nature(
        settings=settings,
        taxa=tree.taxa.with_columns(
            pl.Series("poisonous", _poison(fate_rng, tree.genus_of)), pl.Series("first_year", first_year)
        ),
        genus_of=tree.genus_of,
        means=tree.means,
        sds=tree.sds,
        option_probabilities=tree.option_probabilities,
        day_probabilities=_seasons(season_rng, kingdom, settings.species),
        habitat_probabilities=_haunts(haunt_rng, tree.genus_of, len(kingdom.habitats)),
        substrate_probabilities=_haunts(haunt_rng, tree.genus_of, len(kingdom.substrates)),
        cell_affinity=_ranges(range_rng, country, settings.species),
        abundance=abundance,
        country=country,
        observers=gather_observers(people_rng, country, settings.observers),
    )


def _seasons(rng: np.random.Generator, kingdom: Kingdom, species: int) -> Floats:
    """Returns a bell around each species' own peak day that goes on over New Year (a discrete von Mises density)."""
    peak = rng.normal(kingdom.peak_day, kingdom.peak_spread_days, species)
    width_days = rng.uniform(16, 45, species)
    concentration = (DAYS / (2 * np.pi * width_days)) ** 2
    angle = 2 * np.pi * (np.arange(DAYS)[None, :] - peak[:, None]) / DAYS
    density = np.exp(concentration[:, None] * (np.cos(angle) - 1))
    shares: Floats = density / density.sum(axis=1, keepdims=True)
    return shares


def _haunts(rng: np.random.Generator, genus_of: Codes, choices: int) -> Floats:
    """Returns preferences over named choices: each genus has its own, each species varies them."""
    genera = int(genus_of.max()) + 1
    logits = rng.normal(0, 1.4, (genera, choices))[genus_of] + rng.normal(0, 0.7, (len(genus_of), choices))
    shares = np.exp(logits)
    preferences: Floats = 0.02 / choices + 0.98 * shares / shares.sum(axis=1, keepdims=True)
    return preferences


def _ranges(rng: np.random.Generator, country: Country, species: int) -> Floats:
    """Returns how well each cell suits each species: near the center of its range, and of the right climate."""
    center = rng.choice(len(country), size=species)
    radius_deg = rng.lognormal(np.log(1.6), 0.45, (species, 1))
    away = country.squared_distance_deg2(country.latitude[center], country.longitude[center]) / radius_deg**2
    warmer = (country.temperature_c[None, :] - country.temperature_c[center][:, None]) / 2.0
    wetter = (country.precipitation_mm[None, :] - country.precipitation_mm[center][:, None]) / 160.0
    affinity: Floats = np.exp(-0.5 * (away + warmer**2 + wetter**2)) + 1e-6
    return affinity


def _fortunes(rng: np.random.Generator, settings: NatureSettings) -> tuple[Codes, Floats]:
    """Returns the first year of each species and the shares of all species in each year."""
    species, years = settings.species, np.array(settings.years)
    rank = rng.permutation(species) + 1.0
    steps = rng.normal(0, settings.year_walk, (len(years), species))
    log_abundance = -settings.zipf * np.log(rank) + np.cumsum(steps, axis=0)
    first_year = np.full(species, years[0])
    newcomers = rng.permutation(species)[: round(settings.newcomers * species)]
    first_year[newcomers] = rng.choice(years[years >= settings.newcomers_from], size=len(newcomers))
    abundance = np.where(years[:, None] >= first_year[None, :], np.exp(log_abundance), 0.0)
    return first_year.astype(np.int64), abundance / abundance.sum(axis=1, keepdims=True)


def _poison(rng: np.random.Generator, genus_of: Codes) -> list[bool]:
    """Returns which species are poisonous: most genera have next to none, a few have little else."""
    by_genus = rng.beta(0.25, 0.9, int(genus_of.max()) + 1)
    return [bool(poisonous) for poisonous in rng.random(len(genus_of)) < by_genus[genus_of]]
