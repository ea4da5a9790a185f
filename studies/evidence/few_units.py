"""Do the 95 % intervals cover with 8, 12, 20, 60 and 200 units of the kind on which a metric rests?

Every deciding metric, on runs that are weak, medium and nearly perfect, and where it matters on a long tail: test sets
are drawn again and again with a fixed number of such units (venomous snakes, rare species, unknown observations, sites
with a presence). Intervals come from the function that makes scorecards, by the convention in force and, on the same
test sets, by the one before. The estimand is the expected score at that test size, the mean over all draws. Cells that
were studied before are kept, so that the study can be stopped and run on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Intervals, Metric
from fieldmark.metrics.geo import adaptive_sets
from fieldmark.scoring.measurement import interval_of
from fieldmark.stats.intervals import Interval, pseudo_values
from studies.evidence.results import read_result, write_result

NAME = "few_units"
# Test sets of each size: with 200 a coverage of 95 % has a standard error of 1.5 points, with 1,000 of 0.7.
DRAWS = {8: 200, 12: 200, 20: 200, 60: 200, 200: 200}
SKILLS = {"weak": 0.3, "medium": 0.7, "nearly perfect": 0.97}
# Draws are made with these numbers and that of the cell; nobody chose among several.
SEED = 20_370
CONVENTIONS: dict[str, Intervals] = {"before": "scarcer group", "now": "supporting units"}

Fields = dict[str, Any]
Draw = Callable[[np.random.Generator, int, float], Fields]


def _photos(rng: np.random.Generator, units: int) -> np.ndarray:
    """The unit of each photo: one to three of each."""
    return np.repeat(np.arange(units), rng.integers(1, 4, units)).astype(np.int32)


def _lucky(rng: np.random.Generator, unit: np.ndarray, skill: np.ndarray) -> np.ndarray:
    """Whether each photo is answered right; photos of a unit share most of their luck."""
    shared = rng.random(len(unit)) < 0.6
    return np.asarray(np.where(shared, rng.random(int(unit.max()) + 1)[unit], rng.random(len(unit))) < skill)


def _skills(skill: float, classes: int, seed: int) -> np.ndarray:
    """How well each class is known: the same in all draws."""
    return np.random.default_rng(seed).beta(6 * skill, 6 * (1 - skill), classes)


def _of_kind(rng: np.random.Generator, units: int, others: int) -> np.ndarray:
    """Which observations are of a kind: drawn, as nature does, `units` on average and at least two of each."""
    kind = rng.random(units * (1 + others)) < 1 / (1 + others)
    kind[:4] = [True, True, False, False]
    return kind


def labels(
    rng: np.random.Generator, units: int, skill: float, *, classes: int = 6, zipf: float = 0.3, per_class: int = 0
) -> Fields:
    """Photos of observations with one label each; `per_class` units for each class of a long tail."""
    classes = max(classes, units // per_class if per_class else 0)
    abundance = np.arange(1, classes + 1.0) ** -zipf
    unit = _photos(rng, units)
    truth = rng.choice(classes, units, p=abundance / abundance.sum())[unit].astype(np.int32)
    right = _lucky(rng, unit, _skills(skill, classes, 1)[truth])
    wrong = (truth + rng.choice([1, 1, 2, 3], len(unit))) % classes
    first = np.where(right, truth, wrong).astype(np.int32)
    second = np.where(rng.random(len(unit)) < 0.5, truth, (first + 1) % classes)
    country = (rng.random(units) ** 2 * 4).astype(int)[unit]
    return {
        "true_codes": truth,
        "first": first,
        "ranked": np.stack([first, *[second] * 4], axis=1).astype(np.int32),
        "n_classes": classes,
        "groups": {"country": country},
        "unit": unit,
    }


def ranks(rng: np.random.Generator, units: int, skill: float, *, common: int = 0) -> Fields:
    """Observations with the rank of their label; `units` of rare species and `common` times as many of others."""
    rare = _of_kind(rng, units, common) if common else np.ones(units, dtype=bool)
    truth = np.where(rare, rng.integers(0, 8, len(rare)), 8 + rng.integers(0, 20, len(rare))).astype(np.int32)
    early = _skills(skill, 28, 2)[truth]
    rank = np.where(rng.random(len(rare)) < 0.5 * (1 - early), 0, rng.geometric(np.clip(early, 0.02, 1)))
    ranked = np.where(np.arange(1, 31) == rank[:, None], truth[:, None], -1).astype(np.int32)
    fields = {"rank_of_truth": rank, "ranked": ranked, "true_codes": truth, "is_rare": rare}
    return {**fields, "unit": np.arange(len(rare))}


def taxa(rng: np.random.Generator, units: int, skill: float) -> Fields:
    """Images with several animals, named right, or by a taxon that is one to six ranks off, or not at all."""
    unit = _photos(rng, units)
    right = _lucky(rng, unit, np.full(len(unit), skill))
    shared = np.where(right, 7, rng.integers(1, 7, len(unit)))
    # Label 0 is true; label k shares k ranks with it.
    paths = np.where(np.arange(7) < np.array([7, *range(1, 7)])[:, None], 0, np.arange(7)[:, None] + 1)
    table = {
        rank: [f"{place}{code}" for code in column]
        for (place, rank), column in zip(enumerate(TREE), paths.T, strict=True)
    }
    first = np.where(shared == 7, 0, shared).astype(np.int32)
    names = [str(number) for number in range(7)]
    return {
        "true_codes": np.zeros(len(unit), dtype=np.int32),
        "first": first,
        "labels": SimpleNamespace(names=names),
        "classes": pl.DataFrame({"label": names, **table}),
        "n_classes": 7,
        "unit": unit,
    }


TREE = ("kingdom", "phylum", "class", "order", "family", "genus", "species")


def dangers(rng: np.random.Generator, units: int, skill: float, *, others: int = 4) -> Fields:
    """About `units` poisonous (venomous) observations and `others` times as many harmless ones."""
    kind = _of_kind(rng, units, others)
    unit = _photos(rng, len(kind))
    label = np.where(kind, rng.integers(0, 4, len(kind)), 4 + rng.integers(0, 12, len(kind)))
    truth = label[unit].astype(np.int32)
    right = _lucky(rng, unit, _skills(skill, 16, 3)[truth])
    wrong = (truth + rng.integers(1, 16, len(unit))) % 16
    first = np.where(right, truth, wrong).astype(np.int32)
    is_dangerous = np.arange(16) < 4
    flags = {"dangerous": is_dangerous, "truly_dangerous": is_dangerous[truth]}
    return {"true_codes": truth, "first": first, "n_classes": 16, **flags, "unit": unit}


def strangers(rng: np.random.Generator, units: int, skill: float) -> Fields:
    """About `units` unknown observations and four times as many known ones."""
    unknown = _of_kind(rng, units, 4)
    unit = _photos(rng, len(unknown))
    apart = {0.3: 0.4, 0.7: 1.5, 0.97: 4.0}[skill]
    strange = apart * unknown[unit] + 0.8 * rng.normal(size=len(unknown))[unit] + 0.6 * rng.normal(size=len(unit))
    truth = np.where(unknown, -1, rng.integers(0, 10, len(unknown)))[unit].astype(np.int32)
    right = rng.random(len(unit)) < skill
    known = np.where(right & (truth >= 0), truth, (truth + 1 + rng.integers(0, 9, len(unit))) % 10)
    first = np.where(strange > apart / 2 + 0.3, -1, known).astype(np.int32)
    fields = {"true_codes": truth, "first": first, "unknown_score": strange, "is_known": truth >= 0}
    return {**fields, "n_classes": 10, "unit": unit}


def individuals(rng: np.random.Generator, units: int, skill: float, *, known: int = 2) -> Fields:
    """`units` new individuals and `known` times as many known ones in two datasets, with one to eight photos each."""
    new = np.arange(units * (1 + known)) < units
    unit = np.repeat(np.arange(len(new)), np.minimum(rng.geometric(0.35, len(new)), 8)).astype(np.int32)
    right = rng.random(len(unit)) < rng.beta(4 * skill, 4 * (1 - skill), len(new))[unit]
    truth = np.where(new[unit], -1, unit).astype(np.int32)
    mixed = rng.random(len(new)) < (1 - skill) / 2
    cluster = np.where(right, np.where(mixed, np.arange(len(new)) // 2, np.arange(len(new)))[unit], 1000 + unit)
    return {
        "true_codes": truth,
        "first": np.where(right, truth, np.where(new[unit], 0, -1)).astype(np.int32),
        "is_known": truth >= 0,
        "identity": unit,
        "cluster": cluster.astype(np.int32),
        "groups": {"dataset": unit % 2},
        "unit": unit,
    }


def lists(
    rng: np.random.Generator, units: int, skill: float, *, per_unit: tuple[int, int] = (3, 9), species: int = 40
) -> Fields:
    """Plots in transects that share a flora; transects differ in how easy they are."""
    unit = np.repeat(np.arange(units), rng.integers(*per_unit, units))
    abundance = np.arange(1, species + 1.0) ** -0.8
    flora = rng.random((units, species)) < np.minimum(10 * abundance / abundance.sum(), 0.9)
    true = flora[unit] & (rng.random((len(unit), species)) < 0.5)
    true[np.arange(len(unit)), rng.integers(0, 5, len(unit))] = True
    easy = rng.beta(4 * skill, 4 * (1 - skill), units)[unit][:, None]
    said = (true & (rng.random(true.shape) < easy)) | (rng.random(true.shape) < 0.12 * (1 - easy) * (abundance > 0.1))
    item, label = (column.astype(np.int32) for column in np.nonzero(said))
    truth = tuple(column.astype(np.int32) for column in np.nonzero(true))
    return {
        "scored": (item, label, np.ones(len(item))),
        "true": truth,
        "asked": None,
        "n_classes": species,
        "unit": unit,
    }


def sounds(rng: np.random.Generator, units: int, skill: float, *, classes: int = 12, yes: bool = False) -> Fields:
    """Recordings of six segments, each with three voices; loud recordings are easier."""
    unit = np.repeat(np.arange(units), 6)
    abundance = np.arange(1, classes + 1.0) ** -0.7
    voices = np.argsort(rng.exponential(size=(units, classes)) / abundance, axis=1)[:, :3]
    sings = np.zeros((units, classes), dtype=bool)
    np.put_along_axis(sings, voices, True, axis=1)
    holds = sings[unit] & (rng.random((len(unit), classes)) < 0.4)
    apart = {0.3: 0.7, 0.7: 2.0, 0.97: 5.0}[skill]
    loud = 0.3 * apart * rng.normal(size=units)[unit][:, None]
    level = (apart + loud) * holds + 0.4 * rng.normal(size=(units, classes))[unit] + rng.normal(size=holds.shape)
    segment, cls = (column.astype(np.int32) for column in np.nonzero(np.ones_like(holds)))
    score = 1 / (1 + np.exp(-(level.ravel() - apart)))
    if yes:
        kept = level.ravel() > apart / 2
        segment, cls, score = segment[kept], cls[kept], score[kept]
    truth = tuple(column.astype(np.int32) for column in np.nonzero(holds))
    return {"scored": (segment, cls, score), "true": truth, "asked": None, "n_classes": classes, "unit": unit}


def survey(rng: np.random.Generator, units: int, skill: float, *, species: int = 1) -> Fields:
    """For each species `units` sites with it and three times as many without; sites are shared by the species."""
    sites = 4 * units
    present = np.stack([rng.permutation(sites) < units for _ in range(species)], axis=1)
    apart = {0.3: 0.4, 0.7: 1.5, 0.97: 4.0}[skill]
    score = apart * present + 0.5 * rng.normal(size=(sites, 1)) + rng.normal(size=present.shape)
    item, cls = (column.astype(np.int32) for column in np.divmod(np.arange(present.size), species))
    true = tuple(column.astype(np.int32) for column in np.nonzero(present))
    return {
        "scored": (item, cls, score.ravel()),
        "true": true,
        "asked": None,
        "n_classes": species,
        "unit": np.arange(sites),
    }


def places(rng: np.random.Generator, units: int, skill: float) -> Fields:
    """Occurrences in quadrats among 120 species, with the scores of all."""
    unit = _photos(rng, units)
    score = 0.5 * rng.normal(size=(units, 120))[unit] + rng.normal(size=(len(unit), 120))
    truth = rng.integers(0, 120, len(unit)).astype(np.int32)
    score[np.arange(len(unit)), truth] += {0.3: 0.1, 0.7: 1.1, 0.97: 3.0}[skill]
    return {"sets_of_30": adaptive_sets([score.astype(np.float32)], truth, k=30), "unit": unit}


def masks(rng: np.random.Generator, units: int, skill: float, *, ring: bool = False) -> Fields:
    """Photos of fruiting bodies by intersection and union; of all four times as many, a ring shows in `units`."""
    n_units = 4 * units if ring else units
    unit = _photos(rng, n_units)
    sizes = rng.gamma(3.0, [4000.0, 500.0, 250.0, 30.0], (len(unit), 4))
    sizes[:, 3] *= (np.arange(n_units) < units)[unit]
    quality = rng.beta(12 * skill, 12 * (1 - skill), n_units)[unit][:, None] + rng.normal(0, 0.02, (len(unit), 4))
    union = np.ceil(sizes).astype(np.int64)
    intersection = np.floor(union * np.clip(quality, 0, 1)).astype(np.int64)
    return {
        "intersection": intersection[:, 1:].sum(axis=1),
        "union": union[:, 1:].sum(axis=1),
        "part_table": (intersection, union),
        "parts": ("background", "cap", "stem", "ring"),
        "unit": unit,
    }


# By metric: a benchmark that has it, what its units are, and the populations.
CASES: dict[str, tuple[str, str, dict[str, Draw]]] = {
    "top_1": ("semi-inat-2021", "observations", {"": labels}),
    "top_5_error": ("fgvcx-fungi-2018", "observations", {"": labels}),
    "recall_at_5": ("fungiclef-2025", "observations", {"": ranks}),
    "top_30_error": ("geolifeclef-2021", "quadrats", {"": ranks}),
    "adaptive_top_30": ("geolifeclef-2020", "quadrats", {"": places}),
    "macro_f1_all": ("folder", "observations", {"": labels, "long tail": partial(labels, per_class=4, zipf=1.0)}),
    "macro_f1_union": (
        "snakeclef-2020",
        "observations",
        {"": labels, "long tail": partial(labels, per_class=4, zipf=1.0)},
    ),
    "country_macro_f1": ("snakeclef-2021", "photos", {"": labels}),
    "mrr": ("plantclef-2020", "observations", {"": ranks}),
    "mrr_rare": ("plantclef-2020", "observations of rare species", {"": partial(ranks, common=9)}),
    "species_mrr": ("plantclef-2022", "observations", {"": ranks}),
    "tree_distance": ("fathomnet-2025", "images", {"": taxa}),
    "cost_poison": ("fungitastic/cost-poison", "poisonous observations", {"": dangers}),
    "track_3": ("fungiclef-2024", "poisonous observations", {"": dangers}),
    "cost_unknown": ("fungitastic/cost-unknown", "unknown observations", {"": strangers}),
    "venom_score": ("snakeclef-2023", "venomous snakes", {"": dangers}),
    "venom_cost": ("snakeclef-2023", "venomous snakes", {"": dangers}),
    "roc_auc": ("fungitastic/open", "unknown observations", {"": strangers}),
    "known_and_new": ("animalclef-2025", "new individuals", {"": individuals}),
    "adjusted_rand": ("animalclef-2026", "individuals", {"": partial(individuals, known=0)}),
    "sample_f1": ("plantclef-2024", "transects", {"": lists}),
    "unit_f1": ("plantclef-2025", "transects", {"": lists}),
    "cmap_expected": ("birdclef-2020", "recordings", {"": sounds}),
    "padded_cmap": ("birdclef-2023", "recordings", {"": sounds}),
    "balanced_decisions": ("birdclef-2022", "recordings", {"": partial(sounds, yes=True)}),
    "species_roc_auc": (
        "birdclef-2024",
        "sites of a species",
        {"": survey, "five species": partial(survey, species=5), "recordings": sounds},
    ),
    "species_prg_auc": ("occurrences/presence", "sites of a species", {"": survey}),
    "iou": ("folder/segmentation", "observations", {"": masks}),
    "miou": ("fungitastic-mini/segmentation", "observations with a ring", {"": partial(masks, ring=True)}),
}


def run() -> dict[str, Any]:
    """Coverage and width in every cell; those that were studied before are kept."""
    rows = (read_result(NAME) or {"rows": []})["rows"]
    done = {(row["metric"], row["population"], row["units"]) for row in rows}
    for number, (metric, population, units, draw) in enumerate(cells()):
        if (metric, population, units) in done:
            continue
        rows.append(cell(metric, population, units, draw, number, draws=DRAWS[units]))
        print(rows[-1], flush=True, file=sys.stderr)
        write_result(NAME, _result(rows))
    return _result(rows)


def cells() -> list[tuple[str, str, int, Draw]]:
    """Metric, population, number of units, and what draws a test set."""
    return [
        (metric, f"{skill}, {name}" if name else skill, units, draw)
        for metric, (_, _, populations) in CASES.items()
        for name, draw in populations.items()
        for skill in SKILLS
        for units in DRAWS
    ]


def _result(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"simulated": True, "nominal": 0.95, "cells": len(cells()), "rows": rows}


def cell(metric: str, population: str, units: int, draw: Draw, number: int, *, draws: int) -> dict[str, Any]:
    """How often the intervals of one metric hold the expected score, and how wide they are."""
    benchmark, kind, _ = CASES[metric]
    declared = next(one for one in BENCHMARKS[benchmark].task.metrics if one.name == metric)
    rng = np.random.default_rng([SEED, number])
    skill = SKILLS[population.split(",")[0]]
    values = np.empty(draws)
    found: dict[str, list[Interval]] = {name: [] for name in CONVENTIONS}
    for one in range(draws):
        values[one], intervals = _estimate(declared, draw(rng, units, skill))
        for name, interval in intervals.items():
            found[name].append(interval)
    values = values[~np.isnan(values)]
    target, spread = float(values.mean()), float(values.std(ddof=1))
    quantiles = float(np.diff(np.quantile(values, [0.025, 0.975]))[0])
    row = {"metric": metric, "rests_on": kind, "population": population, "units": units, "draws": draws}
    row |= {"expected_score": round(target, 4), "oracle_width": round(quantiles, 4)}
    return row | {name: _summary(intervals, target, spread) for name, intervals in found.items()}


class _Truth:
    """What metrics ask of a truth, made when it is asked for."""

    def __init__(self, unit: np.ndarray, groups: dict[str, np.ndarray]) -> None:
        self.unit, self.group_columns = unit, groups

    @cached_property
    def units(self) -> list[str]:
        return [f"{one:06d}" for one in self.unit.tolist()]

    @property
    def items(self) -> np.ndarray:
        return self.unit

    @cached_property
    def groups(self) -> pl.DataFrame:
        return pl.DataFrame({name: column.astype(str) for name, column in self.group_columns.items()})


def _estimate(metric: Metric, fields: Fields) -> tuple[float, dict[str, Interval]]:
    unit = np.asarray(fields["unit"], dtype=np.int32)
    fields["truth"] = _Truth(unit, fields.pop("groups", {}))
    arguments = metric.arguments(SimpleNamespace(**fields))
    value = metric.value(**arguments)
    assert metric.without_each_unit is not None
    pseudo = pseudo_values(value, metric.without_each_unit(**arguments, unit=unit))
    return value, {
        name: interval_of(metric, value, pseudo, arguments, unit, convention)
        for name, convention in CONVENTIONS.items()
    }


def _summary(intervals: list[Interval], target: float, spread: float) -> dict[str, float | None]:
    """Coverage among those that were given, their width against the true spread, and how many were not or cautioned."""
    given = [one for one in intervals if one.low is not None and one.high is not None]
    lows, highs = (np.array([getattr(one, end) for one in given]) for end in ("low", "high"))
    slack = 1e-9 * max(abs(target), 1.0)
    held = float(((lows - slack <= target) & (target <= highs + slack)).mean()) if given else None
    width = float((highs - lows).mean()) / (2 * 1.96 * spread) if given and spread > 0 else None
    return {
        "coverage": None if held is None else round(held, 4),
        "relative_width": None if width is None else round(width, 3),
        "without_interval": round(1 - len(given) / len(intervals), 4),
        "cautioned": round(sum(one.reason is not None for one in given) / max(len(given), 1), 4),
    }
