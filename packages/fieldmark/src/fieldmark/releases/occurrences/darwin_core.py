r"""Darwin Core Archives: a descriptor, a table of records, and tables that add to them.

```
ARCHIVE.zip, or a folder       its files may lie in one folder inside
  meta.xml                     which files there are, how they are written, which column is which term
  occurrence.txt               the core: one row per record (several files may hold its rows)
  multimedia.txt, ...          extensions: rows that name a record of the core by its id
  eml.xml                      about the dataset; not read
```

Quirks, by the Darwin Core text guide:

- What the descriptor leaves out has a default: comma, double quote, line feed, UTF-8, no header line, a core of
  occurrences. `\t`, `\n` and `\r` are written as two characters.
- A field with a `default` has it where a row is empty, and in every row where it has no column.
- Terms are called by the last part of their address, whatever the namespace (`dc:license` and `dcterms:license`
  are one); where both are given, the first that has a value counts.
- A core of events with an extension of occurrences is read as occurrences: what a row does not say, its event does.

The reader is our own. python-dwca-reader is well kept, and our tests hold this reader against it; but it unpacks the
whole archive, photos included, reads the first file of a core alone, and makes a Python object of every field.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final
from xml.etree import ElementTree

import polars as pl

from fieldmark.errors import InputError
from fieldmark.storage.release import Release
from fieldmark.tables.delimited import read_columns
from fieldmark.tables.numbers import is_digits
from fieldmark.tables.table_text import Dialect

DESCRIPTOR: Final = "meta.xml"
TEXT_NAMESPACE: Final = "http://rs.tdwg.org/dwc/text/"
OCCURRENCE, EVENT = "Occurrence", "Event"
# Row types of the extensions that list photos: Simple Multimedia, Audubon Core, and two older ones of GBIF.
MEDIA_TYPES: Final = ("Multimedia", "MultiMedia", "SimpleMultimedia", "Image")
LARGEST_DESCRIPTOR: Final = 1 << 20
_ESCAPES: Final = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\f": "\f", "\\\\": "\\"}


@dataclass(frozen=True)
class Field:
    """One term of a table: the column that holds it, from 0, and what it is where the row is empty."""

    term: str
    index: int | None
    default: str | None

    @property
    def name(self) -> str:
        """The last part of the term's address."""
        return short_name(self.term)


@dataclass(frozen=True)
class ArchiveTable:
    """The core or an extension, as the descriptor declares it.

    Args:
        row_type: What a row is, by the last part of its address.
        files: Where its rows are, below the root of the release.
        dialect: How the files are written.
        id_index: The column with the id of the record, from 0.
        fields: The terms.
    """

    row_type: str
    files: tuple[str, ...]
    dialect: Dialect
    id_index: int | None
    fields: tuple[Field, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The terms it has, each once."""
        return tuple(dict.fromkeys(field.name for field in self.fields))


@dataclass(frozen=True)
class Archive:
    """What a descriptor declares."""

    where: str
    core: ArchiveTable
    extensions: tuple[ArchiveTable, ...]

    def extension(self, *row_types: str) -> ArchiveTable | None:
        """The first extension of one of the row types."""
        return next((table for table in self.extensions if table.row_type in row_types), None)


def short_name(term: str) -> str:
    """The last part of the address of a term.

    >>> short_name("http://rs.tdwg.org/dwc/terms/scientificName"), short_name("http://ns.adobe.com/exif/1.0/#Flash")
    ('scientificName', 'Flash')
    """
    return re.split(r"[/#:]", term.strip().rstrip("/#"))[-1]


def archive_folder(release: Release) -> str | None:
    """The folder that holds the descriptor: the root, or the only folder in it. None where there is none."""
    if release.exists(DESCRIPTOR):
        return ""
    folders = [name for name in release.folders() if name != "__MACOSX"]
    return folders[0] if len(folders) == 1 and release.exists(f"{folders[0]}/{DESCRIPTOR}") else None


def read_descriptor(release: Release, folder: str = "") -> Archive:
    """Reads `meta.xml`.

    Raises:
        InputError: When it is no descriptor, or names files that are not there.
    """
    path = f"{folder}/{DESCRIPTOR}" if folder else DESCRIPTOR
    where = release.where(path)
    root = _parse(release, path)
    cores = root.findall(_tag("core"))
    if len(cores) != 1:
        raise InputError(where, found=f"{len(cores)} elements core", expected="one")
    core = _table(cores[0], "id", release, folder, where)
    extensions = tuple(_table(one, "coreid", release, folder, where) for one in root.findall(_tag("extension")))
    if extensions and core.id_index is None:
        raise InputError(where, found="a core without id", expected="one, since there are extensions")
    return Archive(where, core, extensions)


def read_archive_table(release: Release, table: ArchiveTable, wanted: Collection[str] | None = None) -> pl.DataFrame:
    """Reads the rows of all files of a table.

    Args:
        release: Where the archive lies.
        table: The core or an extension.
        wanted: The terms to read, by their short names; all if not given.

    Returns:
        `id` (of the record of the core; null where the table has none), `line`, `file`, and a column of text for each
        term that the table has.
    """
    fields = [field for field in table.fields if wanted is None or field.name in wanted]
    places = {f"field {place}": field.index for place, field in enumerate(fields) if field.index is not None}
    if table.id_index is not None:
        places["id"] = table.id_index
    frames = []
    for path in table.files:
        rows = read_columns(release, path, table.dialect, places)
        frames.append(rows.with_columns(file=pl.lit(path)))
    rows = pl.concat(frames)
    terms: dict[str, list[pl.Expr]] = {}
    for place, field in enumerate(fields):
        column = pl.lit(None, pl.String) if field.index is None else pl.col(f"field {place}")
        filled = column if field.default is None else pl.coalesce(column, pl.lit(field.default))
        terms.setdefault(field.name, []).append(filled)
    own_id = pl.col("id") if table.id_index is not None else pl.lit(None, pl.String).alias("id")
    # The id of the record goes by that name alone; a term called id is the same thing.
    columns = [pl.coalesce(parts).alias(name) for name, parts in terms.items() if name not in ("id", "line", "file")]
    return rows.select(own_id, "line", "file", *columns)


def _parse(release: Release, path: str) -> ElementTree.Element:
    where = release.where(path)
    if release.size(path) > LARGEST_DESCRIPTOR:
        raise InputError(where, found="more than a megabyte", expected="the descriptor of an archive")
    data = release.read(path)
    if b"<!ENTITY" in data or b"<!DOCTYPE" in data:  # a few lines of entities can expand to gigabytes
        raise InputError(where, found="a document type", expected="a descriptor without one")
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        hint = "Only its bytes as the archive's maker wrote them can be read."
        raise InputError(where, found=f"no well-formed XML ({error})", expected="a descriptor", hint=hint) from error
    if root.tag != _tag("archive"):
        raise InputError(where, found=f"an element {root.tag}", expected=f"archive of {TEXT_NAMESPACE}")
    return root


def _table(element: ElementTree.Element, id_name: str, release: Release, folder: str, where: str) -> ArchiveTable:
    kind = "the core" if id_name == "id" else "an extension"
    locations = [(inner.text or "").strip() for inner in element.findall(f"{_tag('files')}/{_tag('location')}")]
    if not locations:
        raise InputError(where, found=f"no file for {kind}", expected="files with a location each")
    files = tuple(_inside(location, folder, release, where) for location in locations)
    own_id = element.find(_tag(id_name))
    fields = tuple(_field(inner, where) for inner in element.findall(_tag("field")))
    twice = [field.term for place, field in enumerate(fields) if field.term in {one.term for one in fields[:place]}]
    if twice:
        raise InputError(where, found=f"the term {twice[0]} twice in {kind}", expected="each once")
    row_type = short_name(element.get("rowType") or OCCURRENCE)
    id_index = None if own_id is None else _index(own_id, where)
    return ArchiveTable(row_type, files, _dialect(element, where), id_index, fields)


def _inside(location: str, folder: str, release: Release, where: str) -> str:
    """The path of a data file; it lies in the archive and nowhere else."""
    parts = PurePosixPath(location).parts
    if "://" in location or not location or ".." in parts or PurePosixPath(location).is_absolute():
        hint = "Nothing is fetched from elsewhere: put the file into the archive."
        raise InputError(where, found=f"the file {location!r}", expected="one inside the archive", hint=hint)
    path = f"{folder}/{location}" if folder else location
    if not release.exists(path):
        raise InputError(where, found=f"the file {location!r}, which is not there", expected="a file of the archive")
    return path


def _field(element: ElementTree.Element, where: str) -> Field:
    term = (element.get("term") or "").strip()
    if not term:
        raise InputError(where, found="a field without a term", expected="a term for each field")
    return Field(term, _index(element, where), element.get("default"))


def _index(element: ElementTree.Element, where: str) -> int | None:
    text = element.get("index")
    if text is None:
        return None
    if not is_digits(text.strip()):
        raise InputError(where, found=f"the index {text!r}", expected="a whole number from 0")
    return int(text)


def _dialect(element: ElementTree.Element, where: str) -> Dialect:
    separator = _unescaped(element.get("fieldsTerminatedBy", ","))
    quote = _unescaped(element.get("fieldsEnclosedBy", '"'))
    line_end = _unescaped(element.get("linesTerminatedBy", "\\n"))
    encoding = element.get("encoding", "UTF-8").strip() or "UTF-8"
    header = element.get("ignoreHeaderLines", "0").strip() or "0"
    for name, value, most in (("fieldsTerminatedBy", separator, 1), ("fieldsEnclosedBy", quote, 1)):
        if len(value.encode()) > most or (name == "fieldsTerminatedBy" and not value):
            raise InputError(where, found=f"{name} {value!r}", expected="one ASCII character")
    if line_end not in ("\n", "\r\n", "\r", ""):
        raise InputError(where, found=f"linesTerminatedBy {line_end!r}", expected=r"\n, \r\n or \r")
    if not is_digits(header):
        raise InputError(where, found=f"ignoreHeaderLines {header!r}", expected="a whole number from 0")
    try:
        codecs.lookup(encoding)
    except LookupError as error:
        raise InputError(where, found=f"the encoding {encoding!r}", expected="one that is known") from error
    return Dialect(separator, quote or None, "\r" if line_end == "\r" else "\n", encoding, int(header))


def _unescaped(text: str) -> str:
    return re.sub(r"\\[tnrf\\]", lambda match: _ESCAPES[match.group()], text)


def _tag(name: str) -> str:
    return f"{{{TEXT_NAMESPACE}}}{name}"


def event_terms(core: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of occurrences, with what their events say where they say nothing themselves."""
    shared: Mapping[str, None] = dict.fromkeys(name for name in core.columns if name not in ("id", "line", "file"))
    events = core.unique("id", keep="first", maintain_order=True).select("id", pl.col(*shared).name.prefix("event "))
    joined = rows.join(events, on="id", how="left", maintain_order="left")
    own = [
        (pl.coalesce(name, f"event {name}") if name in rows.columns else pl.col(f"event {name}")).alias(name)
        for name in shared
    ]
    return joined.with_columns(own).drop([f"event {name}" for name in shared])
