"""The tree of an invented kingdom, and traits that drift down it.

Every taxon inherits the traits of its parent and departs from them by a random step. Species of one genus therefore
look alike, and genera of one family resemble each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from fieldmark_worlds.nature.kingdom import RANKS, Codes, Floats, Kingdom
from fieldmark_worlds.nature.latin_names import Namer

# Latent standard deviations: how far a taxon departs from its parent, and how far individuals of a species differ.
STEP = {"phylum": 0.3, "class": 0.4, "order": 0.5, "family": 0.8, "genus": 1.0, "species": 0.8}
WITHIN_SPECIES = 0.22
# Some species have a double: a sibling so like it that even the exact posterior confuses the two now and then. Without
# such pairs a nature that is learnable from a few photos would hold no species that is hard to tell from the traits.
LOOKALIKE_SHARE = 0.45
LOOKALIKE_STEP = 0.04
# Options of categorical traits (gills or pores) are mostly settled high in the tree.
LOGIT_STEP = {"phylum": 0.8, "class": 1.2, "order": 1.8, "family": 1.8, "genus": 1.8, "species": 1.4}
# Even a species that always has gills is sometimes seen otherwise; it also keeps every likelihood finite.
LEAST_OPTION_PROBABILITY = 0.005


@dataclass(frozen=True)
class GrownTaxonomy:
    """A grown taxonomy.

    Attributes:
        taxa: One row per species: `label` and the ranks, `species` being the binomial.
        genus_of: Number of the genus of each species.
        means: (species, continuous traits).
        sds: (species, continuous traits).
        option_probabilities: For each categorical trait (species, options).
    """

    taxa: pl.DataFrame
    genus_of: Codes
    means: Floats
    sds: Floats
    option_probabilities: tuple[Floats, ...]


def grow_tree(rng: np.random.Generator, kingdom: Kingdom, *, species: int, genera: int) -> GrownTaxonomy:
    """Grows a tree with so many species in so many genera; the ranks above follow from the number of genera."""
    parents = _parents_by_rank(rng, species, genera)
    means, logits = _drift(rng, kingdom, parents)
    sds = WITHIN_SPECIES * rng.lognormal(0, 0.2, size=means.shape) * [trait.within for trait in kingdom.continuous]
    return GrownTaxonomy(
        taxa=_named(rng, kingdom, parents),
        genus_of=parents["species"],
        means=means,
        sds=sds,
        option_probabilities=tuple(_softmax_with_floor(block) for block in logits),
    )


def _parents_by_rank(rng: np.random.Generator, species: int, genera: int) -> dict[str, Codes]:
    """Returns, for every rank below the kingdom, the number of each taxon's parent at the rank above."""
    families = max(1, round(genera / 1.6))
    orders = max(1, round(families / 1.6))
    classes = max(1, round(orders / 2))
    counts = {"phylum": max(1, round(classes / 2)), "class": classes, "order": orders, "family": families}
    counts |= {"genus": genera, "species": species}
    parents: dict[str, Codes] = {}
    above = 1
    for rank, count in counts.items():
        # Some parents are richer than others, but none is empty.
        weights = rng.dirichlet(np.full(above, 4.0))
        extra = rng.choice(above, size=count - above, p=weights)
        parents[rank] = np.sort(np.concatenate([np.arange(above), extra])).astype(np.int64)
        above = count
    return parents


def _drift(rng: np.random.Generator, kingdom: Kingdom, parents: dict[str, Codes]) -> tuple[Floats, list[Floats]]:
    means = np.array([[trait.mean for trait in kingdom.continuous]])
    spread = np.array([trait.drift for trait in kingdom.continuous])
    logits = [np.log(np.array([trait.typical])) for trait in kingdom.categorical]
    for rank, parent_of in parents.items():
        means = means[parent_of]
        means = means + STEP[rank] * spread * rng.standard_normal(means.shape)
        logits = [block[parent_of] for block in logits]
        logits = [block + LOGIT_STEP[rank] * rng.standard_normal(block.shape) for block in logits]
    return _make_lookalikes(rng, parents["species"], means, logits)


def _make_lookalikes(
    rng: np.random.Generator, genus_of: Codes, means: Floats, logits: list[Floats]
) -> tuple[Floats, list[Floats]]:
    """Lets some species resemble the one before them in their genus."""
    original = np.arange(len(genus_of))
    double = (rng.random(len(genus_of)) < LOOKALIKE_SHARE) & (genus_of == np.roll(genus_of, 1)) & (original > 0)
    for species in np.flatnonzero(double):
        # Pairs only: a double has no double of its own.
        if original[species - 1] == species - 1:
            original[species] = species - 1
    step = np.where(original == np.arange(len(genus_of)), 0.0, LOOKALIKE_STEP)[:, None]
    means = means[original] + step * rng.standard_normal(means.shape)
    return means, [block[original] + 2 * step * rng.standard_normal(block.shape) for block in logits]


def _softmax_with_floor(logits: Floats) -> Floats:
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    options = logits.shape[1]
    floored: Floats = LEAST_OPTION_PROBABILITY + (1 - options * LEAST_OPTION_PROBABILITY) * shares
    return floored


def _named(rng: np.random.Generator, kingdom: Kingdom, parents: dict[str, Codes]) -> pl.DataFrame:
    namer = Namer(rng)
    genera = [namer.genus() for _ in parents["genus"]]
    # Ancestors of each genus, by rank, from the bottom up; a higher taxon is named after its first genus.
    ancestor = np.arange(len(genera))
    names: dict[str, list[str]] = {}
    for rank, child in zip(("family", "order", "class", "phylum"), ("genus", "family", "order", "class"), strict=True):
        ancestor = parents[child][ancestor]
        first = {int(taxon): genera[i] for i, taxon in reversed(list(enumerate(ancestor)))}
        called = {taxon: namer.above(genus, kingdom.suffixes[rank]) for taxon, genus in sorted(first.items())}
        names[rank] = [called[int(taxon)] for taxon in ancestor]
    genus_of = parents["species"]
    columns: dict[str, list[str]] = {rank: [names[rank][g] for g in genus_of] for rank in RANKS[1:-2]}
    binomials = [f"{genera[g]} {namer.epithet()}" for g in genus_of]
    return pl.DataFrame(
        {
            "label": binomials,
            "kingdom": [kingdom.name] * len(binomials),
            **columns,
            "genus": [genera[g] for g in genus_of],
            "species": binomials,
        }
    )
