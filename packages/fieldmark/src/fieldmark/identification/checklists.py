"""Lists of species that a model may name: a table of one's own or a Darwin Core Archive, for one country if it tells.

A table (CSV, or TSV by its ending) has a column of names (`scientificName`, `scientific_name`, `species`, `name`,
`label` or `taxon`; or it is a text with one name per line), and may have ranks from `kingdom` to `genus`, a common name
(`vernacularName`, `common_name`), `taxonRank`, and a country (`countryCode` or `country`). Authors behind names are
left out. Rows of higher ranks are skipped, and a species stands once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from fieldmark.errors import InputError
from fieldmark.releases.occurrences.darwin_core import archive_folder, read_archive_table, read_descriptor
from fieldmark.storage.release import Release
from fieldmark.tables.reader import listed_rows
from fieldmark.tables.schema import RANKS
from fieldmark.tables.scientific_names import parse_name

NAMES = ("scientificname", "scientific_name", "species", "name", "label", "taxon")
COMMON = ("vernacularname", "common_name", "commonname")
COUNTRY = ("countrycode", "country")
LOWEST = ("", "species", "subspecies", "variety", "form")


def read_checklist(path: Path, country: str | None = None) -> pl.DataFrame:
    """The species of a list as a table of taxa: label, ranks and common name.

    Args:
        path: The table or archive.
        country: Only species of this country, as the list writes it.

    Raises:
        InputError: When it cannot be read, has no species, or tells nothing about countries and one is asked for.
    """
    rows = list(_rows(path))
    if country is not None:
        if not any(name in row for row in rows for name in COUNTRY):
            raise InputError(path, found="no column countryCode or country", expected=f"one, to choose {country} by")
        wanted = country.strip().lower()
        rows = [row for row in rows if wanted in {_first(row, COUNTRY).strip().lower()}]
    found: dict[str, dict[str, str | None]] = {}
    for row in rows:
        species = parse_name(_first(row, NAMES)).species
        if species is None or _first(row, ("taxonrank",)).lower() not in LOWEST or species in found:
            continue
        ranks = {rank: row.get(rank) or None for rank in RANKS}
        genus = species.partition(" ")[0]
        found[species] = {
            "label": species,
            **ranks,
            "genus": genus,
            "species": species,
            "common_name": _first(row, COMMON) or None,
        }
    if not found:
        where = f" of {country}" if country else ""
        raise InputError(path, found=f"no species{where}", expected="scientific names, one per row")
    return pl.DataFrame(
        list(found.values()), schema=dict.fromkeys(("label", *RANKS, "common_name"), pl.String)
    ).with_columns(poisonous=pl.lit(None, pl.Boolean))


def _rows(path: Path) -> Iterator[Mapping[str, str]]:
    """The rows with the names of columns in small letters."""
    if not path.exists():
        raise InputError(path, found="no such file", expected="a list of species: CSV, or a Darwin Core Archive (zip)")
    if path.is_dir() or path.suffix.lower() == ".zip":
        yield from _of_archive(path)
        return
    yield from (row for _, row in listed_rows(path, NAMES, "a list of species"))


def _of_archive(path: Path) -> Iterator[Mapping[str, str]]:
    release = Release(path, single_file=path.is_file())
    folder = archive_folder(release)
    if folder is None:
        raise InputError(path, found="no meta.xml", expected="a Darwin Core Archive")
    archive = read_descriptor(release, folder)
    table = read_archive_table(release, archive.core)
    for row in table.iter_rows(named=True):
        yield {name.lower(): str(value) for name, value in row.items() if value is not None}


def _first(row: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((row[name] for name in names if row.get(name)), "")
