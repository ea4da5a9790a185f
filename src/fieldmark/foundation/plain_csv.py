"""CSV that can be read in one way only, read at once: most files are such, and line by line they take far longer.

Whatever is unusual about a file or wrong with it is left to the readers that go line by line and can say where.
"""

from __future__ import annotations

import polars as pl

# Quotes, carriage returns and zeros mean something to readers of CSV; Python alone takes the others for white space.
UNUSUAL = (b'"', b"\r", b"\0", b"\x1c", b"\x1d", b"\x1e", b"\x1f")


def plain_csv(data: bytes) -> pl.DataFrame | None:
    r"""The fields of a file as text, blank ones as null, without the spaces around them; None where it is not plain.

    Plain is UTF-8 with commas between at least two fields, as many in every line as in the header, whose names are all
    different; no quotes, no empty lines, and line feeds alone at the ends of lines.

    >>> plain_csv(b"id,label\na, 1\nb,\n").rows()
    [('a', '1'), ('b', None)]
    >>> plain_csv(b"id,label\na,1\nb\n") is None
    True
    """
    header = data.partition(b"\n")[0].decode(errors="replace").split(",")
    if len(header) < 2 or len(set(header)) < len(header) or any(name != name.strip() or not name for name in header):
        return None
    if b"\n\n" in data or data.startswith(b"\xef\xbb\xbf") or any(mark in data for mark in UNUSUAL):
        return None
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    if lines < 2 or data.count(b",") != lines * (len(header) - 1):
        return None
    try:
        frame = pl.read_csv(data, quote_char=None, infer_schema=False)
    except pl.exceptions.PolarsError:
        return None
    if frame.height != lines - 1 or frame.width != len(header):
        return None
    frame = frame.with_columns(pl.all().str.strip_chars())
    blank = [name for name in frame.columns if (frame[name] == "").any()]
    return frame.with_columns(
        pl.when(pl.col(name) == "").then(None).otherwise(pl.col(name)).alias(name) for name in blank
    )
