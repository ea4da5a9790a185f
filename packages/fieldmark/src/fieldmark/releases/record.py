"""The record of a release: how it is opened, checked, downloaded and simulated, and what to know before using it.

A module of a release ends with `RECORDS = (ReleaseRecord(...), ...)`. The names, the lines about them and what there is
for each are found by reading these declarations, without importing the module: they are literals. The rest may be any
expression.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from fieldmark.registry import Registry, declared, require

if TYPE_CHECKING:
    from fieldmark.releases.checks import ReleaseCheck
    from fieldmark.tables.dataset import DatasetOpener

T = TypeVar("T")
PACKAGE = "fieldmark.releases"


@dataclass(frozen=True)
class PublishedSize:
    """How much is published; None where it is not known.

    Args:
        observations, photos, recordings: How many.
        rounded: Whether the sources give rounded figures.
    """

    observations: int | None = None
    photos: int | None = None
    recordings: int | None = None
    rounded: bool = False

    def __str__(self) -> str:
        counts = {name: number for name, number in asdict(self).items() if number and name != "rounded"}
        shown = ", ".join(f"{number:,} {name}" for name, number in counts.items())
        return f"about {shown}" if self.rounded else shown


@dataclass(frozen=True)
class World:
    """How small simulated releases in the same layout are written.

    Args:
        write: The place of the function, as "package.module:name": simulations are another package.
        about: One line about them.
    """

    write: str
    about: str


@dataclass(frozen=True, kw_only=True)
class ReleaseRecord:
    """All that is declared about one release. What no source states is None.

    Args:
        name: The name of the dataset.
        about: One line about it.
        open: Opens it.
        check: What the check knows about it; or the place of what is particular to it, as "package.module:name": a
            function that takes a `checks.CheckRun`, looks, and returns the counts of parts.
        download: The place of its manifest, as "package.module:name"; empty where nothing can be fetched.
        world: How it is simulated.
        single_file: Whether its root may also be one file: a zip, or a table.
        license: The license, as its makers state it.
        terms: What they ask of users besides.
        homepage: The page of its makers.
        size: How much is published.
        citation: What to cite, as BibTeX.
    """

    name: str
    about: str
    open: DatasetOpener
    check: ReleaseCheck | str | None = None
    download: str = ""
    world: World | None = None
    single_file: bool = False
    license: str | None = None
    terms: str | None = None
    homepage: str | None = None
    size: PublishedSize | None = None
    citation: str | None = None

    @property
    def conditions(self) -> str:
        """Terms and license in one line; empty where neither is known."""
        return "; ".join(part for part in (self.terms, self.license) if part)


class Declared(NamedTuple):
    """What is known of a record without importing its module."""

    module: str
    about: str
    single_file: bool
    fields: Mapping[str, str]


@cache
def declared_records() -> dict[str, Declared]:
    """The records of all releases by name, as their modules declare them."""
    found = {}
    for module, text in declared(PACKAGE, Path(__file__).parent, "RECORDS"):
        records: Any = ast.parse(text, mode="eval").body
        for call in records.elts:
            given = {keyword.arg: keyword.value for keyword in call.keywords}
            about = ast.literal_eval(given["about"])
            fields = {name: about for name in ("open", "check", "download") if name in given} | {"check": about}
            if "world" in given:
                fields["world"] = ast.literal_eval(given["world"].args[1])
            found[ast.literal_eval(given["name"])] = Declared(module, about, "single_file" in given, fields)
    return found


def record_of(name: str) -> ReleaseRecord | None:
    """The record of a release of ours; None for a dataset that another package brings."""
    place = declared_records().get(name)
    if place is None:
        return None
    records: tuple[ReleaseRecord, ...] = vars(require(place.module, f"The dataset {name!r}"))["RECORDS"]
    return next(one for one in records if one.name == name)


class OfRecords(Registry[T]):
    """One field of the records of all releases, by the name of the release.

    Args:
        kind: What the names stand for in messages.
        field: The field.
        group: Under which group of entry points other packages add to it.
    """

    def __init__(self, kind: str, field: str, group: str = "") -> None:
        super().__init__(
            kind,
            lambda: {
                name: (place.module, place.fields[field])
                for name, place in declared_records().items()
                if field in place.fields
            },
            group,
        )
        self._field = field

    def __getitem__(self, name: str) -> T:
        self._entry(name)  # refuses a name that there is not
        record = record_of(name)
        return super().__getitem__(name) if record is None else self.of(record)

    def of(self, record: ReleaseRecord) -> T:
        """What the field of a record stands for; a place is imported."""
        value = getattr(record, self._field)
        return self.at(record, value) if isinstance(value, str) else value

    def at(self, record: ReleaseRecord, place: str) -> T:
        """What stands at a place ("package.module:name") that a record names."""
        module, _, attribute = place.partition(":")
        return getattr(require(module, f"The {self.kind} {record.name!r}"), attribute)  # type: ignore[no-any-return]


def bibtex_entries(text: str) -> Iterator[tuple[str, str]]:
    r"""The entries of a BibTeX text, each with its key.

    >>> [key for key, _ in bibtex_entries("@misc{a,\n  title = {A},\n}\n@misc{b,\n  title = {B},\n}")]
    ['a', 'b']
    """
    for entry in re.split(r"\n(?=@)", text.strip()):
        key = re.match(r"@\w+\{([^,]+),", entry)
        if key:
            yield key[1], entry.strip()
