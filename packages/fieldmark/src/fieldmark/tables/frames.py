"""Tables of other libraries taken as frames: the one border for pandas, pyarrow, polars, NumPy and plain columns.

A library is known by what its tables offer and never imported. The rows become what they would be in a CSV file that
the library writes: an index with a name is the first column, one without a name is none, and a missing value is blank.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from fieldmark.errors import InputError

EXPECTED = "a frame of polars, pandas or pyarrow, an array with named fields, or columns of the same length by name"


def is_table(given: object) -> bool:
    """Whether something is a table in memory, or tries to be one.

    >>> is_table({"id": ["1"]}), is_table("run.csv")
    (True, False)
    """
    offers = ("__arrow_c_stream__", "__dataframe__")
    return isinstance(given, (pl.DataFrame, pl.LazyFrame, Mapping, np.ndarray)) or any(
        hasattr(given, name) for name in offers
    )


def as_frame(given: Any, where: str) -> pl.DataFrame:
    """The table as a frame of polars.

    Args:
        given: A table in memory.
        where: What messages call it.

    Raises:
        InputError: When it is no table.
    """
    if isinstance(given, pl.LazyFrame):
        given = given.collect()
    if isinstance(given, np.ndarray) and given.dtype.names is None:
        found = f"an array of {given.ndim} dimensions without names of fields"
        raise InputError(where, found=found, expected=EXPECTED)
    try:
        table = _without_index(given)
        try:
            return _converted(table)
        except (pl.exceptions.PolarsError, ValueError, TypeError):
            return pl.DataFrame({str(name): _plain(values) for name, values in _columns(table)})
    except (pl.exceptions.PolarsError, ValueError, TypeError, AttributeError, ImportError) as error:
        found = f"no table ({str(error).splitlines()[0]})"
        raise InputError(where, found=found, expected=EXPECTED) from error


def _converted(table: Any) -> pl.DataFrame:
    if isinstance(table, (pl.DataFrame, Mapping)):
        return pl.DataFrame(table)
    if isinstance(table, np.ndarray):
        columns = {name: table[name] for name in table.dtype.names or ()}
        return pl.DataFrame({name: one.astype(str) if one.dtype.kind == "S" else one for name, one in columns.items()})
    return pl.DataFrame(table, nan_to_null=True)


def _columns(table: Any) -> Iterator[tuple[Any, list[Any]]]:
    """The columns as lists of whatever objects they hold."""
    names = table.dtype.names if isinstance(table, np.ndarray) else getattr(table, "columns", None)
    for name in table if names is None else names:
        values = table[name]
        yield name, values.tolist() if hasattr(values, "tolist") else list(values)


def _plain(values: list[Any]) -> list[Any]:
    """The values of a column that holds several kinds of them, as text; those that are missing as None."""
    there = [None if value is None or value != value else value for value in values]
    kinds = {type(value) for value in there if value is not None}
    return there if len(kinds) < 2 else [None if value is None else str(value) for value in there]


def _without_index(given: Any) -> Any:
    """A frame of pandas with the names of its rows as columns, or without them where they have no name."""
    names = getattr(getattr(given, "index", None), "names", None)
    if names is None or not hasattr(given, "reset_index"):
        return given
    return given.reset_index(drop=all(name is None for name in names))
