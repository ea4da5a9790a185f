"""Where the rows of occurrences come from: the files of a release, recognized and read by role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

import polars as pl

from fieldmark.errors import InputError
from fieldmark.releases.occurrences.darwin_core import (
    EVENT,
    MEDIA_TYPES,
    OCCURRENCE,
    Archive,
    archive_folder,
    event_terms,
    read_archive_table,
    read_descriptor,
)
from fieldmark.storage.release import Release
from fieldmark.tables.delimited import read_columns, read_header
from fieldmark.tables.known_columns import (
    NAMES,
    SETTINGS_FILE,
    Format,
    TableSettings,
    find_columns,
    read_settings,
    recognize,
)
from fieldmark.tables.schema import missing_column
from fieldmark.tables.table_text import COMPRESSIONS, told_encoding

TABLES: Final = (".csv", ".tsv", ".txt", ".tab")
# Names that a table of occurrences has among others.
USUAL_NAMES: Final = ("occurrence", "occurrences", "observations")
# What lies beside a table of occurrences (`regions.py`).
SITES, BACKGROUND, PRESENCES = "sites", "background", "presences"
OTHER_TABLES: Final = (SITES, BACKGROUND, PRESENCES)
ENVIRONMENT_ROLE: Final = "environment "
MEDIA_TERMS: Final = frozenset(
    [
        "identifier",
        "accessURI",
        "goodQualityAccessURI",
        "type",
        "format",
        "license",
        "rights",
        "rightsHolder",
        "Owner",
        "owner",
        "creator",
        "UsageTerms",
        "WebStatement",
        "licence",
        "title",
    ]
)


@dataclass(frozen=True)
class RecordSource:
    """The rows of a release as they are written.

    Args:
        rows: One row per line with `file`, `line` and a column of text for each role that was found.
        media: The rows of the extension that lists photos, with `id` and its terms; None where there is none.
        kind: What the release is.
        where: What to call the table in messages.
        folder: The folder of the table, below the root; paths of photos begin there.
        settings: What a person has stated.
        columns: Which column is which, as a sentence says it.
    """

    rows: pl.DataFrame
    media: pl.DataFrame | None
    kind: Format
    where: str
    folder: str
    settings: TableSettings
    columns: str


def read_source(release: Release, environment: Sequence[str] = ()) -> RecordSource:
    """Finds and reads the table of a release.

    Args:
        release: Where the table lies.
        environment: Columns of numbers to read as well, each under `environment NAME`; those that are stated if none
            are given.

    Raises:
        InputError: When there is none, several could be meant, or its columns cannot be told.
    """
    settings = read_settings(release)
    if release.file and settings.file not in ("", release.file):
        settings = TableSettings()  # what is stated there is about another table
    folder = None if release.file or settings.file else archive_folder(release)
    if folder is not None:
        return _read_archive(release, folder, settings)
    if environment:
        settings = replace(settings, environment=tuple(environment))
    return _read_table(release, table_of(release, settings), settings)


def table_of(release: Release, settings: TableSettings) -> str:
    """The table of a release that is no archive: the one that was named, is stated, or is the only one."""
    return release.file or settings.file or _only_table(release)


def _read_table(release: Release, path: str, settings: TableSettings) -> RecordSource:
    where = release.where(path)
    encoding = settings.encoding or told_encoding(release, path)
    header = read_header(release, path, separator=settings.separator, encoding=encoding)
    kind = recognize(header.columns)
    places = find_columns(header.columns, kind, where, settings.columns)
    dialect = header.dialect
    if settings.quote is not None:
        dialect = replace(dialect, quote=settings.quote or None)
    elif kind is Format.GBIF and dialect.separator == "\t":
        dialect = replace(dialect, quote=None)  # GBIF writes quotes as they are
    for name in settings.environment:
        if name not in header.columns:
            raise missing_column(where, name, header.columns)
    further = {f"{ENVIRONMENT_ROLE}{name}": header.columns.index(name) for name in settings.environment}
    rows = read_columns(release, path, dialect, {**places, **further}, width=len(header.columns))
    folder = path.rpartition("/")[0]
    names = {role: header.columns[place] for role, place in places.items()}
    return RecordSource(rows.with_columns(file=pl.lit(path)), None, kind, where, folder, settings, _told(names))


def _read_archive(release: Release, folder: str, settings: TableSettings) -> RecordSource:
    archive = read_descriptor(release, folder)
    rows, of_events = _archive_rows(release, archive, _useful_terms(settings))
    terms = [name for name in rows.columns if name not in ("id", "line", "file")]
    places = find_columns(terms, Format.ARCHIVE, archive.where, settings.columns)
    names = {role: terms[place] for role, place in places.items()}
    own_id = pl.col(names["id"]) if "id" in names else pl.lit(None, pl.String)
    # Rows below an event carry the id of the event, which several of them share.
    chosen = own_id if of_events else pl.coalesce("id", own_id)
    columns = [pl.col(term).alias(role) for role, term in names.items() if role != "id"]
    read = rows.select("file", "line", chosen.alias("id"), *columns)
    extension = None if of_events else archive.extension(*MEDIA_TYPES)
    media = None if extension is None else read_archive_table(release, extension, MEDIA_TERMS)
    return RecordSource(read, media, Format.ARCHIVE, archive.where, folder, settings, _told(names))


def _archive_rows(release: Release, archive: Archive, wanted: frozenset[str]) -> tuple[pl.DataFrame, bool]:
    """The rows of occurrences, and whether they stand below events."""
    occurrences = archive.extension(OCCURRENCE)
    if archive.core.row_type == OCCURRENCE:
        return read_archive_table(release, archive.core, wanted), False
    if archive.core.row_type == EVENT and occurrences is not None:
        core = read_archive_table(release, archive.core, wanted)
        return event_terms(core, read_archive_table(release, occurrences, wanted)), True
    found = f"a core of {archive.core.row_type}"
    raise InputError(archive.where, found=found, expected=f"one of {OCCURRENCE}, or of {EVENT} with occurrences")


def _only_table(release: Release) -> str:
    """The table of a folder: the only one, or the one with a usual name."""
    tables = [name for name in release.files() if is_table(name) and plain_stem(name) not in OTHER_TABLES]
    usual = [name for name in tables if plain_stem(name) in USUAL_NAMES]
    chosen = tables if len(tables) == 1 else usual
    if len(chosen) == 1:
        return chosen[0]
    if not tables:
        expected = f"meta.xml of a Darwin Core Archive, or a table ({', '.join(TABLES)})"
        raise InputError(release.root, found="no table", expected=expected)
    hint = f'Name the file itself, or state it in {SETTINGS_FILE}: file = "{tables[0]}".'
    raise InputError(release.root, found=f"the tables {', '.join(tables)}", expected="one", hint=hint)


def plain_stem(name: str) -> str:
    """The name of a file without its endings, in small letters."""
    return PurePosixPath(name).name.partition(".")[0].lower()


def is_table(name: str) -> bool:
    """Whether a file is a table by its name, plain or packed."""
    suffixes = [suffix.lower() for suffix in PurePosixPath(name).suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return bool(suffixes) and suffixes[-1] in TABLES


def _useful_terms(settings: TableSettings) -> frozenset[str]:
    return frozenset(name for names in (*NAMES.values(), settings.columns.values()) for name in names)


def _told(names: dict[str, str]) -> str:
    return ", ".join(f"{role} from {name}" if role != name else role for role, name in names.items())
