"""Names of millions of things, held as one column of text.

A string of Python takes five times the memory of its text, and all of it has to be asked from the system, page by page:
that costs more for each name the more names there are. Most of what is done with so many names is done with the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import overload

import polars as pl


class NameColumn(Sequence[str]):
    """A tuple of names whose strings are made when the first of them is needed, and kept from then on.

    It equals the tuple of the same names, and has its hash.

    Args:
        column: The names, none of them missing.

    >>> names = NameColumn(pl.Series(["b", "a"]))
    >>> len(names), names == ("b", "a"), names[1], column_of(names).to_list()
    (2, True, 'a', ['b', 'a'])
    """

    def __init__(self, column: pl.Series) -> None:
        self.column = column

    @cached_property
    def _strings(self) -> tuple[str, ...]:
        return tuple(self.column.to_list())

    def __len__(self) -> int:
        return len(self.column)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...
    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        return self._strings[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._strings)

    def __contains__(self, name: object) -> bool:
        return name in self._strings

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, NameColumn):
            return self.column.equals(other.column)
        return self._strings == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._strings)

    def __repr__(self) -> str:
        return repr(self._strings)


def column_of(names: Sequence[str], name: str = "") -> pl.Series:
    """Names as a column.

    Args:
        names: The names.
        name: What the column is called.
    """
    return names.column.alias(name) if isinstance(names, NameColumn) else pl.Series(name, names, dtype=pl.String)


def fixed(names: Iterable[str]) -> tuple[str, ...] | NameColumn:
    """Names as something that does not change: a tuple, or what they were if they are held as a column."""
    return names if isinstance(names, NameColumn) else tuple(names)
