"""Parquet read in one place: damaged files are refused in a sentence, and no thread is left with Python's memory.

`pyarrow.parquet.read_table` hands buffers of a Python object to workers of Arrow's pool. One that releases them while
the interpreter ends aborts a program that has already printed its answer. Here what lies in Python's memory is read by
the thread that asks, and files are read by Arrow itself, which asks Python for nothing. Ruff (`banned-api`) keeps other
modules from reading Parquet by themselves.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, cast

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from fieldmark.errors import InputError

# What a damaged file raises; polars panics on some that Arrow reads.
_DAMAGED = (pa.ArrowException, OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException)
# A file may hold so many values, whatever its size.
FEW_VALUES = 4_000_000


def read_table(
    source: Path | bytes,
    where: object,
    *,
    columns: Sequence[str] | None = None,
    expected: str = "a Parquet table",
    values_per_byte: int | None = None,
) -> pa.Table:
    """Reads a table.

    Args:
        source: The file, or what it holds.
        where: What messages call it.
        columns: Those that are read, where they are there; all if not given.
        expected: What the table should be, in words.
        values_per_byte: How many values a file may hold for each of its bytes, where somebody may have packed it to
            fill the memory.

    Raises:
        InputError: When there is no such file, it is something else, or it holds more than its size lets expect.
    """
    try:
        if values_per_byte is not None:
            _refuse_bomb(source, where, values_per_byte)
        return _read(source, columns)
    except _DAMAGED as error:
        raise _refused(where, error, expected) from error


def read_frame(source: Path | bytes, where: object, *, expected: str = "a Parquet table") -> pl.DataFrame:
    """The same as a frame.

    Raises:
        InputError: When there is no such file, or it is something else.
    """
    try:
        table = _read(source, None)
        table.validate(full=True)
        return cast(pl.DataFrame, pl.from_arrow(table))
    except _DAMAGED as error:
        raise _refused(where, error, expected) from error


def read_texts(source: Path | bytes, where: object) -> pl.DataFrame:
    """The same with every column as text.

    Raises:
        InputError: When there is no such file, it is something else, or a column holds no plain values.
    """
    frame = read_frame(source, where)
    for column, kind in frame.schema.items():
        if kind.is_nested() or kind in (pl.Binary, pl.Object):
            found = f"the column {column!r} of {kind}"
            raise InputError(where, found=found, expected="columns of texts, numbers or dates")
    return frame.cast(pl.String, strict=False)


def read_frames(sources: Sequence[bytes], columns: Sequence[str]) -> pl.DataFrame | None:
    """Columns of many tables that we wrote, one below the other; None where one of them has no such column.

    By polars, which takes half the time and releases Python's bytes without asking for the interpreter.
    """
    files: list[IO[bytes]] = [io.BytesIO(data) for data in sources]
    try:
        return pl.scan_parquet(files, use_statistics=False).select(columns).collect()
    except pl.exceptions.PolarsError:
        return None


def _read(source: Path | bytes, columns: Sequence[str] | None) -> pa.Table:
    in_memory = isinstance(source, bytes)
    opened: Any = pa.BufferReader(source) if in_memory else source
    with pq.ParquetFile(opened, pre_buffer=False) as file:
        if not file.num_row_groups:
            return file.read(columns=columns, use_threads=False)
        # By row groups, because one array holds no more than 2**31 values of lists.
        groups = range(file.num_row_groups)
        wanted = None if columns is None else list(columns)
        return pa.concat_tables(file.read_row_group(group, wanted, use_threads=not in_memory) for group in groups)


def _refuse_bomb(source: Path | bytes, where: object, values_per_byte: int) -> None:
    """Refuses a file that would take far more memory than its size lets expect, before any of it is read."""
    about = pq.ParquetFile(pa.BufferReader(source) if isinstance(source, bytes) else source).metadata
    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(about.num_columns)]
    values = max(sum(chunk.num_values for chunk in chunks), sum(chunk.total_uncompressed_size for chunk in chunks) // 8)
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    most = max(FEW_VALUES, values_per_byte * size)
    if values > most:
        found = f"{values:,} values in {size:,} bytes"
        raise InputError(where, found=found, expected=f"at most {most:,} in a file of this size")


def _refused(where: object, error: BaseException, expected: str) -> InputError:
    found = "no such file" if isinstance(error, FileNotFoundError) else "something else"
    return InputError(where, found=found, expected=expected)
