"""Which observations a world in the layout of FungiTastic holds, and where each of them belongs.

Splits are years. What train says about a species decides where its observations go: species with enough observations
are known, those with fewer are the few-shot ones, and those with none are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fieldmark_worlds.fungi.fungi_kingdom import FUNGI
from fieldmark_worlds.layouts.release_files import Size, finding_rng, within_budget
from fieldmark_worlds.nature.kingdom import Codes
from fieldmark_worlds.nature.nature import Nature, NatureSettings
from fieldmark_worlds.nature.observations import Sightings, observe

Split = Literal["train", "val", "test"]
Flags = NDArray[np.bool_]

VAL_YEAR, TEST_YEAR = 2022, 2023
YEARS = (1988, 2003, 2018, 2019, 2020, 2021, 2022, 2023)
# Most finds are recent; a year that is named more often has more of them.
_SPLIT_YEARS: dict[Split, tuple[int, ...]] = {
    "train": (1988, *(2003,) * 2, *(2018,) * 12, *(2019,) * 15, *(2020,) * 18, *(2021,) * 18),
    "val": (VAL_YEAR,),
    "test": (TEST_YEAR,),
}

DNA_SHARE = 0.1
# Of the observations with several photos, so many have one of their spores.
_MICROSCOPIC_SHARE = 0.12
# So many times more observations are drawn than fit, so that rare and unknown species turn up.
_DRAWN_PER_PHOTO = 12


@dataclass(frozen=True)
class FungiTasticExtent:
    """How much of a world is written.

    Attributes:
        nature: How rich the nature is.
        train_photos: At most so many photos in train.
        later_photos: At most so many photos of known, few-shot and unknown species in val and in test.
        few: A species with fewer train observations is a few-shot one.
        mini_genera: How many genera make up Mini.
    """

    nature: NatureSettings
    train_photos: int
    later_photos: Mapping[Split, tuple[int, int, int]]
    few: int
    mini_genera: int


EXTENTS: dict[Size, FungiTasticExtent] = {
    "tiny": FungiTasticExtent(
        NatureSettings(
            32, 8, FUNGI, years=YEARS, zipf=0.6, year_walk=0.1, newcomers=0.19, newcomers_from=VAL_YEAR, observers=25
        ),
        train_photos=166,
        later_photos={"val": (34, 8, 10), "test": (58, 10, 14)},
        few=3,
        mini_genera=2,
    ),
    "small": FungiTasticExtent(
        NatureSettings(160, 34, FUNGI, years=YEARS, zipf=0.8, year_walk=0.15, newcomers_from=VAL_YEAR, observers=80),
        train_photos=1750,
        later_photos={"val": (420, 40, 50), "test": (600, 50, 80)},
        few=5,
        mini_genera=6,
    ),
    "medium": FungiTasticExtent(
        NatureSettings(640, 120, FUNGI, years=YEARS, zipf=0.8, year_walk=0.15, newcomers_from=VAL_YEAR, observers=300),
        train_photos=12_000,
        later_photos={"val": (3_000, 250, 350), "test": (3_800, 250, 350)},
        few=5,
        mini_genera=6,
    ),
}


@dataclass(frozen=True)
class Finds:
    """All observations of a world, and what is to become of them.

    Attributes:
        seen: The observations.
        split: (n,) the split of each: "train", "val" or "test".
        dna: (n,) whether its DNA was sequenced.
        microscopic: (n,) whether its last photo shows spores.
        known: (S,) species with enough observations in train.
        few_shot: (S,) species with some, but too few.
        mini: (S,) species of the genera of Mini.
    """

    seen: Sightings
    split: NDArray[np.str_]
    dna: Flags
    microscopic: Flags
    known: Flags
    few_shot: Flags
    mini: Flags

    @property
    def unknown(self) -> Flags:
        """(S,) species without any observation in train."""
        return ~self.known & ~self.few_shot

    def of(self, split: Split, species: Flags) -> Codes:
        """Returns the rows of one split that show some of these species."""
        return np.flatnonzero((self.split == split) & species[self.seen.species]).astype(np.int64)


def find(nature: Nature, extent: FungiTasticExtent, seed: int) -> Finds:
    """Draws the observations of all splits."""
    rng = finding_rng(seed)
    train = observe(nature, _SPLIT_YEARS["train"], extent.train_photos, rng)
    train = train.take(within_budget(train, np.ones(len(train), dtype=np.bool_), extent.train_photos))
    times = np.bincount(train.species, minlength=len(nature))
    kinds = (times >= extent.few, (times > 0) & (times < extent.few), times == 0)
    parts: dict[Split, Sightings] = {"train": train}
    # Drawn observations that did not fit keep their numbers; the others are told apart by them.
    first_id = extent.train_photos + 1
    for split, budgets in extent.later_photos.items():
        drawn = observe(nature, _SPLIT_YEARS[split], _DRAWN_PER_PHOTO * sum(budgets), rng, first_id=first_id)
        first_id += len(drawn)
        rows = [within_budget(drawn, kind[drawn.species], most) for kind, most in zip(kinds, budgets, strict=True)]
        parts[split] = drawn.take(np.sort(np.concatenate(rows)))
    seen = Sightings.together(list(parts.values()))
    split_of = np.concatenate([np.full(len(part), split) for split, part in parts.items()])
    later = [parts[split].species for split in extent.later_photos]
    mini = _mini_species(nature, extent.mini_genera, [species[kinds[2][species]] for species in later])
    several = seen.table["photos"].to_numpy() > 1
    strata = [(split_of == split) & (mini[seen.species] == inside) for split in parts for inside in (True, False)]
    test_strata = [stratum & (split_of == "test") & kinds[0][seen.species] for stratum in strata]
    return Finds(
        seen=seen,
        split=split_of,
        dna=_some_of_each(rng, test_strata, DNA_SHARE, least=2),
        microscopic=_some_of_each(rng, [stratum & several for stratum in strata], _MICROSCOPIC_SHARE, least=1),
        known=kinds[0],
        few_shot=kinds[1],
        mini=mini,
    )


def _mini_species(nature: Nature, count: int, unknown: list[Codes]) -> Flags:
    """Returns the species of the genera that are found most often, one of which has unknown species too.

    Args:
        nature: The species.
        count: How many genera.
        unknown: The unknown species that were found in val, and those that were found in test.
    """
    genera = int(nature.genus_of.max()) + 1
    common = np.bincount(nature.genus_of, weights=nature.prior(YEARS[:-2]), minlength=genera)
    ranked = np.argsort(-common, kind="stable")
    chosen = ranked[:count].copy()
    surprising = np.logical_and.reduce([np.isin(ranked, nature.genus_of[species]) for species in unknown])
    if surprising.any() and not surprising[:count].any():
        chosen[-1] = ranked[surprising][0]
    return np.isin(nature.genus_of, chosen)


def _some_of_each(rng: np.random.Generator, strata: list[Flags], share: float, *, least: int) -> Flags:
    """Returns a share of every stratum, and at least so many where there are as many."""
    chosen = np.zeros(len(strata[0]), dtype=np.bool_)
    for stratum in strata:
        rows = np.flatnonzero(stratum)
        count = min(len(rows), max(least, round(share * len(rows))))
        chosen[rng.permutation(rows)[:count]] = True
    return chosen
