from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

from fieldmark_worlds.nature.latin_names import REAL_GENERA, Namer
from fieldmark_worlds.nature.nature import Nature


def test_names_are_unique_and_never_a_well_known_genus() -> None:
    namer = Namer(np.random.default_rng(0))
    genera = [namer.genus() for _ in range(2000)]
    epithets = [namer.epithet() for _ in range(2000)]
    assert len(set(genera)) == len(set(epithets)) == 2000
    assert not REAL_GENERA & set(genera)
    assert all(re.fullmatch(r"[A-Z][a-z]{3,}", name) for name in genera)
    assert all(re.fullmatch(r"[a-z]{4,}", name) for name in epithets)


def test_a_well_known_genus_is_never_handed_out_even_when_the_syllables_spell_it() -> None:
    class Spelling(Namer):
        words = iter(["russula", "velarina"])

        def _word(self, endings: tuple[str, ...], *, most_syllables: int) -> str:
            return next(self.words)

    assert Spelling(np.random.default_rng(0)).genus() == "Velarina"


def test_equal_generators_give_equal_names() -> None:
    one, other = Namer(np.random.default_rng(5)), Namer(np.random.default_rng(5))
    assert [one.genus() for _ in range(20)] == [other.genus() for _ in range(20)]


def test_higher_taxa_bear_the_endings_of_their_rank_and_contain_whole_lower_taxa(nature: Nature) -> None:
    endings = {"phylum": "mycota", "class": "mycetes", "order": "ales", "family": "aceae"}
    for rank, ending in endings.items():
        assert nature.taxa[rank].str.ends_with(ending).all()
    ranks = ["phylum", "class", "order", "family", "genus"]
    for above, below in pairwise(ranks):
        assert nature.taxa.group_by(below).n_unique()[above].max() == 1
        assert nature.taxa[above].n_unique() <= nature.taxa[below].n_unique()
