"""What a scientific name says by itself: genus, species, and the rank below."""

from __future__ import annotations

import re
from typing import NamedTuple

GENUS = re.compile(r"[A-Z][a-zà-ÿ]+(?:-[a-zà-ÿ]+)?(?=\s|$)")
EPITHET = re.compile(r"\s+((?:\N{MULTIPLICATION SIGN}\s?)?[a-zà-ÿ][a-zà-ÿ-]*)(?=\s|$)")
BELOW = re.compile(r"\s(subsp|ssp|var|subvar|f|forma)\.?\s+([a-zà-ÿ][a-zà-ÿ-]*)(?=\s|$)")
# A name as other authors used it does not stand for the species that it names.
MISAPPLIED = re.compile(r"\s(?:ss|sensu|s)\.?\s+auct\b")
NO_EPITHET = {"sp", "spp", "cf", "aff", "sect", "ss", "sensu"}


class ParsedName(NamedTuple):
    """The ranks that a name gives, None where it does not."""

    genus: str | None
    species: str | None
    infraspecific: str | None


def parse_name(name: str) -> ParsedName:
    """Reads a scientific name; authors and remarks are passed over.

    >>> parse_name("Lactarius azonites f. azonites ")
    ParsedName(genus='Lactarius', species='Lactarius azonites', infraspecific='f. azonites')
    >>> parse_name("Xylodon flaviporus (Berk. & M.A. Curtis) Riebesehl & E. Langer").species
    'Xylodon flaviporus'
    >>> parse_name("Hydnum umbilicatum ss auct. eur.")
    ParsedName(genus='Hydnum', species=None, infraspecific=None)
    """
    text = " ".join(name.replace("_", " ").split())
    genus = GENUS.match(text)
    if genus is None:
        return ParsedName(None, None, None)
    epithet = EPITHET.match(text, genus.end())
    if epithet is None or epithet.group(1) in NO_EPITHET or MISAPPLIED.search(text):
        return ParsedName(genus.group(), None, None)
    below = BELOW.search(text, epithet.end())
    return ParsedName(
        genus.group(),
        f"{genus.group()} {epithet.group(1)}",
        f"{below.group(1)}. {below.group(2)}" if below else None,
    )
