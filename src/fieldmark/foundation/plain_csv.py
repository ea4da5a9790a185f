"""CSV that can be read in one way only, read many lines at once: most files are such, and line by line it takes longer.

Whatever is unusual about a file or wrong with it is left to the readers that go line by line and can say where.
"""

from __future__ import annotations

from typing import IO

import polars as pl

# Quotes, carriage returns and zeros mean something to readers of CSV; Python alone takes the others for white space.
UNUSUAL = (b'"', b"\r", b"\0", b"\x1c", b"\x1d", b"\x1e", b"\x1f", b"\n\n")
# What is read of a file at a time: the next block takes the memory of the last one, which the system has to give once.
BYTES_AT_ONCE = 4 << 20


def plain_csv(file: IO[bytes]) -> pl.DataFrame | None:
    r"""The fields of a file as text, blank ones as null, without the spaces around them; None where it is not plain.

    Plain is UTF-8 with commas between at least two fields, as many in every line as in the header, whose names are all
    different; no quotes, no empty lines, and line feeds alone at the ends of lines.

    >>> import io
    >>> plain_csv(io.BytesIO(b"id,label\na, 1\nb,\n")).rows()
    [('a', '1'), ('b', None)]
    >>> plain_csv(io.BytesIO(b"id,label\na,1\nb\n")) is None
    True
    """
    first = file.readline()
    header = first.decode(errors="replace").removesuffix("\n").split(",")
    if len(header) < 2 or len(set(header)) < len(header) or any(name != name.strip() or not name for name in header):
        return None
    if first.startswith(b"\xef\xbb\xbf") or any(mark in first for mark in UNUSUAL):
        return None
    blocks = []
    while data := file.read(BYTES_AT_ONCE):
        block = _plain_lines(data + file.readline(), header)
        if block is None:
            return None
        blocks.append(block)
    return pl.concat(blocks, rechunk=False) if blocks else None


def _plain_lines(data: bytes, header: list[str]) -> pl.DataFrame | None:
    """The fields of whole lines; None where they are not plain."""
    if data.startswith(b"\n") or any(mark in data for mark in UNUSUAL):
        return None
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    if data.count(b",") != lines * (len(header) - 1):
        return None
    try:
        frame = pl.read_csv(data, quote_char=None, infer_schema=False, has_header=False, new_columns=header)
    except pl.exceptions.PolarsError:
        return None
    if frame.height != lines or frame.width != len(header):
        return None
    frame = frame.with_columns(pl.all().str.strip_chars())
    blank = [name for name in frame.columns if (frame[name] == "").any()]
    return frame.with_columns(
        pl.when(pl.col(name) == "").then(None).otherwise(pl.col(name)).alias(name) for name in blank
    )
