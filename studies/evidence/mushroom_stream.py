"""How far the month and the last weeks predict the next name, in the order in which records became known (real names).

Mushroom Observer: one record for each name, date and observer, in the order of `image`, which is the order in which
they became known; many are of older finds. A record is predicted from those before it. The first 10,000 only teach, the
next 10,000 choose the settings of each prior by log loss, the rest is scored. Units are observers.

frequency: counts of all names so far, and half a record of each name that ever occurs. month: counts in that month of
any year. weeks: counts of records whose date lies up to eight half-lives before that of the record, half as much after
each half-life. Both are ratios to the frequency, shrunk toward 1 as `steps/priors/smoothing.py` does; month and weeks:
the ratios of the weeks shrunk toward the month. "Others" leaves out what the same observer has seen before, in every
count: who uploads a series of one find makes any prior look good.

A first version shrank the shares of the month themselves toward the frequency; on the scored records its month lost to
the frequency (8.11 against 8.00 nats), whereupon the ratios of the system took its place.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from studies.evidence.pairing import compared
from studies.evidence.results import real_data

TEACH, CHOOSE = 10_000, 10_000
# Every so manyth record is predicted; all of them teach.
EVERY = 8
HALF_LIVES, STRENGTHS = (7, 14, 28), (1.0, 3.0, 10.0, 30.0, 100.0)
REACH = 8
PLAIN = "frequency"
Logs = NDArray[np.float64]


class Stream(NamedTuple):
    """One row per record, in the order in which they became known."""

    name: NDArray[np.int64]
    day: NDArray[np.int64]
    month: NDArray[np.int64]
    observer: NDArray[np.int64]


def run() -> dict[str, Any] | None:
    """Log loss and top-10 of each prior, with and without the observer's own past."""
    folder = real_data("mushroom_observer_stream")
    if folder is None:
        return None
    stream = read_stream(folder)
    result: dict[str, Any] = {
        "simulated": False,
        "about": " ".join(str(__doc__).split("\n\n", 1)[1].split()),
        "records": len(stream.name),
        "names": int(stream.name.max()) + 1,
        "past": {},
    }
    for own in (True, False):
        result["past"]["everybody" if own else "others"] = _study(stream, own=own)
    return result


def read_stream(folder: Path) -> Stream:
    """The records, each name, date and observer once, in the order of `image`."""
    rows = pl.read_csv(lzma.decompress((folder / "stream.csv.xz").read_bytes()), infer_schema=False)
    rows = rows.with_columns(pl.col("image").cast(pl.Int64), pl.col("created").str.to_date(strict=False)).drop_nulls()
    rows = rows.sort("image").unique(["name", "created", "observer"], keep="first", maintain_order=True)
    codes = [rows[column].rank("dense").to_numpy().astype(np.int64) - 1 for column in ("name", "observer")]
    day = rows["created"].to_physical().to_numpy().astype(np.int64)
    return Stream(codes[0], day - day.min(), rows["created"].dt.month().to_numpy().astype(np.int64) - 1, codes[1])


class _Counts:
    """What is known so far, with what one observer has seen taken off where that is wanted."""

    def __init__(self, stream: Stream, *, own: bool) -> None:
        names = int(stream.name.max()) + 1
        self._stream, self._own = stream, own
        self._all = np.zeros(names)
        self._months = np.zeros((12, names))
        self._days = np.zeros((int(stream.day.max()) + 1, names), dtype=np.float32)
        self._records: dict[int, list[int]] = {}

    def add(self, row: int) -> None:
        name, day, month, observer = (int(column[row]) for column in self._stream)
        self._all[name] += 1
        self._months[month, name] += 1
        self._days[day, name] += 1
        self._records.setdefault(observer, []).append(row)

    @property
    def total(self) -> float:
        """How many records there are so far."""
        return float(self._all.sum())

    def frequency(self, row: int) -> Logs:
        counts = self._all - self._of_observer(row) + 0.5
        return np.asarray(counts / counts.sum())

    def of_month(self, row: int) -> Logs:
        month = self._stream.month[row]
        taken = self._of_observer(row, lambda past: (self._stream.month[past] == month).astype(float))
        return np.asarray(self._months[month] - taken)

    def of_weeks(self, row: int, half_life: int) -> Logs:
        today = int(self._stream.day[row])
        first = max(today - REACH * half_life, 0)
        weights = (0.5 ** ((today - np.arange(first, today + 1)) / half_life)).astype(np.float32)
        counts = (weights @ self._days[first : today + 1]).astype(np.float64)

        def weight(past: NDArray[np.int64]) -> NDArray[np.float64]:
            ago = today - self._stream.day[past]
            return np.where((ago >= 0) & (ago <= today - first), 0.5 ** (np.abs(ago) / half_life), 0.0)

        return np.asarray(np.maximum(counts - self._of_observer(row, weight), 0.0))

    def _of_observer(self, row: int, weight: Any = None) -> Any:
        if self._own:
            return 0.0
        past = np.array(self._records.get(int(self._stream.observer[row]), ()), dtype=np.int64)
        weights = None if weight is None else weight(past)
        return np.bincount(self._stream.name[past], weights=weights, minlength=len(self._all))


def _predictions(counts: _Counts, row: int, settings: dict[str, Any] | None) -> Iterator[tuple[str, Logs]]:
    """The shares that each prior gives to all names; every setting while there is one to choose."""
    wide = counts.frequency(row)
    yield PLAIN, wide
    months = counts.of_month(row)
    lent_months = STRENGTHS if settings is None else (settings["month"],)
    by_month = {lent: _shrunk(months, counts.total, wide, wide, lent) for lent in lent_months}
    for lent, shares in by_month.items():
        yield _named("month", lent, settings), shares
    half_lives = HALF_LIVES if settings is None else (settings["weeks"][0],)
    for half_life in half_lives:
        weeks = counts.of_weeks(row, half_life)
        for lent in STRENGTHS if settings is None else (settings["weeks"][1],):
            yield _named("weeks", (half_life, lent), settings), _shrunk(weeks, counts.total, wide, wide, lent)
            if settings is not None:
                toward = by_month[settings["month"]]
                yield "month and weeks", _shrunk(weeks, counts.total, wide, toward, lent)


def _shrunk(own: Logs, total: float, wide: Logs, toward: Logs, lent: float) -> Logs:
    """Shares of names in a context: those of a wider one, times ratios that few records move little."""
    number = own.sum()
    borrowed = lent * (wide + number / total)
    shares = toward * (own + borrowed) / (number * toward + borrowed)
    return np.asarray(shares / shares.sum())


def _named(prior: str, setting: Any, chosen: dict[str, Any] | None) -> str:
    return prior if chosen is not None else f"{prior}|{setting}"


def _study(stream: Stream, *, own: bool) -> dict[str, Any]:
    counts, settings = _Counts(stream, own=own), None
    trial: dict[str, float] = {}
    scored: list[int] = []
    loss: dict[str, list[float]] = {}
    top: dict[str, list[float]] = {}
    for row in range(len(stream.name)):
        if row == TEACH + CHOOSE:
            settings = _choose(trial)
        if row >= TEACH and row % EVERY == 0:
            name = stream.name[row]
            for prior, shares in _predictions(counts, row, settings):
                if settings is None:
                    trial[prior] = trial.get(prior, 0.0) - float(np.log(shares[name]))
                    continue
                loss.setdefault(prior, []).append(-float(np.log(shares[name])))
                top.setdefault(prior, []).append(float((shares > shares[name]).sum() < 10))
            if settings is not None:
                scored.append(row)
        counts.add(row)
    units = np.unique(stream.observer[scored], return_inverse=True)[1]
    print(own, settings, {name: round(float(np.mean(values)), 3) for name, values in loss.items()}, flush=True)
    return {
        "scored": len(scored),
        "observers": int(units.max()) + 1,
        "settings": settings,
        "log_loss": _compared(loss, units, higher_is_better=False),
        "top_10": _compared(top, units, higher_is_better=True),
    }


def _compared(found: dict[str, list[float]], units: NDArray[np.int64], *, higher_is_better: bool) -> dict[str, Any]:
    values = {name: np.array(one) for name, one in found.items()}
    return compared(values, units, PLAIN, key="less_frequency", higher_is_better=higher_is_better)


def _choose(trial: dict[str, float]) -> dict[str, Any]:
    """The settings of lowest log loss; month and weeks together take those of each."""
    best: dict[str, Any] = {}
    for prior in ("month", "weeks"):
        named = {name: value for name, value in trial.items() if name.startswith(f"{prior}|")}
        text = min(named, key=lambda name: named[name]).split("|")[1]
        best[prior] = float(text) if prior == "month" else tuple(float(n) for n in text.strip("()").split(","))
    best["weeks"] = (int(best["weeks"][0]), best["weeks"][1])
    return best
