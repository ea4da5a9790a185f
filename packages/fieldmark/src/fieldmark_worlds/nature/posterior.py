"""What the traits of a specimen say about its species, exactly.

Species act on the pixels of a photo only through the traits, so that no classifier of pixels can be right more often
than the posterior given the traits, under the prior that the photos were drawn with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl

from fieldmark_worlds.nature.kingdom import Codes, Floats, Traits
from fieldmark_worlds.nature.nature import Nature
from fieldmark_worlds.nature.observations import Sightings


@dataclass(frozen=True)
class ClassPosterior:
    """What the traits say about the items of test in an open set, class by class.

    Attributes:
        items: The names of the items.
        labels: The names of the classes, "-1" for all unknown species together as the last.
        probabilities: (items, classes) P(class | traits), under the abundances of the test year.
    """

    items: tuple[str, ...]
    labels: tuple[str, ...]
    probabilities: Floats


class GrownLooks(Protocol):
    """What species look like: all that a likelihood of traits needs to know of a nature."""

    @property
    def means(self) -> Floats: ...

    @property
    def sds(self) -> Floats: ...

    @property
    def option_probabilities(self) -> tuple[Floats, ...]: ...


def log_likelihood(nature: GrownLooks, traits: Traits) -> Floats:
    """Returns (n, S): log P(traits | species), Gaussian for latents and categorical for options.

    The Gaussian factors are densities, so values may be above 0.
    """
    precision = 1 / nature.sds**2
    # (x - m)^2 / s^2 summed over traits, expanded so that it becomes matrix products over all species at once.
    squares = traits.latents**2 @ precision.T - 2 * traits.latents @ (nature.means * precision).T
    squares += (nature.means**2 * precision).sum(axis=1)
    result: Floats = -0.5 * squares - np.log(nature.sds).sum(axis=1)
    result -= 0.5 * np.log(2 * np.pi) * nature.means.shape[1]
    for i, probabilities in enumerate(nature.option_probabilities):
        result += np.log(probabilities).T[traits.options[:, i]]
    return result


def log_context(nature: Nature, observations: Sightings) -> Floats:
    """Returns (n, S): log P(day, habitat, substrate, place | species, observer)."""
    table, kingdom = observations.table, nature.settings.kingdom
    day = table["day"].to_numpy()
    habitat = _codes(table["habitat"], kingdom.habitats)
    substrate = _codes(table["substrate"], kingdom.substrates)
    cell, observer = table["cell"].to_numpy(), observations.observer_codes
    result: Floats = np.log(nature.day_probabilities).T[day]
    result += np.log(nature.habitat_probabilities).T[habitat] + np.log(nature.substrate_probabilities).T[substrate]
    reachable = nature.observers.travel @ nature.cell_affinity.T  # (observers, S): normalizes places per observer
    result += np.log(nature.cell_affinity).T[cell] - np.log(reachable)[observer]
    result += np.log(nature.observers.travel[observer, cell])[:, None]
    return result


def log_posterior(nature: Nature, traits: Traits, *, prior: Floats, context: Sightings | None = None) -> Floats:
    """Returns (n, S): log P(species | traits), or log P(species | traits, context) where a context is given.

    Args:
        nature: The nature the specimens came from.
        traits: The specimens.
        prior: (S,) share of each species among the finds, for example `nature.prior([2022])`; need not sum to one,
            and a species left out has 0.
        context: The observations of the same specimens, in the same order.
    """
    with np.errstate(divide="ignore"):  # a species that cannot occur is ruled out
        log_prior = np.log(prior)
    joint = log_likelihood(nature, traits) + log_prior
    if context is not None:
        joint += log_context(nature, context)
    highest = joint.max(axis=1, keepdims=True)
    normalizer = highest + np.log(np.exp(joint - highest).sum(axis=1, keepdims=True))
    posterior: Floats = joint - normalizer
    return posterior


def _codes(column: pl.Series, names: tuple[str, ...]) -> Codes:
    number = {name: i for i, name in enumerate(names)}
    return np.array([number[name] for name in column], dtype=np.int64)
