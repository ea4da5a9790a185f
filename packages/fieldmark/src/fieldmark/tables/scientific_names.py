"""What a scientific name says by itself: genus, species, and the rank below; and whether a column holds such names.

"Solanum acaule Bitter" and "Black throated Sparrow" are written alike. So a binomial is taken out of a longer name only

- where what follows it is marked: an author in parentheses, abbreviated, dated or joined by "&" or "ex"; a variety,
  form or subspecies; a remark such as "agg." or "s.l.";
- or where the whole column reads as scientific names (`NamesOfColumn`): at least half of its names of several words
  begin with a capitalized and a lower-case word, and at least 80 % of these second words end as in Latin. (Scientific
  names of fungi, plants and birds: 99 to 100 %; English names of birds: 44 %.) Where one name in ten is marked as
  above, bare words are then an author or a subspecies; where fewer are, bare capitalized words are an author, unless
  one binomial has two of them.

All other names are whole names. Columns that are declared to hold scientific names need no such look.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

GENUS = re.compile(r"[A-Z][a-zà-ÿ]+(?:-[a-zà-ÿ]+)?(?=\s|$)")
EPITHET = re.compile(r"\s+((?:\N{MULTIPLICATION SIGN}\s?)?[a-zà-ÿ][a-zà-ÿ-]*)(?=\s|$)")
BELOW = re.compile(r"\s(subsp|ssp|var|subvar|f|forma)\.?\s+([a-zà-ÿ][a-zà-ÿ-]*)(?=\s|$)")
# A name as other authors used it does not stand for the species that it names.
MISAPPLIED = re.compile(r"\s(?:ss|sensu|s)\.?\s+auct\b")
NO_EPITHET = {"sp", "spp", "cf", "aff", "sect", "ss", "sensu"}
LATIN_ENDING: Final = re.compile(r"(?:a|e|i|o|us|um|is|es|as|os|ns|x|or|er|ys|on|ps)$")
# What marks the words behind a binomial as an author, a rank below the species, or a remark.
MARKED: Final = re.compile(
    r"\([^a-z]|[A-ZÀ-Þ][\w-]*\.|&|\b(?:ex|et|in)\s+[A-ZÀ-Þ]|\b(?:1[789]|20)\d\d\b"
    r"|\b(?:subsp|ssp|var|subvar|f|nom|agg|aggr|s|ss|sp|auct)\.|\b(?:forma|sensu|nom prov|group|complex)\b"
)
AT_LEAST_BINOMIAL, AT_LEAST_LATIN, AT_LEAST_MARKED = 0.5, 0.8, 0.1


class ParsedName(NamedTuple):
    """The ranks that a name gives, None where it does not."""

    genus: str | None
    species: str | None
    infraspecific: str | None


def parse_name(name: str) -> ParsedName:
    """Reads a scientific name; authors and remarks are skipped.

    >>> parse_name("Lactarius azonites f. azonites ")
    ParsedName(genus='Lactarius', species='Lactarius azonites', infraspecific='f. azonites')
    >>> parse_name("Xylodon flaviporus (Berk. & M.A. Curtis) Riebesehl & E. Langer").species
    'Xylodon flaviporus'
    >>> parse_name("Hydnum umbilicatum ss auct. eur.")
    ParsedName(genus='Hydnum', species=None, infraspecific=None)
    """
    text = _plain(name)
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


@dataclass(frozen=True)
class NamesOfColumn:
    """How far the names of a column are read as scientific ones.

    Args:
        scientific: Whether bare capitalized words behind a binomial are its author, and names give genera.
        with_subspecies: Whether bare lower-case words behind it are a subspecies.
    """

    scientific: bool
    with_subspecies: bool

    @classmethod
    def of(cls, names: Iterable[str]) -> Self:
        """As the names of a column read.

        >>> NamesOfColumn.of(["Black throated Sparrow", "Black throated Blue Warbler"]).scientific
        False
        >>> NamesOfColumn.of(["Solanum acaule Bitter", "Solanum demissum Lindl."])
        NamesOfColumn(scientific=True, with_subspecies=True)
        """
        several = [text for name in names if " " in (text := _plain(name))]
        behind = {text: _behind(text) for text in several}
        species = {text: parsed for text in several if (parsed := parse_name(text).species)}
        latin = sum(LATIN_ENDING.search(one) is not None for one in species.values())
        if not species or len(species) < AT_LEAST_BINOMIAL * len(several) or latin < AT_LEAST_LATIN * len(species):
            return cls(False, False)
        marked = sum(MARKED.search(words) is not None for words in behind.values())
        if marked >= AT_LEAST_MARKED * len(several):
            return cls(True, True)
        bare = [species[text] for text in {*species} if behind[text] and not MARKED.search(behind[text])]
        return cls(len(bare) == len(set(bare)), False)

    def species(self, name: str) -> str | None:
        """The binomial that a name begins with; None where there is none, or where it is only the head of a whole name.

        >>> vernacular = NamesOfColumn(False, False)
        >>> vernacular.species("Black throated Sparrow"), vernacular.species("Amanita muscaria (L.) Lam.")
        (None, 'Amanita muscaria')
        """
        text = _plain(name)
        behind = _behind(text)
        if not behind or MARKED.search(behind) or (self.with_subspecies if behind[0].islower() else self.scientific):
            return parse_name(text).species
        return None


DECLARED: Final = NamesOfColumn(True, True)


def _plain(name: str) -> str:
    return " ".join(name.replace("_", " ").split())


def _behind(text: str) -> str:
    """What stands behind the binomial that a plain name begins with; nothing where it begins with none."""
    species = parse_name(text).species
    return "" if species is None else text[len(species) :].strip()
