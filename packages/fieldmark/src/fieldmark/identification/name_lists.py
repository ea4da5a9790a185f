"""Names that a person writes, found among those of a model; and answers held to some of them.

A name is a label, a species, a taxon of any rank, a common name or a synonym, in any case, with blanks or underscores,
with or without the author. A list is a file with one name per line, or a CSV table whose column `name`, `label`,
`species`, `scientificName` or `scientific_name` (or else the first) holds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import InputError, MisuseError, did_you_mean
from fieldmark.tables.labels import Labels
from fieldmark.tables.numbers import parse_float
from fieldmark.tables.reader import listed_rows
from fieldmark.tables.schema import RANKS
from fieldmark.tables.scientific_names import parse_name

NAME_COLUMNS = ("name", "label", "species", "scientificname", "scientific_name")
OTHER_NAMES = ("scientific_name", "common_name", "species")


class KnowsNames(Protocol):
    """Whatever gives names: a model, or BirdNET."""

    @property
    def labels(self) -> Labels: ...

    @property
    def taxa(self) -> pl.DataFrame: ...


@dataclass(frozen=True)
class KnownNames:
    """Labels with what is known about them."""

    labels: Labels
    taxa: pl.DataFrame


@dataclass(frozen=True)
class NameFinder:
    """Finds labels of a model by what people call them.

    Args:
        model: The model, or whatever else has labels and taxa.
        synonyms: Other names, each with the model's name for it.
    """

    model: KnowsNames
    synonyms: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _codes(self) -> dict[str, frozenset[int]]:
        found: dict[str, set[int]] = {}
        row_of = {row["label"]: row for row in self.model.taxa.iter_rows(named=True)}
        for code, label in enumerate(self.model.labels.names):
            row = row_of.get(label, {})
            for name in (label, *(row.get(column) for column in (*RANKS, *OTHER_NAMES))):
                if name:
                    for one in _spellings(str(name)):
                        found.setdefault(one, set()).add(code)
        return {name: frozenset(codes) for name, codes in found.items()}

    @cached_property
    def _accepted(self) -> dict[str, str]:
        return {one: accepted for name, accepted in self.synonyms.items() for one in _spellings(name)}

    def codes(self, name: str) -> frozenset[int]:
        """The labels that a name stands for, none where the model does not know it."""
        for one in _spellings(name):
            if one in self._codes:
                return self._codes[one]
        for one in _spellings(name):
            if one in self._accepted:
                return self.codes(self._accepted[one]) if self._accepted[one] != name else frozenset()
        return frozenset()

    def label(self, name: str) -> str | None:
        """The one label that a name stands for, None where it is none or several."""
        if name in self.model.labels.code_of:
            return name
        codes = self.codes(name)
        return self.model.labels.names[next(iter(codes))] if len(codes) == 1 else None

    def mask(self, wanted: Sequence[str], option: str) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
        """Which labels some names or lists stand for, and the names of lists that the model does not know.

        Raises:
            MisuseError: When a name that was given by itself, or a whole list, stands for nothing that it knows.
        """
        mask = np.zeros(len(self.model.labels), dtype=np.bool_)
        strange: list[str] = []
        for one in wanted:
            names = read_names(Path(one)) if _is_list(one) else [one]
            before = mask.sum()
            for name in names:
                codes = sorted(self.codes(name))
                mask[codes] = True
                strange += [] if codes else [name]
            if mask.sum() == before and not any(self.codes(name) for name in names):
                hint = did_you_mean(one.lower(), self._codes).partition("Known:")[0].strip()
                raise MisuseError(f"{option} {one}: the model knows no such name or taxon. {hint}".strip())
        return mask, tuple(strange)


def _is_list(text: str) -> bool:
    return Path(text).suffix.lower() in (".csv", ".txt", ".tsv") or Path(text).is_file()


def _spellings(name: str) -> list[str]:
    """A name as it is compared: in small letters, and without its author where it has one.

    >>> _spellings("Amanita_muscaria (L.) Lam.")
    ['amanita_muscaria (l.) lam.', 'amanita muscaria (l.) lam.', 'amanita muscaria']
    """
    plain = " ".join(name.replace("_", " ").split())
    species = parse_name(plain[:1].upper() + plain[1:]).species
    return list(dict.fromkeys([name.strip().lower(), plain.lower(), *([species.lower()] if species else [])]))


def read_names(path: Path) -> list[str]:
    """The names in a file.

    Raises:
        InputError: When it cannot be read, or has no names.
    """
    rows = [row for _, row in listed_rows(path, NAME_COLUMNS, "a list of names")]
    if not rows:
        raise InputError(path, found="no names", expected="one name per line, or a CSV table")
    column = next(name for name in NAME_COLUMNS if name in rows[0])
    return [row[column] for row in rows if row[column]]


def read_pairs(path: Path, columns: tuple[str, str]) -> list[tuple[int, str, str]]:
    """Line, first and second value of a CSV table with two named columns.

    Raises:
        InputError: When it cannot be read, or lacks a column.
    """
    rows = listed_rows(path, columns, "a list of names")
    for name in columns:
        if not rows or name not in rows[0][1]:
            found = f"the columns {', '.join(rows[0][1])}" if rows else "no rows"
            raise InputError(path, line=1, found=found, expected=f"a header with {' and '.join(columns)}")
    first, second = columns
    return [(line, row[first], row[second]) for line, row in rows]


def read_thresholds(path: Path, finder: NameFinder) -> dict[int, float]:
    """The least probability at which a species is named, by label code, from a CSV table `name,at_least`.

    Raises:
        InputError: For a name that the model does not know, or a number outside of 0 to 1.
    """
    found: dict[int, float] = {}
    for line, name, text in read_pairs(path, ("name", "at_least")):
        codes = finder.codes(name)
        if not codes:
            raise InputError(path, line=line, found=f"the name {name!r}", expected="a name that the model knows")
        try:
            value = parse_float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value <= 1:
            raise InputError(path, line=line, found=f"at_least {text!r}", expected="a number from 0 to 1")
        found |= dict.fromkeys(codes, value)
    return found


def read_synonyms(path: Path) -> dict[str, str]:
    """Names with the name that stands for them, from a CSV table `synonym,name`."""
    return {synonym: name for _, synonym, name in read_pairs(path, ("synonym", "name"))}


def read_common_names(path: Path) -> dict[str, dict[str, str]]:
    """Common names by name and language, from a CSV table `name,language,common_name`.

    Raises:
        InputError: When it cannot be read, or lacks a column.
    """
    found: dict[str, dict[str, str]] = {}
    languages = read_pairs(path, ("name", "language"))
    commons = read_pairs(path, ("name", "common_name"))
    for (_, name, language), (_, _, common) in zip(languages, commons, strict=True):
        for one in _spellings(name)[-1:]:
            found.setdefault(one, {})[language] = common
    return found


@dataclass(frozen=True)
class Restriction:
    """Which labels an answer may give.

    Args:
        allowed: One flag per label; None for all of them.
        said: The options that say so, for people.
        thresholds: The least probability at which a label is named, by its code.
        remarks: What a person should know about them.
    """

    allowed: NDArray[np.bool_] | None = None
    said: str = ""
    thresholds: Mapping[int, float] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def chances(self, chances: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """Probabilities of the labels that are left, and the share that lay on the others."""
        if self.allowed is None:
            return chances, 0.0
        left = np.where(self.allowed, chances, 0.0)
        total = float(left.sum())
        even = self.allowed / self.allowed.sum()
        return (left / total if total > 1e-12 else even), max(0.0, 1.0 - total)


def restriction_of(
    finder: NameFinder, only: Sequence[str] = (), exclude: Sequence[str] = (), thresholds: Path | None = None
) -> Restriction:
    """What the options say.

    Raises:
        MisuseError: When nothing is left.
    """
    allowed: NDArray[np.bool_] | None = None
    remarks: list[str] = []
    if only:
        allowed, strange = finder.mask(only, "--only")
        remarks += _remark_on_strange(strange, "--only")
    if exclude:
        left_out, strange = finder.mask(exclude, "--exclude")
        allowed = (np.ones(len(left_out), dtype=np.bool_) if allowed is None else allowed) & ~left_out
        remarks += _remark_on_strange(strange, "--exclude")
    if allowed is not None and not allowed.any():
        raise MisuseError("--only and --exclude leave no name that the model could give.")
    if allowed is not None and allowed.all():
        allowed = None
    said = " and ".join(name for name, given in (("--only", only), ("--exclude", exclude)) if given)
    lines = read_thresholds(thresholds, finder) if thresholds is not None else {}
    return Restriction(allowed, said, lines, tuple(remarks))


def _remark_on_strange(names: Sequence[str], option: str) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return [f"The model does not know {len(names)} name(s) of {option}: {', '.join(names[:3])}{more}."]
