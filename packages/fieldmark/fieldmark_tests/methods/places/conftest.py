from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fieldmark.questions.targets import LabelTargets, PairTargets
from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part, View

LABELS = Labels(("alpine", "coastal", "lowland", "never seen", "wet"))
# The warmth, height and wetness that each species likes, and how common it is.
NICHES = np.array([[-1.5, 1.5, 0.0], [1.5, -1.0, 1.0], [0.5, -0.5, -1.0], [0, 0, 0], [0, 0, 1.5]])
COMMON = np.array([1.0, 1.0, 2.0, 0.0, 1.0])


def nature(lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    """Warmth, height and wetness, smooth in space."""
    return np.column_stack([-lat, np.sin(lat) + 0.3 * lat, np.cos(2 * lon)]).astype(np.float32)


def intensity(table: np.ndarray) -> np.ndarray:
    """How many of each species live at a place."""
    apart = ((table[:, None] - NICHES) ** 2).sum(axis=2)
    return COMMON * np.exp(-apart)


def part_at(lat: np.ndarray, lon: np.ndarray, targets=None, name: str = "p") -> Part:
    items = pl.DataFrame(
        {
            "item_id": [f"{name}{i}" for i in range(len(lat))],
            "observation_id": [f"{name}{i}" for i in range(len(lat))],
            "media_ids": [[]] * len(lat),
            "lat": lat,
            "lon": lon,
        },
        schema_overrides={"media_ids": pl.List(pl.String)},
    )
    place = np.column_stack([lat, lon]).astype(np.float32)
    return Part(items, targets, features={"environment": nature(lat, lon), "place": place}, missing={})


def draw_records(rng: np.random.Generator, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places and species of records; people go to the east more often than to the west."""
    lat, lon = rng.uniform(-2, 2, 40 * number), rng.uniform(-2, 2, 40 * number)
    visited = rng.random(len(lat)) < (lon + 2.5) / 4.5
    rates = intensity(nature(lat, lon))
    seen = np.flatnonzero(visited & (rng.random(len(lat)) < rates.sum(axis=1) / rates.sum(axis=1).max()))[:number]
    shares = rates[seen] / rates[seen].sum(axis=1, keepdims=True)
    code = (shares.cumsum(axis=1) > rng.random((len(seen), 1))).argmax(axis=1)
    return lat[seen], lon[seen], code.astype(np.int32)


def pairs(code: np.ndarray) -> PairTargets:
    return PairTargets(np.arange(len(code), dtype=np.int32), code, np.ones(len(code), bool), code, len(LABELS))


def view_of(targets, *, number: int = 240) -> View:
    """Records for train and val, and background points all over the region."""
    rng = np.random.default_rng(0)
    train_lat, train_lon, train_code = draw_records(rng, number)
    val_lat, val_lon, val_code = draw_records(rng, 60)
    background = part_at(*rng.uniform(-2, 2, (2, 300)), name="b")
    taxonomy = Taxonomy.of(LABELS, pl.DataFrame({"label": LABELS.names}))
    train = part_at(train_lat, train_lon, targets(train_code), "t")
    return View(LABELS, taxonomy, train, part_at(val_lat, val_lon, targets(val_code), "v"), background, None)


@pytest.fixture(scope="session")
def sightings() -> View:
    """One label for each record."""
    return view_of(LabelTargets)


@pytest.fixture(scope="session")
def presences() -> View:
    """Records of presences for a question about each species."""
    return view_of(pairs)


@pytest.fixture(scope="session")
def survey() -> View:
    """Places where every species was looked for."""
    rng = np.random.default_rng(1)
    lat, lon = rng.uniform(-2, 2, (2, 200))
    row, code = np.nonzero(rng.random((200, len(LABELS))) < 1 - np.exp(-2 * intensity(nature(lat, lon))))
    foremost = np.full(200, -1, dtype=np.int32)
    foremost[row] = code
    targets = PairTargets(row.astype(np.int32), code.astype(np.int32), np.ones(len(row), bool), foremost, len(LABELS))
    taxonomy = Taxonomy.of(LABELS, pl.DataFrame({"label": LABELS.names}))
    return View(LABELS, taxonomy, part_at(lat, lon, targets), None, None, None)


@pytest.fixture(scope="session")
def sites() -> tuple[Part, np.ndarray]:
    """Places with how much of each species really lives there."""
    lat, lon = np.random.default_rng(2).uniform(-2, 2, (2, 150))
    return part_at(lat, lon, name="s"), intensity(nature(lat, lon))
