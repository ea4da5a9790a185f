"""One simulated nature, and the small releases that are written from it.

A world is not nature: every release written here carries `WORLD.json` at its root, which says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fieldmark.registry import Registry
from fieldmark.releases.record import OfRecords, ReleaseRecord

if TYPE_CHECKING:
    from fieldmark_worlds.nature.posterior import ClassPosterior


class Worlds(OfRecords[Callable[..., dict[str, object]]]):
    """The functions that write worlds, by the dataset whose layout they have."""

    def of(self, record: ReleaseRecord) -> Callable[..., dict[str, object]]:
        return self.at(record, "" if record.world is None else record.world.write)


WORLDS = Worlds("world", "world")

# Worlds that can compute how likely each class is given the traits, item by item: the bound that no method can pass.
# Called with the size and the seed of the world.
POSTERIORS: Registry[Callable[[str, int], ClassPosterior]] = Registry(
    "posterior",
    {
        "fungitastic": (
            "fieldmark_worlds.layouts.fungitastic_posterior:open_posterior",
            "known and unknown species of test",
        ),
        "geolifeclef-2020": (
            "fieldmark_worlds.layouts.geolifeclef_posterior:open_posterior",
            "species at the places of test",
        ),
    },
)
