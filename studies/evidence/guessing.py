"""Somebody who guesses: populations for every deciding metric, another answer to every item, and mixtures of two runs.

A population is what the metrics of a benchmark read of an evaluation (see `studies.evidence.challenges`). Another
answer is right on some of the units: all that belongs to such a unit is right there, and wrong or drawn on the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.measures.taxonomy import TREE
from fieldmark.tables.labels import Labels
from studies.evidence import challenges, editions
from studies.evidence.challenges import Draw

Fields = dict[str, Any]
# What has a row for each item.
OF_ITEMS = ("first", "ranked", "unknown_score", "rank_of_truth", "intersection", "cluster", "scores")


@dataclass(frozen=True)
class Target:
    """A benchmark whose board is attacked, and how its test set is drawn."""

    benchmark: str
    draw: Draw


def several(rng: np.random.Generator, *, listed: int, classes: int = 60) -> Fields:
    """Photos with several labels listed."""
    fields = challenges.snakes(rng, classes=classes)
    order = np.argsort(-fields["probabilities"], axis=1).astype(np.int32)
    return fields | {"ranked": order[:, :listed]}


def scored_places(rng: np.random.Generator, *, quadrats: int = 150, species: int = 120) -> Fields:
    """Occurrences in quadrats with a score for every species, from which sets are cut."""
    unit = np.repeat(np.arange(quadrats), rng.integers(1, 6, quadrats))
    niche = np.random.default_rng(6).normal(size=(species, 3))
    affinity = rng.normal(size=(quadrats, 3)) @ niche.T
    weight = np.exp(affinity - affinity.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    truth = np.array([rng.choice(species, p=weight[one]) for one in unit], dtype=np.int32)
    return {"scores": 0.7 * affinity[unit] + rng.normal(size=(len(unit), species)), "true_codes": truth, "unit": unit}


def taxa(rng: np.random.Generator) -> Fields:
    """Answers in a tree of forty species: two of a genus, two genera of a family, and so on up."""
    fields = challenges.snakes(rng)
    names = [f"l{number:02d}" for number in range(fields["n_classes"])]
    above = {rank: [f"{rank} {number >> (7 - place)}" for number in range(40)] for place, rank in enumerate(TREE, 1)}
    return fields | {"labels": Labels.of(names), "classes": pl.DataFrame({"label": names, **above})}


TARGETS: dict[str, Target] = {
    "ranked labels of a few": Target("folder", challenges.snakes),
    "top 1": Target("semi-inat-2021", challenges.snakes),
    "five of them": Target("fungiclef-2025", challenges.ranked),
    "open set, 500 observations, 60 classes": Target("fungitastic/open", challenges.open_set),
    "poison costs, same": Target("fungitastic/cost-poison", challenges.open_set),
    "unknown costs, same": Target("fungitastic/cost-unknown", challenges.open_set),
    "tracks of FungiCLEF, same": Target("fungiclef-2023", challenges.open_set),
    "ranked labels, 400 observations": Target("plantclef-2020", challenges.ranked),
    "five labels of 400 photos": Target("fgvcx-fungi-2018", partial(several, listed=5)),
    "third track of FungiCLEF, 500 observations": Target("fungiclef-2024", challenges.open_set),
    "thirty labels of 400 places": Target("geolifeclef-2021", partial(several, listed=30, classes=300)),
    "venomous snakes, 400 photos": Target("snakeclef-2023", challenges.snakes),
    "a tree of 40 species": Target("fathomnet-2025", taxa),
    "masks of 120 observations": Target("fungitastic-mini/segmentation", challenges.masks),
    "800 snakes in 10 countries": Target("snakeclef-2021", editions.countries),
    "150 individuals, a third new": Target("animalclef-2025", editions.individuals),
    "600 observations, 150 species": Target("plantclef-2022", editions.ranks),
    "300 plots": Target("geolifeclef-2024", partial(editions.species_lists, units=300, per_unit=(1, 2))),
    "40 transects of 3 to 8 quadrats": Target(
        "plantclef-2025", partial(editions.species_lists, units=40, per_unit=(3, 9))
    ),
    "80 recordings, 21 species, pairs asked": Target("birdclef-2022", editions.decisions),
    "a survey of 150 sites, 20 species": Target("occurrences/presence", challenges.survey),
    "150 individuals in clusters": Target("animalclef-2026", editions.individuals),
    "150 quadrats, 120 species": Target("geolifeclef-2020", scored_places),
    "60 recordings, 40 classes": Target("birdclef-2023", editions.columns),
    "20 recordings, 80 birds": Target("birdclef-2020", partial(challenges.soundscapes, recordings=20)),
}


def guessed(fields: Fields, rng: np.random.Generator, *, luck: float = 0.5) -> Fields:
    """Another answer to every unit, right as often as not unless `luck` says otherwise, on all of its items."""
    _, unit = np.unique(fields["unit"], return_inverse=True)
    items, lucky = len(unit), (rng.random(unit.max() + 1) < luck)[unit]
    other = dict(fields)
    for name, guess in _GUESSES.items():
        if name in fields:
            other |= guess(fields, items, lucky, rng)
    return other


Guess = Callable[[Fields, int, NDArray[np.bool_], np.random.Generator], Fields]


def _label(fields: Fields, items: int, lucky: NDArray[np.bool_], rng: np.random.Generator) -> Fields:
    truth, classes = fields["true_codes"], fields.get("n_classes")
    wrong = rng.integers(0, classes, items) if classes else np.where(truth < 0, 0, -1)  # or known for new
    first = np.where(lucky, truth, wrong).astype(np.int32)
    return {"first": first, "ranked": np.broadcast_to(first[:, None], fields["ranked"].shape).copy()}


def _strangeness(fields: Fields, items: int, lucky: NDArray[np.bool_], rng: np.random.Generator) -> Fields:
    strange = np.where(lucky, ~fields["is_known"], fields["is_known"])
    return {"unknown_score": np.where(strange, 9.0, -9.0) + rng.normal(size=items)}


def _rank(fields: Fields, items: int, lucky: NDArray[np.bool_], rng: np.random.Generator) -> Fields:
    return {"rank_of_truth": np.where(lucky, 1, 0)}


def _overlap(fields: Fields, items: int, lucky: NDArray[np.bool_], rng: np.random.Generator) -> Fields:
    return {"intersection": np.floor(fields["union"] * np.where(lucky, 0.95, 0.4)).astype(np.int64)}


def _cluster(fields: Fields, items: int, lucky: NDArray[np.bool_], rng: np.random.Generator) -> Fields:
    drawn = rng.choice(fields["identity"], items)
    return {"cluster": np.where(lucky, fields["identity"], drawn).astype(np.int32)}


def _all_scores(fields: Fields, items: int, lucky: NDArray[np.bool_], rng: np.random.Generator) -> Fields:
    scores = fields["scores"].copy()
    scores[np.arange(items), fields["true_codes"]] = np.where(lucky, scores.max() + 1, scores.min() - 1)
    return {"scores": scores}


def _pairs(fields: Fields, items: int, lucky: NDArray[np.bool_], rng: np.random.Generator) -> Fields:
    """Pairs of item and label: lists without scores, or a score for each pair that is there."""
    (item, cls, score), (true_item, true_cls) = fields["scored"], fields["true"]
    classes = int(max(cls.max(), true_cls.max())) + 1
    if (score == 1).all():
        drawn = rng.integers(0, classes, len(true_cls))
        pairs = np.unique(np.stack([true_item, np.where(lucky[true_item], true_cls, drawn)]), axis=1).astype(np.int32)
        return {"scored": (pairs[0], pairs[1], np.ones(pairs.shape[1]))}
    there = np.isin(item.astype(np.int64) * classes + cls, true_item.astype(np.int64) * classes + true_cls)
    low, high = np.quantile(score, [0.05, 0.95])
    said = np.where(there == lucky[item], high, low) + 0.01 * (high - low) * rng.random(len(score))
    return {"scored": (item, cls, said)}


_GUESSES: dict[str, Guess] = {
    "first": _label,
    "unknown_score": _strangeness,
    "rank_of_truth": _rank,
    "intersection": _overlap,
    "cluster": _cluster,
    "scores": _all_scores,
    "scored": _pairs,
}


def mixed(mine: Fields, other: Fields, units: NDArray[Any]) -> Fields:
    """The answers of one run, and on some units those of the other."""
    taken = np.isin(mine["unit"], units)
    fields = dict(mine)
    for name in OF_ITEMS:
        if name in mine:
            rows = taken.reshape(-1, *[1] * (mine[name].ndim - 1))
            fields[name] = np.where(rows, other[name], mine[name])
    if "scored" in mine:
        kept, new = ~taken[mine["scored"][0]], taken[other["scored"][0]]
        columns = zip(mine["scored"], other["scored"], strict=True)
        fields["scored"] = tuple(np.concatenate([own[kept], strange[new]]) for own, strange in columns)
    return fields
