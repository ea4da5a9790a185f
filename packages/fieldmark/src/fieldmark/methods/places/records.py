"""What methods for places learn from: points with covariates, what was found there, and points to set it against.

Records of what was seen say nothing about what was not. A method for such records needs points that stand for the
region (*background*), and they come from one of two places:

- `random`: points all over the region, as the release has them (its unlabeled items), or, where it has none, the places
  of train thinned out to one for each cell of a grid, so that a place that is often visited counts no more than others.
- `target-group`: the places of all records of all species (Phillips et al. 2009): what draws observers to a road draws
  them there for every species alike, and cancels.

A survey needs none: where somebody looked and did not find, the species is absent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fieldmark.methods.base import targets_of
from fieldmark.questions.targets import PairTargets, Targets
from fieldmark.views.parts import Part

Floats = NDArray[np.float32]
Codes = NDArray[np.int32]
Background = Literal["auto", "random", "target-group"]
BACKGROUNDS: tuple[Background, ...] = ("auto", "random", "target-group")
EARTH_KM = 6371.0
# Thinned records are at most one per cell of a grid with so many cells for each of them.
CELLS_PER_POINT = 4
MOST_BACKGROUND = 10_000
# Records of fewer species than this say little of where people look.
GROUP_SPECIES = 5


@dataclass(frozen=True)
class Points:
    """Places with what is known of them.

    Args:
        lat: Latitude in degrees, NaN where it is not known.
        lon: Longitude in degrees.
        table: One row of covariates per place.
    """

    lat: NDArray[np.float64]
    lon: NDArray[np.float64]
    table: Floats

    def __len__(self) -> int:
        return len(self.table)

    def take(self, rows: NDArray[np.int64]) -> Points:
        """Some of the places."""
        return Points(self.lat[rows], self.lon[rows], self.table[rows])

    @property
    def on_sphere(self) -> NDArray[np.float64]:
        """Each place as a point on a sphere of the size of the Earth, in km; those without a place at its middle."""
        lat, lon = np.radians(np.nan_to_num(self.lat)), np.radians(np.nan_to_num(self.lon))
        points = np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]) * EARTH_KM
        points[~(np.isfinite(self.lat) & np.isfinite(self.lon))] = 0.0
        return points


def coordinates(part: Part) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Latitude and longitude of the items of a part, NaN where they are not told."""
    nowhere = np.full(len(part), np.nan)
    if not {"lat", "lon"} <= set(part.items.columns):
        return nowhere, nowhere
    lat, lon = (part.items[name].cast(float).fill_null(np.nan).to_numpy().astype(np.float64) for name in ("lat", "lon"))
    return lat, lon


@dataclass(frozen=True)
class PlaceRecords:
    """Places with the species found there.

    Args:
        points: The places.
        row: The place of each find.
        code: The species of each find.
        n_labels: How many species there are.
        background: Points of the region; None for a survey.
        asked: For a survey that did not look for everything: place x species, whether somebody looked.
        against_background: Whether the background is other points than the records, so that species are set against it
            and not against each other.
        given: Points all over the region, where the release has them.
    """

    points: Points
    row: NDArray[np.int64]
    code: Codes
    n_labels: int
    background: Points | None
    asked: NDArray[np.bool_] | None = None
    against_background: bool = False
    given: Points | None = None

    def against(self, background: Background, seed: int) -> PlaceRecords:
        """The same records, set against random points of the region or a target group."""
        rng = np.random.default_rng(seed)
        if background == "target-group":
            chosen = self.points.take(_at_most(np.unique(self.row), rng))
        elif self.given is not None and len(self.given):
            chosen = self.given.take(_at_most(np.arange(len(self.given)), rng))
        else:
            chosen = self.points.take(_at_most(_thinned(self.points, rng), rng))
        return replace(self, background=chosen, against_background=background != "target-group")

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often each species was found."""
        return np.bincount(self.code, minlength=self.n_labels)

    @property
    def is_survey(self) -> bool:
        """Whether it is known what is absent."""
        return self.background is None

    @property
    def log_prior(self) -> NDArray[np.float64]:
        """The log of the share of each species: of the records, or for a survey of the places that have it."""
        if self.is_survey:
            looked = len(self.points) if self.asked is None else self.asked.sum(axis=0)
            return np.asarray(np.log((self.counts + 0.5) / (looked + 1.0)))
        counts = self.counts + 0.5
        return np.asarray(np.log(counts / counts.sum()))

    def of_species(self, code: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Covariates of the places with a species, and of those it is set against: absences, or the background."""
        rows = self.row[self.code == code]
        if self.background is not None:
            return self.points.table[rows], self.background.table
        absent = np.ones(len(self.points), dtype=np.bool_) if self.asked is None else self.asked[:, code].copy()
        absent[rows] = False
        return self.points.table[rows], self.points.table[absent]


def pairs_of(targets: Targets) -> tuple[NDArray[np.int64], Codes]:
    """Item and label of everything that was found."""
    if isinstance(targets, PairTargets):
        return targets.row.astype(np.int64), targets.code
    known = np.flatnonzero(targets.codes >= 0)
    return known, targets.codes[known]


def is_survey(targets: Targets) -> bool:
    """Whether labels that are not named are known to be absent.

    Items with any number of labels are a survey unless each has just one, as records of what was seen have.
    """
    if not isinstance(targets, PairTargets):
        return False
    if targets.asked is not None:
        return bool(targets.asked.sum() > len(targets.row))
    return bool((np.bincount(targets.row, minlength=len(targets)) != 1).any())


def records_of(
    train: Part, points: Points, n_labels: int, background: Background, given: Points | None, seed: int
) -> PlaceRecords:
    """What a part teaches.

    Args:
        train: The items with their labels.
        points: Their places and covariates.
        n_labels: How many labels there are.
        background: Where the background of records comes from.
        given: Points all over the region, where the release has them.
        seed: Of the draw.
    """
    targets = targets_of(train)
    row, code = pairs_of(targets)
    if is_survey(targets):
        return PlaceRecords(points, row, code, n_labels, None, getattr(targets, "asked", None))
    if background == "auto":
        together = targets.shape == "codes" or len(np.unique(code)) >= GROUP_SPECIES
        background = "target-group" if together else "random"
    return PlaceRecords(points, row, code, n_labels, None, given=given).against(background, seed)


def _at_most(rows: NDArray[np.int64], rng: np.random.Generator, most: int = MOST_BACKGROUND) -> NDArray[np.int64]:
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def _thinned(points: Points, rng: np.random.Generator) -> NDArray[np.int64]:
    """One place for each cell of a grid of equal areas over the region."""
    there = np.flatnonzero(np.isfinite(points.lat) & np.isfinite(points.lon))
    if not len(there):
        return np.arange(len(points))
    x, y = np.radians(points.lon[there]), np.sin(np.radians(points.lat[there]))
    area = max(float(np.ptp(x) * np.ptp(y)), 1e-12)
    side = np.sqrt(area / (CELLS_PER_POINT * len(there)))
    cells = np.floor((x - x.min()) / side).astype(np.int64) * (2**31) + np.floor((y - y.min()) / side).astype(np.int64)
    order = rng.permutation(len(there))
    first = np.unique(cells[order], return_index=True)[1]
    return np.sort(there[order[first]])
