"""Scientific names: who described a species, and which names are varieties of one and the same species.

A class is a scientific name, author and all. Some of them share their species: as varieties, or because two authors
are given for one binomial. Using the species as the class confuses them.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from fieldmark_worlds.nature.kingdom import Codes
from fieldmark_worlds.nature.latin_names import Namer
from fieldmark_worlds.nature.nature import Nature

# One pair of names that share their species for so many species, and at least one pair.
_SPECIES_PER_PAIR = 40
_RED_LIST_SHARES = {"NE": 0.84, "LC": 0.13, "VU": 0.03}


def name_species(nature: Nature, times: Codes, rng: np.random.Generator) -> pl.DataFrame:
    """Names every species as a checklist does.

    Args:
        nature: The species.
        times: (S,) how often each was found; the commonest siblings are taken for varieties of each other.
        rng: Chance in authors.

    Returns:
        One row per species of the nature: `scientificName`, the ranks (`species` being the binomial, which is not
        unique), `specificEpithet`, `iucnRedListCategory`, and `poisonous`, which is the same for names that share
        their species.
    """
    namer = Namer(rng)
    people = [_abbreviated(namer.surname(), rng) for _ in range(max(12, len(nature) // 5))]
    authors = _distinct_authors(people, len(nature), rng)
    binomials, poisonous = nature.taxa["species"].to_list(), nature.taxa["poisonous"].to_list()
    scientific = [f"{binomial} {author}" for binomial, author in zip(binomials, authors, strict=True)]
    for number, variety in enumerate(_varieties(nature, times)):
        own_epithet = binomials[variety].split()[1]
        binomials[variety], poisonous[variety] = binomials[variety - 1], poisonous[variety - 1]
        infraspecific = f" var. {own_epithet}" if number % 2 == 0 else ""
        scientific[variety] = f"{binomials[variety]}{infraspecific} {authors[variety]}"
    categories = rng.choice(list(_RED_LIST_SHARES), size=len(nature), p=list(_RED_LIST_SHARES.values()))
    return nature.taxa.drop("label", "first_year").with_columns(
        pl.Series("scientificName", scientific),
        pl.Series("species", binomials),
        pl.Series("specificEpithet", [binomial.split()[1] for binomial in binomials]),
        pl.Series("iucnRedListCategory", categories.tolist()),
        pl.Series("poisonous", [int(poison) for poison in poisonous]),
    )


def _varieties(nature: Nature, times: Codes) -> Codes:
    """Returns the species that become varieties of the one before them in their genus: the commonest such pairs."""
    pairs = np.flatnonzero(nature.genus_of[1:] == nature.genus_of[:-1]) + 1
    by_rarer = pairs[np.argsort(-np.minimum(times[pairs], times[pairs - 1]), kind="stable")]
    chosen: list[int] = []
    for species in by_rarer:
        if len(chosen) == max(1, len(nature) // _SPECIES_PER_PAIR):
            break
        if not {species - 1, species, species + 1} & set(chosen):
            chosen.append(int(species))
    return np.array(chosen, dtype=np.int64)


def _abbreviated(surname: str, rng: np.random.Generator) -> str:
    return f"{surname[: int(rng.integers(2, 5))]}." if rng.random() < 0.4 else surname


def _distinct_authors(people: list[str], count: int, rng: np.random.Generator) -> list[str]:
    """Returns authors of species; neighbors never have the same, so that one binomial can be given twice."""
    authors: list[str] = []
    while len(authors) < count:
        first, second, third = (people[i] for i in rng.choice(len(people), size=3, replace=False))
        kind = rng.choice(5, p=(0.3, 0.45, 0.1, 0.1, 0.05))
        author = (first, f"({first}) {second}", f"{first} & {second}", f"({first} & {second}) {third}")
        wording = f"({first} ex {second}) {third}" if kind == 4 else author[kind]
        if not authors or authors[-1] != wording:
            authors.append(wording)
    return authors
