"""Rows that must not be parted: those that share a key of any kind, directly or over others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


class Links(NamedTuple):
    """That some rows have a key: one pair each. A row may have several keys of one kind, such as its photos."""

    rows: Numbers
    keys: Numbers


def links_of(keys: pl.Series) -> Links:
    """The links of a column: equal values belong together, rows without a value stand alone."""
    codes = keys.rank("dense")
    there = codes.is_not_null()
    return Links(there.arg_true().to_numpy().astype(np.int64), codes.drop_nulls().to_numpy().astype(np.int64))


def links_of_files(files: Sequence[Sequence[str]], alike: Iterable[Sequence[str]]) -> Links:
    """The links of copies.

    Args:
        files: The files of each row.
        alike: Groups of files with the same bytes.
    """
    number_of = {file: number for number, group in enumerate(alike) for file in group}
    pairs = [(row, number_of[file]) for row, own in enumerate(files) for file in own if file in number_of]
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Links(table[:, 0], table[:, 1])


def grouped(ids: Sequence[str], links: Sequence[Links]) -> Numbers:
    """The number of the group of each row, from 0 on.

    Groups are numbered in the order of their smallest id, so that the numbers do not depend on the order of rows.

    >>> sites, days = pl.Series(["a", "a", "b", None]), pl.Series([1, 2, 2, 3])
    >>> grouped(["w", "x", "y", "z"], [links_of(sites), links_of(days)]).tolist()
    [0, 0, 0, 1]
    """
    from scipy.sparse import coo_array  # takes long to import and is needed here alone
    from scipy.sparse.csgraph import connected_components

    rows, nodes, size = [], [], len(ids)
    for link in links:
        rows.append(link.rows)
        nodes.append(link.keys + size)
        size += int(link.keys.max()) + 1 if len(link.keys) else 0
    row, node = (np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64) for parts in (rows, nodes))
    graph = coo_array((np.ones(len(row), dtype=np.int8), (row, node)), shape=(size, size))
    component = connected_components(graph, directed=False)[1][: len(ids)]
    first = pl.DataFrame({"component": component, "id": pl.Series(ids, dtype=pl.String)})
    return first.select(pl.col("id").min().over("component").rank("dense") - 1).to_series().to_numpy().astype(np.int64)
