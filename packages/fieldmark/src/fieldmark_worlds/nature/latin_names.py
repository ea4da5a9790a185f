"""Invented Latin names: they can be read aloud, they are unique, and they name nothing that lives.

>>> import numpy as np
>>> namer = Namer(np.random.default_rng(1))
>>> genus = namer.genus()
>>> namer.above(genus, "aceae").endswith("aceae")
True
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def _words(line: str) -> tuple[str, ...]:
    return tuple(line.split())


# Real genera that the syllables below could spell. An invented species must never be taken for one of these.
REAL_GENERA = frozenset(
    _words("""
    Agaricus Agrocybe Albatrellus Amanita Armillaria Auricularia Bolbitius Boletus Bovista Calocera Calocybe Calvatia
    Cantharellus Chlorociboria Clavaria Clavulina Clitocybe Collybia Conocybe Coprinus Cortinarius Craterellus
    Crepidotus Cyathus Cystoderma Daedalea Entoloma Exidia Fistulina Flammulina Fomes Galerina Ganoderma Geastrum
    Grifola Gymnopilus Gymnopus Gyromitra Hebeloma Helvella Hericium Hydnum Hygrocybe Hygrophorus Hypholoma Inocybe
    Laccaria Lactarius Laetiporus Leccinum Lentinus Lepiota Lepista Lycoperdon Macrolepiota Marasmius Melanoleuca
    Meripilus Morchella Mycena Omphalina Panaeolus Paxillus Peziza Phallus Pholiota Pleurotus Pluteus Polyporus
    Psathyrella Psilocybe Ramaria Rhodocybe Russula Sarcoscypha Schizophyllum Sparassis Stereum Strobilurus Stropharia
    Suillus Trametes Tremella Tricholoma Tuber Tubaria Tylopilus Volvariella Xerocomus Xylaria
    """)
)

_ONSETS = _words("b br c cl cr d dr f fl g gl gr h l m n p ph pl pr r rh s sc sp st t th tr v x")
_VOWELS = _words("a a e e i i o o u ae y")
_MIDDLES = _words("b c d g l ll m n nd nn p r rr s ss st t th v x nt lm rc")
_GENUS_ENDINGS = _words("ella ina aria opsis ia ula ites odon illus yce omyces oma ora istra anthus olepis")
_EPITHET_ENDINGS = _words(
    "atus ata osus osa ensis inus ina ulus ula escens ifer oides icola arius aria alis ellus ella"
)
_SURNAME_ENDINGS = _words("ander berg dahl el ert ik ila in ström ová ér üben ow ska")
_PLACE_ENDINGS = _words("by borg havn land mark næs ø sund å vig")
_MOST_TRIES = 10_000


class Namer:
    """Hands out names, none of them twice.

    Args:
        rng: Where the syllables come from; equal generators give equal names in equal order.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._taken: set[str] = set()

    def genus(self) -> str:
        """Returns a capitalized name such as `Velarina` that is no well-known genus."""
        return self._new(lambda: self._word(_GENUS_ENDINGS, most_syllables=2).capitalize(), REAL_GENERA)

    def epithet(self) -> str:
        """Returns a lower-case name such as `nostatus`."""
        return self._new(lambda: self._word(_EPITHET_ENDINGS, most_syllables=3), frozenset())

    def surname(self) -> str:
        """Returns a person's name such as `Travander`; some are spelled with letters beyond ASCII."""
        return self._new(lambda: self._word(_SURNAME_ENDINGS, most_syllables=1).capitalize(), frozenset())

    def place(self) -> str:
        """Returns the name of a place such as `Scalsund`; some are spelled with letters beyond ASCII."""
        return self._new(lambda: self._word(_PLACE_ENDINGS, most_syllables=2).capitalize(), frozenset())

    def above(self, genus: str, suffix: str) -> str:
        """Returns a name for a higher taxon, made from the genus that typifies it.

        A genus that has already lent its name to a taxon with this suffix makes way for an invented one.
        """
        stem = genus
        while f"{_stem(stem)}{suffix}" in self._taken:
            stem = self._word(_GENUS_ENDINGS, most_syllables=2).capitalize()
        name = f"{_stem(stem)}{suffix}"
        self._taken.add(name)
        return name

    def _new(self, propose: Callable[[], str], barred: frozenset[str]) -> str:
        for _ in range(_MOST_TRIES):
            name = propose()
            if name not in self._taken and name not in barred:
                self._taken.add(name)
                return name
        raise RuntimeError(f"no unused name was found in {_MOST_TRIES} tries: far too many taxa were asked for")

    def _word(self, endings: tuple[str, ...], *, most_syllables: int) -> str:
        rng = self._rng
        word = _pick(rng, _ONSETS) + _pick(rng, _VOWELS)
        for _ in range(int(rng.integers(0, most_syllables))):
            word += _pick(rng, _MIDDLES) + _pick(rng, _VOWELS)
        return word + _pick(rng, _MIDDLES) + _pick(rng, endings)


def _pick(rng: np.random.Generator, choices: tuple[str, ...]) -> str:
    return choices[int(rng.integers(len(choices)))]


def _stem(genus: str) -> str:
    """Returns what is left of a genus when its ending makes room for a suffix."""
    return genus.rstrip("aeiouys") or genus
