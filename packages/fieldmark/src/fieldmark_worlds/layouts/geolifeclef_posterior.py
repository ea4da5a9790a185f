"""The exact probability of every species at the places of test of a world in the layout of GeoLifeCLEF 2020.

The land is grown again from its size and seed, which takes seconds and writes nothing.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from fieldmark_worlds.land.whole_land import Notes
from fieldmark_worlds.layouts.geolifeclef import EXTENTS, LandExtent, grow_land, note_down
from fieldmark_worlds.layouts.release_files import Size, extent_of
from fieldmark_worlds.nature.posterior import ClassPosterior


def open_posterior(size: str, seed: int) -> ClassPosterior:
    """P(species | place) at every place of test: what the next individual noted there is."""
    return posterior_of(extent_of(EXTENTS, cast(Size, size)), seed)


def posterior_of(extent: LandExtent, seed: int) -> ClassPosterior:
    """The same for an extent of one's own."""
    land = grow_land(extent, seed)
    written = note_down(land, extent, seed)
    rows = np.flatnonzero((written.table["part"] == "test").to_numpy())
    kept = Notes(*(getattr(written.notes, name)[rows] for name in Notes.__dataclass_fields__))
    probabilities = np.empty((len(rows), len(land.flora)))
    for own, block in land.probabilities_of(kept):
        probabilities[own] = block
    return ClassPosterior(
        items=tuple(str(one) for one in written.table["id"].to_numpy()[rows]),
        labels=tuple(str(number) for number in range(len(land.flora))),
        probabilities=probabilities,
    )
