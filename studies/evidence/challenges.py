"""Do the 95 % intervals of the other challenges cover? Test sets are drawn again and again and scored by the scorer.

Each population below makes what the metrics of a benchmark read of an evaluation; values and intervals come from the
same function that makes scorecards. The estimand is the expected score at that test size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.metrics.geo import adaptive_sets
from fieldmark.scoring import measure
from fieldmark.work.progress import progress

DRAWS = 1000
Draw = Callable[[np.random.Generator], dict[str, Any]]


def open_set(
    rng: np.random.Generator, *, observations: int = 500, classes: int = 60, unknown: float = 0.15
) -> dict[str, Any]:
    """Known and unknown observations with one to three photos each; strangeness is shared within an observation."""
    abundance = np.arange(1, classes + 1.0) ** -1.0
    label = np.where(
        rng.random(observations) < unknown, -1, rng.choice(classes, observations, p=abundance / abundance.sum())
    )
    unit = np.repeat(np.arange(observations), rng.integers(1, 4, observations))
    truth = label[unit].astype(np.int32)
    strange = 1.3 * (truth < 0) + rng.normal(size=observations)[unit] + 0.7 * rng.normal(size=len(unit))
    right = rng.random(len(unit)) < 0.7
    answer = np.where(right, truth, rng.integers(0, classes, len(unit))).astype(np.int32)
    answer = np.where(strange > 1.5, -1, np.where(answer < 0, rng.integers(0, classes, len(unit)), answer)).astype(
        np.int32
    )
    return {
        "true_codes": truth,
        "first": answer,
        "ranked": answer[:, None],
        "n_classes": classes,
        "unknown_score": strange,
        "is_known": truth >= 0,
        "dangerous": np.arange(classes) % 9 == 4,
        "unit": unit,
    }


def ranked(rng: np.random.Generator, *, items: int = 400, classes: int = 200) -> dict[str, Any]:
    """Observations whose true label stands at a rank drawn from a heavy tail, or is not listed."""
    difficulty = np.random.default_rng(5).beta(1, 2, classes)
    truth = rng.integers(0, classes, items)
    rank = np.where(rng.random(items) < 0.3, 0, 1 + rng.geometric(0.05 + 0.6 * difficulty[truth]) - 1)
    return {"rank_of_truth": rank, "is_rare": truth < 20, "unit": np.arange(items)}


def soundscapes(rng: np.random.Generator, *, recordings: int = 60, classes: int = 80) -> dict[str, Any]:
    """Recordings of sixty segments with their own birds; scores are better for loud recordings."""
    segments = 60
    abundance = np.arange(1, classes + 1.0) ** -0.8
    true_segment, true_cls, segment, cls, score = [], [], [], [], []
    for recording in range(recordings):
        birds = rng.choice(classes, 6, replace=False, p=abundance / abundance.sum())
        loud = rng.normal(0, 0.7)
        for start in range(segments):
            sings = rng.random(6) < 0.25
            number = recording * segments + start
            true_segment += [number] * int(sings.sum())
            true_cls += birds[sings].tolist()
            named = np.append(birds, rng.integers(0, classes, 3))
            named, first = np.unique(named, return_index=True)
            heard = np.append(sings, [False] * 3)[first]
            segment += [number] * len(named)
            cls += named.tolist()
            score += (1.2 * heard + 0.4 * loud * heard + rng.normal(size=len(named))).tolist()
    true = tuple(np.array(column, dtype=np.int32) for column in (true_segment, true_cls))
    listed = tuple(np.array(column, dtype=np.int32) for column in (segment, cls))
    return {"true": true, "scored": (*listed, np.array(score)), "unit": np.repeat(np.arange(recordings), segments)}


def places(rng: np.random.Generator, *, quadrats: int = 150, species: int = 300) -> dict[str, Any]:
    """Occurrences in quadrats; scores of species are shared within a quadrat."""
    unit = np.repeat(np.arange(quadrats), rng.integers(1, 6, quadrats))
    niche = np.random.default_rng(6).normal(size=(species, 3))
    climate = rng.normal(size=(quadrats, 3))
    affinity = climate @ niche.T
    weight = np.exp(affinity - affinity.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    truth = np.array([rng.choice(species, p=weight[u]) for u in unit], dtype=np.int32)
    scores = (0.7 * affinity[unit] + rng.normal(size=(len(unit), species))).astype(np.float32)
    better = (scores > scores[np.arange(len(truth)), truth][:, None]).sum(axis=1)
    return {
        "sets_of_30": adaptive_sets([scores], truth, k=30),
        "strict_sets_of_30": adaptive_sets([scores], truth, k=30, strict=True),
        "rank_of_truth": better + 1,
        "unit": unit,
    }


def snakes(rng: np.random.Generator, *, items: int = 400, classes: int = 40) -> dict[str, Any]:
    """Photos with stated probabilities, sometimes sure and wrong."""
    abundance = np.arange(1, classes + 1.0) ** -0.8
    truth = rng.choice(classes, items, p=abundance / abundance.sum()).astype(np.int32)
    logits = rng.normal(size=(items, classes)) * 1.2
    logits[np.arange(items), truth] += rng.gamma(2.0, 1.5, items)
    probability = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    order = np.argsort(-probability, axis=1).astype(np.int32)
    return {
        "true_codes": truth,
        "first": order[:, 0],
        "ranked": order[:, :3],
        "n_classes": classes,
        "probabilities": probability,
        "dangerous": np.arange(classes) % 3 == 0,
        "unit": np.arange(items),
    }


def masks(rng: np.random.Generator, *, observations: int = 120) -> dict[str, Any]:
    """Counts of pixels of photos; the ring is there in one of ten."""
    unit = np.repeat(np.arange(observations), rng.integers(1, 4, observations))
    sizes = rng.gamma(3.0, [4000.0, 500.0, 250.0, 30.0], (len(unit), 4))
    sizes[:, 3] *= (rng.random(observations) < 0.1)[unit]
    quality = np.clip(
        rng.normal(0.8, 0.12, observations)[unit][:, None] + rng.normal(0, 0.08, (len(unit), 4)), 0.02, 0.99
    )
    union = np.ceil(sizes).astype(np.int64)
    intersection = np.floor(union * quality).astype(np.int64)
    body = (intersection[:, 1:].sum(axis=1), union[:, 1:].sum(axis=1))
    return {
        "intersection": body[0],
        "union": body[1],
        "part_table": (intersection, union),
        "parts": ("background", "cap", "stem", "ring"),
        "unit": unit,
    }


def survey(rng: np.random.Generator, *, sites: int = 150, species: int = 20) -> dict[str, Any]:
    """Sites where every species was looked for; some are rare, and what a site is like is shared by all of them."""
    common = np.linspace(-3.0, 0.0, species)
    niche = np.random.default_rng(7).normal(size=(species, 2))
    level = common + rng.normal(size=(sites, 2)) @ niche.T
    present = rng.random((sites, species)) < 1 / (1 + np.exp(-level))
    score = level + 1.5 * rng.normal(size=(sites, species)) + rng.normal(size=(sites, 1))
    item, cls = (column.astype(np.int32) for column in np.divmod(np.arange(present.size), species))
    true = tuple(column.astype(np.int32) for column in np.nonzero(present))
    scored = (item, cls, score.ravel())
    return {"scored": scored, "true": true, "asked": None, "n_classes": species, "unit": np.arange(sites)}


POPULATIONS: dict[str, tuple[str, Draw]] = {
    "open set, 500 observations, 60 classes": ("fungitastic/open", open_set),
    "poison costs, same": ("fungitastic/cost-poison", open_set),
    "unknown costs, same": ("fungitastic/cost-unknown", open_set),
    "tracks of FungiCLEF, same": ("fungiclef-2023", open_set),
    "ranked labels, 400 observations": ("plantclef-2020", ranked),
    "60 recordings, 80 birds": ("birdclef-2020", soundscapes),
    "150 quadrats, 300 species": ("geolifeclef-2020", places),
    "400 snakes, 40 species": ("snakeclef-2020", snakes),
    "masks of 120 observations, a ring in one of ten": ("fungitastic-mini/segmentation", masks),
    "open set, 150 observations, about 7 unknown": (
        "fungitastic/open",
        partial(open_set, observations=150, unknown=7 / 150),
    ),
    "open set, 150 observations, about 7 known": (
        "fungitastic/open",
        partial(open_set, observations=150, unknown=143 / 150),
    ),
    "open set, 150 observations, about 35 known": (
        "fungitastic/open",
        partial(open_set, observations=150, unknown=115 / 150),
    ),
    "open set, 1,500 observations, about 300 unknown": (
        "fungitastic/open",
        partial(open_set, observations=1500, unknown=0.2),
    ),
    "a survey of 150 sites, 20 species": ("occurrences/presence", survey),
    "a survey of 40 sites, 20 species": ("occurrences/presence", partial(survey, sites=40)),
}


def run() -> dict[str, Any]:
    """Coverage and relative width of every metric of every challenge."""
    rows = []
    for number, (name, (benchmark, draw)) in enumerate(POPULATIONS.items()):
        with progress(name, DRAWS) as tick:
            rows += study(name, benchmark, draw, number, tick)
    return {"simulated": True, "nominal": 0.95, "draws": DRAWS, "intervals": "supporting units", "rows": rows}


def study(
    name: str, benchmark: str, draw: Draw, seed: int, tick: Callable[[int], None], *, draws: int = DRAWS
) -> list[dict[str, Any]]:
    """How often the intervals of a benchmark hold the expected score, over test sets drawn again and again."""
    metrics, rng = BENCHMARKS[benchmark].task.metrics, np.random.default_rng(seed)
    found: dict[str, list[Any]] = {}
    for _ in range(draws):
        fields = draw(rng)
        units = [f"{unit:06d}" for unit in fields["unit"]]
        truth = SimpleNamespace(units=units, items=units, groups=fields.pop("groups", pl.DataFrame()))
        answers: Any = SimpleNamespace(**fields, truth=truth)
        for metric, score in measure(metrics, answers)[1].items():
            found.setdefault(metric, []).append(score)
        tick(1)
    rows = []
    for metric, scores in found.items():
        values = np.array([score.value for score in scores])
        target, spread = float(values.mean()), float(values.std(ddof=1))
        given = [score for score in scores if score.low is not None]
        if not given:
            continue  # it describes the run and has no interval
        covered = np.mean([score.low <= target <= score.high for score in given])
        width = np.mean([score.high - score.low for score in given]) / (2 * 1.96 * spread)
        row = {"population": name, "metric": metric, "expected_score": round(target, 4)}
        row |= {"coverage": round(float(covered), 3), "relative_width": round(float(width), 2)}
        rows.append(row | {"without_interval": round(1 - len(given) / draws, 3)})
        print(row, flush=True)
    return rows
