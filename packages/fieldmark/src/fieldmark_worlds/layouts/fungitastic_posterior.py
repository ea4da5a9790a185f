"""The exact posterior behind the open-set test photos of a world in the layout of FungiTastic.

The world is grown again from its size and seed, which takes seconds and paints nothing. Decisions made with this
posterior bound what any classifier of the pixels can be expected to reach.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from fieldmark.tables.labels import UNKNOWN_NAME
from fieldmark_worlds.layouts.fungitastic import describe
from fieldmark_worlds.layouts.fungitastic_finds import EXTENTS, TEST_YEAR, find
from fieldmark_worlds.layouts.fungitastic_tables import FULL, class_ids
from fieldmark_worlds.layouts.release_files import Size, extent_of, prior_over
from fieldmark_worlds.nature.nature import grow_nature
from fieldmark_worlds.nature.posterior import ClassPosterior, log_posterior


def open_posterior(size: str, seed: int, *, context: bool = False) -> ClassPosterior:
    """Returns the posterior of every open-set test photo of the world of this size and seed.

    Args:
        size: The size of the world.
        seed: The seed of the world.
        context: Whether day, habitat, substrate, place and observer are known as well as the traits.
    """
    extent = extent_of(EXTENTS, cast(Size, size))
    nature = grow_nature(extent.nature, seed)
    finds = find(nature, extent, seed)
    photos = describe(nature, finds, seed)
    rows = finds.of("test", ~finds.few_shot)
    share = len(finds.of("test", finds.known)) / len(rows)
    prior = share * prior_over(nature, [TEST_YEAR], finds.known)
    prior = prior + (1 - share) * prior_over(nature, [TEST_YEAR], finds.unknown)
    seen = finds.seen.take(rows)
    by_species = np.exp(log_posterior(nature, seen.traits, prior=prior, context=seen if context else None))

    ids = class_ids(photos, FULL)
    together = np.zeros((len(rows), len(ids) + 1))
    together[:, -1] = by_species[:, finds.unknown].sum(axis=1)
    named = dict(photos.select("row", "scientificName").unique().iter_rows())
    species = {ids[name]: int(finds.seen.species[row]) for row, name in named.items() if name in ids}
    for number, one in species.items():
        together[:, number] = by_species[:, one]
    place = {int(row): number for number, row in enumerate(rows)}
    shown = [(name, place[row]) for name, row in photos.select("filename", "row").iter_rows() if row in place]
    return ClassPosterior(
        items=tuple(name for name, _ in shown),
        labels=(*(str(number) for number in range(len(ids))), UNKNOWN_NAME),
        probabilities=together[[row for _, row in shown]],
    )
