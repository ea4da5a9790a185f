"""How tables and numbers look in `studies/pages`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from fieldmark.stats.intervals import interval


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column holds names and whose others hold numbers."""
    lines = [" | ".join(columns), " | ".join(["---"] + ["---:"] * (len(columns) - 1))]
    lines += [" | ".join(row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines) + "\n"


def percent(triple: Sequence[float | None]) -> str:
    """A share and the bounds of its interval, in percent; without bounds it says so."""
    value, low, high = triple
    assert value is not None
    bounds = "no interval" if low is None or high is None else f"{100 * low:.1f}, {100 * high:.1f}"
    return f"{100 * value:.1f} [{bounds}]"


def mean_difference(values: np.ndarray) -> str:
    """The mean of paired differences with its interval, in percent."""
    bounds = interval(float(values.mean()), values, bounds=(-1.0, 1.0))
    return percent((float(values.mean()), bounds.low, bounds.high))


def difference(triple: Sequence[float | None] | None, factor: float, digits: str) -> str:
    """A difference and the bounds of its interval, with signs; empty where there is none."""
    if triple is None or triple[0] is None:
        return ""
    value, low, high = triple[0], triple[1], triple[2]
    bounds = "no interval" if low is None or high is None else f"{factor * low:+{digits}}, {factor * high:+{digits}}"
    return f"{factor * value:+{digits}} [{bounds}]"
