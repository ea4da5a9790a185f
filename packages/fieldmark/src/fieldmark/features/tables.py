"""Columns of a table as numbers: fitted to train, kept as arrays, applied to anything.

| kind | becomes |
| --- | --- |
| number | standardized by the mean and spread of train, and whether it is missing |
| category | one column per name that train has often enough, one for all others, and whether it is missing |
| date | sine and cosine of the day of the year, once and twice a year: 31 December lies next to 1 January |
| hour | the same over the hours of a day |
| place | a point on the unit sphere, seen from the middle of train, and waves over it; the date line is no border |

What is missing is 0 in all columns but the one that says so. Columns that are the same for all of train can teach
nothing and are left out, so that a value train has never shown (a new habitat, a date that is missing for the first
time) cannot throw an answer off.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Kind = Literal["number", "category", "date", "hour", "place"]
Floats = NDArray[np.float64]
Numbers = NDArray[np.float32]

# How often a date or an hour goes round its circle in the fastest pair of columns.
HARMONICS = 2
# A category must occur this often in train to have a column of its own; rarer ones share one.
FEWEST = 2


class TableColumn(NamedTuple):
    """The values of one column.

    Args:
        kind: What they are.
        values: Numbers with NaN for missing (dates as the share of the year that has passed, hours from 0 to 24),
            texts with None for missing, or for a place one row of latitude and longitude each.
    """

    kind: Kind
    values: Any


class _Encoder(Protocol):
    def __call__(self, values: Any) -> Floats: ...


@dataclass(frozen=True)
class _Number:
    mean: float
    spread: float

    @classmethod
    def fit(cls, values: Floats) -> _Number:
        there = values[np.isfinite(values)]
        mean, spread = (float(there.mean()), float(there.std())) if len(there) else (0.0, 0.0)
        return cls(mean, spread or 1.0)

    def __call__(self, values: Floats) -> Floats:
        missing = ~np.isfinite(values)
        standardized = (np.where(missing, self.mean, values) - self.mean) / self.spread
        return np.column_stack([standardized, missing])


@dataclass(frozen=True)
class _Category:
    names: list[str]

    @classmethod
    def fit(cls, values: Sequence[str | None], most: int) -> _Category:
        names, counts = np.unique([value for value in values if value is not None] or [""], return_counts=True)
        often = np.lexsort((names, -counts))[:most]
        return cls(sorted(str(names[place]) for place in often if counts[place] >= FEWEST and names[place]))

    def __call__(self, values: Sequence[str | None]) -> Floats:
        place = {name: number for number, name in enumerate(self.names)}
        other, missing = len(place), len(place) + 1
        which = [missing if value is None else place.get(value, other) for value in values]
        return np.asarray(np.eye(len(place) + 2)[np.array(which, dtype=np.int64)])


@dataclass(frozen=True)
class _Cycle:
    period: float

    def __call__(self, values: Floats) -> Floats:
        missing = ~np.isfinite(values)
        angle = 2 * np.pi * np.where(missing, 0.0, values) / self.period
        waves = [wave(turn * angle) for turn in range(1, HARMONICS + 1) for wave in (np.sin, np.cos)]
        return np.column_stack([*(np.where(missing, 0.0, wave) for wave in waves), missing])


@dataclass(frozen=True)
class _Place:
    center: list[float]
    radius: float
    waves: int

    @classmethod
    def fit(cls, values: Floats, waves: int) -> _Place:
        points = on_sphere(values)
        points = points[np.isfinite(points).all(axis=1)]
        center = points.mean(axis=0) if len(points) else np.zeros(3)
        radius = float(np.sqrt(np.square(points - center).sum(axis=1).mean())) if len(points) else 0.0
        return cls(center.tolist(), radius or 1.0, waves)

    def __call__(self, values: Floats) -> Floats:
        points = (on_sphere(values) - np.array(self.center)) / self.radius
        missing = ~np.isfinite(points).all(axis=1)
        points[missing] = 0.0
        angles = [np.pi / 2 * 2.0**turn * points for turn in range(self.waves)]
        waves = [np.where(missing[:, None], 0.0, wave(angle)) for angle in angles for wave in (np.sin, np.cos)]
        return np.column_stack([points, *waves, missing])


def on_sphere(places: Floats) -> Floats:
    """Latitude and longitude in degrees as points on the unit sphere; NaN for what is no place on Earth.

    >>> on_sphere(np.array([[0.0, 180.0], [0.0, -180.0], [91.0, 0.0]])).round(6).tolist()[0]
    [-1.0, 0.0, 0.0]
    """
    there = np.asarray(np.abs(places) <= np.array([90.0, 180.0])).all(axis=1)
    lat, lon = np.radians(np.where(np.asarray(there)[:, None], places, np.nan)).T
    return np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])


_KINDS: dict[str, type[Any]] = {
    "number": _Number,
    "category": _Category,
    "date": _Cycle,
    "hour": _Cycle,
    "place": _Place,
}


@dataclass(frozen=True)
class TableEncoder:
    """Columns as numbers, as they were fitted to train.

    Args:
        columns: The kind and the encoder of each column, by its name.
        kept: Which of the numbers are not the same for all of train.
    """

    columns: Mapping[str, tuple[Kind, _Encoder]]
    kept: NDArray[np.bool_]

    @classmethod
    def fit(cls, columns: Mapping[str, TableColumn], *, categories: int = 64, waves: int = 4) -> TableEncoder:
        """Learns means, names and places from the columns of train.

        Args:
            columns: The columns by name.
            categories: The most names of a column that have a number of their own.
            waves: How many waves, each half as long as the one before, a place is seen by.
        """
        fitted = {name: (column.kind, _fit(column, categories, waves)) for name, column in columns.items()}
        numbers = _stacked(fitted, columns)
        return cls(
            fitted, np.asarray(np.ptp(numbers, axis=0) > 0 if len(numbers) else np.zeros(numbers.shape[1], bool))
        )

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kind of each column as it was in train."""
        return {name: kind for name, (kind, _) in self.columns.items()}

    def __call__(self, columns: Mapping[str, TableColumn]) -> Numbers:
        """One row per item; columns must be of the kinds of train."""
        return _stacked(self.columns, columns)[:, self.kept].astype(np.float32)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that was learned."""
        plan = {name: [kind, asdict(encoder)] for name, (kind, encoder) in self.columns.items()}  # type: ignore[call-overload]
        return {"plan": np.frombuffer(json.dumps(plan).encode(), dtype=np.uint8), "kept": self.kept}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> TableEncoder:
        """The encoder that these arrays were made by."""
        plan = json.loads(arrays["plan"].tobytes())
        columns = {name: (kind, _KINDS[kind](**values)) for name, (kind, values) in plan.items()}
        return cls(columns, arrays["kept"].astype(np.bool_))


def _fit(column: TableColumn, categories: int, waves: int) -> _Encoder:
    if column.kind == "number":
        return _Number.fit(column.values)
    if column.kind == "category":
        return _Category.fit(column.values, categories)
    if column.kind == "place":
        return _Place.fit(column.values, waves)
    return _Cycle(1.0 if column.kind == "date" else 24.0)


def _stacked(fitted: Mapping[str, tuple[Kind, _Encoder]], columns: Mapping[str, TableColumn]) -> Floats:
    return np.column_stack([encoder(columns[name].values) for name, (_, encoder) in fitted.items()])


@dataclass(frozen=True)
class NumbersEncoder:
    """Many numbers of each item at once (climate, values of rasters), standardized by train; missing ones become 0.

    Args:
        mean, spread: Those of the numbers that train has.
        kept: Which of the numbers are not the same for all of train.
    """

    mean: Floats
    spread: Floats
    kept: NDArray[np.bool_]

    @classmethod
    def fit(cls, values: Floats) -> NumbersEncoder:
        """Learns means and spreads from the numbers of train, NaN where one is missing."""
        there = np.isfinite(values)
        number = np.maximum(there.sum(axis=0), 1)
        mean = np.where(there, values, 0.0).sum(axis=0) / number
        spread = np.sqrt(np.where(there, np.square(values - mean), 0.0).sum(axis=0) / number)
        kept = spread > 1e-9 * np.maximum(np.abs(mean), 1e-300)
        return cls(mean, np.where(kept, spread, 1.0), kept)

    def __call__(self, values: Floats) -> Numbers:
        """One row per item."""
        standardized = np.where(np.isfinite(values), (values - self.mean) / self.spread, 0.0)
        return standardized[:, self.kept].astype(np.float32)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that was learned."""
        return {"mean": self.mean, "spread": self.spread, "kept": self.kept}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> NumbersEncoder:
        """The encoder that these arrays were made by."""
        return cls(arrays["mean"], arrays["spread"], arrays["kept"].astype(np.bool_))


@dataclass(frozen=True)
class SeriesEncoder(NumbersEncoder):
    """Numbers in the order of time: all are kept, those that are the same for all of train as well."""

    @classmethod
    def fit(cls, values: Floats) -> SeriesEncoder:
        plain = NumbersEncoder.fit(values)
        return cls(plain.mean, plain.spread, np.ones_like(plain.kept))
