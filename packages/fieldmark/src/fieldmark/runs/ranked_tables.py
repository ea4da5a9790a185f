"""Ranked labels out of a table, in memory or in a plain file, many rows at once.

Only tables without any fault are read here; for all others the answer is None, and the reader that goes line by line
says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.runs.code_sets import CodeSets, offsets_of
from fieldmark.tables.labels import UNKNOWN, UNKNOWN_NAME, Labels
from fieldmark.tables.text_columns import column_of

# Rows whose labels are taken apart together: what is made of them stays in the processor's cache.
ROWS_AT_ONCE = 1 << 16


class RankedRows(NamedTuple):
    """The labels of each item, best first, and how strange it is where a column says so."""

    lists: CodeSets
    strange: NDArray[np.float64] | None


def read_faultless(
    frame: pl.DataFrame,
    items: Sequence[str],
    labels: Labels,
    *,
    separator: str,
    lengths: tuple[int, int],
    unknown: bool,
    strange: bool,
) -> RankedRows | None:
    """Reads a table of id, labels and, if there is one, a novelty score; None where anything is wrong with it.

    Args:
        frame: The columns in that order; no spaces around the ids.
        items: The items that must be answered, each exactly once.
        labels: The labels that may be named.
        separator: What stands between two labels.
        lengths: How many labels a row may list, at least and at most.
        unknown: Whether "-1" may be named as well.
        strange: Whether the third column is there.
    """
    ids = frame.to_series(0).cast(pl.String)
    if len(ids) != len(items):
        return None
    asked = column_of(items, "id")
    order = None if ids.equals(asked) else _rows_of(asked, ids)
    if order is not None and (len(order) != len(asked) or order.has_nulls()):
        return None
    texts = frame.to_series(1).cast(pl.String)
    texts = texts if order is None else texts.gather(order)
    answerable = pl.Enum((*labels.names, UNKNOWN_NAME) if unknown else labels.names)
    blocks = []
    for start in range(0, len(texts), ROWS_AT_ONCE):
        block = _named(texts.slice(start, ROWS_AT_ONCE), answerable, separator, lengths)
        if block is None:
            return None
        blocks.append(block)
    lists = CodeSets.concat(blocks) if blocks else CodeSets.of_lists([])
    lists = CodeSets(np.where(lists.codes < len(labels), lists.codes, np.int32(UNKNOWN)), lists.offsets)
    if not strange:
        return RankedRows(lists, None)
    numbers = frame.to_series(2).cast(pl.Float64, strict=False)
    numbers = numbers if order is None else numbers.gather(order)
    if numbers.has_nulls() or not numbers.is_finite().all():
        return None
    return RankedRows(lists, numbers.to_numpy())


def _rows_of(asked: pl.Series, ids: pl.Series) -> pl.Series:
    """The row of each item: null where it has none, and more rows than items where one stands twice."""
    rows = pl.DataFrame({"id": ids}).with_row_index("row")
    return asked.to_frame("id").join(rows, on="id", how="left", maintain_order="left")["row"]


def _named(texts: pl.Series, answerable: pl.Enum, separator: str, lengths: tuple[int, int]) -> CodeSets | None:
    """The labels of some rows as places among those that may be named; None where anything is wrong with them."""
    if separator != " ":
        names = texts.str.split(separator).list.eval(pl.element().str.strip_chars())
        return _coded(names, answerable, lengths)
    # Nearly all runs have one blank between labels; the pattern takes four times as long.
    plainly = _coded(texts.str.split(separator), answerable, lengths)
    return plainly or _coded(texts.str.extract_all(r"\S+"), answerable, lengths)


def _coded(names: pl.Series, answerable: pl.Enum, lengths: tuple[int, int]) -> CodeSets | None:
    counts = names.list.len()
    fewest, most = counts.min(), counts.max()
    if counts.has_nulls() or fewest < lengths[0] or most > lengths[1]:  # type: ignore[operator]
        return None
    codes = names.explode(empty_as_null=False).cast(answerable, strict=False).to_physical()
    if codes.has_nulls():
        return None
    lists = CodeSets(codes.to_numpy().astype(np.int32), offsets_of(counts.to_numpy()))
    pairs = np.repeat(np.arange(len(lists)), lists.lengths) * len(answerable.categories) + lists.codes
    pairs.sort()
    return None if (pairs[1:] == pairs[:-1]).any() else lists
