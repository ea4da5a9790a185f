"""How a name looks: the same for all names that a reader would take for each other."""

from __future__ import annotations

import unicodedata
from functools import cache

LONGEST = 256


def look_of(name: str) -> str:
    r"""The look of a name.

    >>> look_of("paypal") == look_of("paypaI") == look_of("p\u0430yp\u0430l") == look_of("PayPa1")
    True
    >>> look_of("modern") == look_of("modem"), look_of("fungi") == look_of("fungus")
    (True, False)
    """
    plain = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", name))
    seen = "".join(_prototype(character) for character in plain)
    return unicodedata.normalize("NFD", seen).casefold()[:LONGEST]


@cache
def _prototype(character: str) -> str:
    """What stands for all characters that look like this one."""
    table = _table()
    likened = table.get(character, ())
    if len(likened) != 1:  # it stands for others itself, or looks like nothing else
        return character
    other = likened[0]
    back = table.get(other, ())
    return other if len(back) > 1 or other < character else character


@cache
def _table() -> dict[str, tuple[str, ...]]:
    from confusable_homoglyphs.confusables import confusables_data

    return {key: tuple(entry["c"] for entry in entries) for key, entries in confusables_data.items()}
