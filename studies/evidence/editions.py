"""Do the 95 % intervals of the metrics of later editions cover? As `studies.evidence.challenges`, for 2021 to 2026."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import polars as pl

from fieldmark.work.progress import progress
from studies.evidence.challenges import Draw, study
from studies.evidence.results import read_result, write_result

DRAWS = 500
NAME = "editions"


def species_lists(
    rng: np.random.Generator, *, units: int, per_unit: tuple[int, int], species: int = 120
) -> dict[str, Any]:
    """Plots in transects that share a flora; a run finds what is common and names some that is not there."""
    unit = np.repeat(np.arange(units), rng.integers(*per_unit, units))
    abundance = np.arange(1, species + 1.0) ** -0.9
    true, said = (np.zeros((len(unit), species), dtype=bool) for _ in range(2))
    for one in range(units):
        flora = rng.choice(species, 15, replace=False, p=abundance / abundance.sum())
        easy = rng.beta(2, 2)
        for row in np.flatnonzero(unit == one):
            there = flora[rng.random(15) < 0.4]
            true[row, there] = True
            said[row, there[rng.random(len(there)) < 0.3 + 0.6 * easy]] = True
            said[row, rng.choice(species, 2, p=abundance / abundance.sum())] = True
    (item, label), truth = np.nonzero(said), np.nonzero(true)
    pairs = tuple(column.astype(np.int32) for column in (item, label))
    return {
        "scored": (*pairs, np.ones(len(item))),
        "true": tuple(column.astype(np.int32) for column in truth),
        "asked": None,
        "n_classes": species,
        "unit": unit,
    }


def columns(rng: np.random.Generator, *, recordings: int = 60, classes: int = 40) -> dict[str, Any]:
    """Recordings of twelve segments with a score for every class."""
    unit = np.repeat(np.arange(recordings), 12)
    abundance = np.arange(1, classes + 1.0) ** -0.8
    holds = np.zeros((len(unit), classes), dtype=bool)
    loud = np.zeros((len(unit), classes))
    for one in range(recordings):
        voices = rng.choice(classes, 4, replace=False, p=abundance / abundance.sum())
        rows = np.flatnonzero(unit == one)
        holds[np.ix_(rows, voices)] = rng.random((12, 4)) < 0.35
        loud[rows] = rng.normal(0, 0.6)
    score = 1 / (1 + np.exp(2.5 - 2.2 * holds - loud * holds - rng.normal(size=holds.shape)))
    segment, cls = (column.astype(np.int32) for column in np.nonzero(np.ones_like(holds)))
    truth = tuple(column.astype(np.int32) for column in np.nonzero(holds))
    return {"scored": (segment, cls, score.ravel()), "true": truth, "asked": None, "n_classes": classes, "unit": unit}


def decisions(rng: np.random.Generator) -> dict[str, Any]:
    """Yes or no for 21 species of which each recording was looked through for a few."""
    fields = columns(rng, recordings=80, classes=21)
    segment, cls, score = fields["scored"]
    yes = score > 0.35
    looked = rng.random((80, 21)) < 0.3
    asked = looked[fields["unit"][segment], cls]
    return fields | {"scored": (segment[yes], cls[yes], np.ones(int(yes.sum()))), "asked": (segment[asked], cls[asked])}


def ranks(rng: np.random.Generator, *, items: int = 600, species: int = 150) -> dict[str, Any]:
    """Observations of species with a long tail; rare ones are found late."""
    abundance = np.arange(1, species + 1.0) ** -0.9
    truth = rng.choice(species, items, p=abundance / abundance.sum()).astype(np.int32)
    early = 0.1 + 0.7 * np.linspace(1, 0, species)
    rank = np.where(rng.random(items) < 0.2, 0, rng.geometric(early[truth]))
    return {"rank_of_truth": rank, "true_codes": truth, "unit": np.arange(items)}


def countries(rng: np.random.Generator, *, items: int = 800, species: int = 40) -> dict[str, Any]:
    """Photos of snakes in ten countries of very different weight, each with species of its own."""
    weight = np.arange(1, 11.0) ** -1.0
    country = rng.choice(10, items, p=weight / weight.sum())
    truth = ((country * 3 + rng.geometric(0.25, items)) % species).astype(np.int32)
    first = np.where(rng.random(items) < 0.7, truth, rng.integers(0, species, items)).astype(np.int32)
    return {
        "true_codes": truth,
        "first": first,
        "ranked": first[:, None],
        "n_classes": species,
        "dangerous": np.arange(species) % 3 == 0,
        "groups": pl.DataFrame({"country": country.astype(str)}),
        "unit": np.arange(items),
    }


def individuals(rng: np.random.Generator, *, animals: int = 150) -> dict[str, Any]:
    """Individuals of three datasets with one to a dozen photos, a third of them new; some are easier than others."""
    unit = np.repeat(np.arange(animals), np.minimum(rng.geometric(0.25, animals), 12))
    is_new = (np.arange(animals) % 3 == 0)[unit]
    right = rng.random(len(unit)) < rng.beta(3, 2, animals)[unit]
    wrong = np.where(is_new, 0, -1)
    truth = np.where(is_new, -1, unit).astype(np.int32)
    # Photos of one animal end in few clusters; some clusters hold two animals.
    cluster = np.where(rng.random(len(unit)) < 0.75, unit // 2 * 2 + (rng.random(animals) < 0.7)[unit], unit + 1000)
    first = np.where(right, truth, wrong).astype(np.int32)
    return {
        "true_codes": truth,
        "first": first,
        "ranked": first[:, None],
        "is_known": ~is_new,
        "identity": unit.astype(np.int32),
        "cluster": cluster.astype(np.int32),
        "groups": pl.DataFrame({"dataset": (unit // (animals // 3 + 1)).astype(str)}),
        "unit": unit,
    }


POPULATIONS: dict[str, tuple[str, Draw]] = {
    "40 transects of 3 to 8 quadrats": ("plantclef-2025", partial(species_lists, units=40, per_unit=(3, 9))),
    "15 transects of 3 to 8 quadrats": ("plantclef-2025", partial(species_lists, units=15, per_unit=(3, 9))),
    "300 plots": ("geolifeclef-2024", partial(species_lists, units=300, per_unit=(1, 2))),
    "60 recordings, 40 classes": ("birdclef-2023", columns),
    "60 recordings, 40 classes, ROC-AUC first": ("birdclef-2024", columns),
    "80 recordings, 21 species, pairs asked": ("birdclef-2022", decisions),
    "600 observations, 150 species": ("plantclef-2022", ranks),
    "800 snakes in 10 countries": ("snakeclef-2021", countries),
    "150 individuals, a third new": ("animalclef-2025", individuals),
    "150 individuals in clusters": ("animalclef-2026", individuals),
    "30 individuals, a third new": ("animalclef-2025", partial(individuals, animals=30)),
}


def run() -> dict[str, Any]:
    """Coverage and relative width of every metric; populations that were studied before are kept."""
    before = (read_result(NAME) or {"rows": []})["rows"]
    rows = [row for row in before if row["population"] in POPULATIONS]
    done = {row["population"] for row in rows}
    for number, (name, (benchmark, draw)) in enumerate(POPULATIONS.items()):
        if name not in done:
            with progress(name, DRAWS) as tick:
                rows += study(name, benchmark, draw, number, tick, draws=DRAWS)
            write_result(NAME, _result(rows))
    return _result(rows)


def _result(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"simulated": True, "nominal": 0.95, "draws": DRAWS, "rows": rows}
