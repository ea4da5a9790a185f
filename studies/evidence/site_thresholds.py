"""Simulated: do thresholds keep their promise, and does the estimate after `--listen` cover?

A site has 24 species. Each is detected in some of 200 recordings, once or several times in each, with scores from 0 to
1; the chance that a detection is right rises with its score by a curve of its own, and detections of one recording are
right or wrong together to some degree. 500 times the site is recorded anew and annotated, thresholds that promise a
precision of 0.9 with a risk of 0.05 are computed, and the true precision at them is known.

The oracle knows the true curve of a species: it tries one threshold only, the one at which the same test on as many
clips succeeds most often, and only where the true precision is high enough.

The worst case for any such rule is a detector whose precision is a hair below the promise at every score: each
threshold that it gets is wrong. 500 surveys of each of 18 such detectors.

After that, 500 draws of 60 and of 150 clips from the 20,000 windows of one survey: are prevalence, precision and recall
estimated without bias, and do their 95 % intervals cover?
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from fieldmark.identification.review.listening import UNDETECTED
from fieldmark.metrics.sound_events import Matches
from fieldmark.scoring.sound_thresholds import promises
from fieldmark.stats.promises import fewest_units, promise_p_value, promised_threshold
from fieldmark.stats.stratified import allocate, share_estimate

DRAWS, RECORDINGS, SPECIES, PROMISE, RISK = 500, 200, 24, 0.9, 0.05
GRID = np.linspace(0, 1, 2001)
LOOKS = (29, 36, 46, 58, 74, 93, 118, 149, 190)
CLIPS, LISTENINGS, WINDOWS = (60, 150), 500, 20_000


class Species(NamedTuple):
    """One species of the site: in which share of recordings it is detected, how often there, and its curve."""

    share: float
    often: float
    low: float
    rise: float
    alike: float
    scores: tuple[float, float]


def run() -> dict[str, Any]:
    """Both questions."""
    rng = np.random.default_rng(20_260)
    site = [_species(rng) for _ in range(SPECIES)]
    kept = _thresholds(site, rng)
    print(kept, flush=True)
    return {
        "simulated": True,
        "about": __doc__,
        "thresholds": kept,
        "worst_case": _worst_case(rng),
        "listening": _listening(rng),
    }


def _species(rng: np.random.Generator) -> Species:
    return Species(
        share=float(rng.choice([0.06, 0.1, 0.3, 0.6, 0.9])),
        often=float(rng.choice([0, 1, 4])),
        low=float(rng.uniform(-2.5, 3.0)),
        rise=float(rng.uniform(1.0, 5.0)),
        alike=float(rng.choice([0.0, 0.2, 0.5])),
        scores=(float(rng.uniform(0.8, 2)), float(rng.uniform(0.6, 2))),
    )


def _surveyed(one: Species, rng: np.random.Generator) -> Matches:
    """The detections of one species in a new survey, annotated."""
    there = np.flatnonzero(rng.random(RECORDINGS) < one.share)
    unit = np.repeat(there, 1 + rng.poisson(one.often, len(there)))
    score = rng.beta(*one.scores, len(unit))
    shared, own = rng.normal(size=RECORDINGS)[unit], rng.normal(size=len(unit))
    latent = np.sqrt(one.alike) * shared + np.sqrt(1 - one.alike) * own
    right = ndtr(latent) < expit(one.low + one.rise * score)
    return Matches(score, right, unit, score[right], unit[right])


def _above(one: Species) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How many detections, and how many right ones, a survey is expected to have above each score of `GRID`."""
    middle = (GRID[1:] + GRID[:-1]) / 2
    density = middle ** (one.scores[0] - 1) * (1 - middle) ** (one.scores[1] - 1)
    density *= one.share * (1 + one.often) / density.sum()
    right = density * expit(one.low + one.rise * middle)
    return tuple(np.append(part[::-1].cumsum()[::-1], 0.0) for part in (density, right))  # type: ignore[return-value]


def _true_precision(species: list[Species], threshold: float) -> float:
    """The precision at a threshold over all surveys."""
    sums = [[np.interp(threshold, GRID, part) for part in _above(one)] for one in species]
    answers, right = np.sum(sums, axis=0)
    return float(right / answers)


def _thresholds(site: list[Species], rng: np.random.Generator) -> dict[str, Any]:
    given = {"own": 0, "pooled": 0}
    wrong = {"own": 0, "pooled": 0}
    asked = {"own": 0, "pooled": 0}
    passing = {"own": np.zeros((SPECIES, len(LOOKS))), "pooled": np.zeros((1, len(LOOKS)))}
    wrong_by_species = np.zeros(SPECIES)
    for _ in range(DRAWS):
        surveys = {str(number): _surveyed(one, rng) for number, one in enumerate(site)}
        made = promises(surveys, common={}, share=PROMISE, risk=RISK)
        pool = [int(one.name) for one in made if one.pooled]
        for number, promise in enumerate(made):
            if promise.pooled:
                continue
            asked["own"] += 1
            if promise.at_least is not None:
                given["own"] += 1
                bad = _true_precision([site[number]], promise.at_least) < PROMISE
                wrong["own"] += bad
                wrong_by_species[number] += bad
            passing["own"][number] += _oracle(surveys[str(number)], [site[number]])
        if pool:
            asked["pooled"] += 1
            first = made[pool[0]].at_least
            members = [site[number] for number in pool]
            if first is not None:
                given["pooled"] += 1
                wrong["pooled"] += _true_precision(members, first) < PROMISE
            columns = zip(*(surveys[str(number)] for number in pool), strict=True)
            passing["pooled"][0] += _oracle(Matches(*map(np.concatenate, columns)), members)
    found = {}
    for kind in ("own", "pooled"):
        oracle = float(passing[kind].max(axis=1).sum() / max(asked[kind], 1))
        found[kind] = {
            "asked": asked[kind],
            "given": round(given[kind] / max(asked[kind], 1), 4),
            "oracle": round(oracle, 4),
            "holds": round(1 - wrong[kind] / max(asked[kind], 1), 4),
            "holds_where_given": round(1 - wrong[kind] / max(given[kind], 1), 4),
        }
    found["own"]["least_holds_of_a_species"] = round(1 - float(wrong_by_species.max()) / DRAWS, 4)
    return found


def _worst_case(rng: np.random.Generator) -> list[dict[str, Any]]:
    """How often a detector gets a threshold whose precision is just below the promise at every score."""
    rows = []
    for recordings, often, alike in product((40, 100, 200), (0, 4), (0.0, 0.3, 0.6)):
        wrong = 0
        for _ in range(DRAWS):
            unit = np.repeat(np.arange(recordings), 1 + rng.poisson(often, recordings))
            shared, own = rng.normal(size=recordings)[unit], rng.normal(size=len(unit))
            right = ndtr(np.sqrt(alike) * shared + np.sqrt(1 - alike) * own) < PROMISE - 1e-4
            wrong += (
                promised_threshold(rng.random(len(unit)), right, unit, share=PROMISE, risk=RISK).threshold is not None
            )
        holds = round(1 - wrong / DRAWS, 4)
        rows.append({"recordings": recordings, "detections_in_each": 1 + often, "alike": alike, "holds": holds})
    print(rows, flush=True)
    return rows


def _oracle(survey: Matches, members: list[Species]) -> NDArray[np.float64]:
    """At which looks a single test would show the promise, where the true precision keeps it."""
    units = np.unique(survey.unit)
    found = np.zeros(len(LOOKS))
    if len(units) < fewest_units(PROMISE, RISK):
        return found
    highest = np.full(RECORDINGS, -np.inf)
    np.maximum.at(highest, survey.unit, survey.score)
    ordered = -np.sort(-highest[np.isfinite(highest)])
    for place, size in enumerate(LOOKS):
        threshold = ordered[min(size, len(units)) - 1] if size < len(units) else survey.score.min()
        if _true_precision(members, float(threshold)) < PROMISE:
            continue
        kept = survey.score >= threshold
        _, unit = np.unique(survey.unit[kept], return_inverse=True)
        found[place] = promise_p_value(survey.right[kept], unit, share=PROMISE) <= RISK
    return found


def _listening(rng: np.random.Generator) -> dict[str, Any]:
    """Bias and coverage of what clips drawn by stratum tell."""
    called = rng.random(WINDOWS) < 0.06
    score = np.where(called, rng.beta(1.2, 1.0, WINDOWS), -1.0)
    holds = rng.random(WINDOWS) < np.where(called, expit(-1.5 + 5 * score), 0.015)
    order = np.argsort(np.argsort(score[called]))
    stratum = np.zeros(WINDOWS, dtype=np.int64)
    stratum[called] = 1 + order * 5 // called.sum()
    sizes = np.bincount(stratum)
    truth = {"prevalence": holds.mean()}
    above = np.arange(6) >= 3
    truth["precision"] = holds[stratum >= 3].mean()
    truth["recall"] = holds[stratum >= 3].sum() / holds.sum()
    found: dict[str, Any] = {}
    for clips in CLIPS:
        drawn = allocate(sizes, clips, first=UNDETECTED)
        made: dict[str, list[tuple[float, float, float]]] = {name: [] for name in truth}
        broken = 0
        for number in range(LISTENINGS):
            hold = np.array(
                [
                    holds[rng.choice(np.flatnonzero(stratum == one), many, replace=False)].sum()
                    for one, many in enumerate(drawn)
                ]
            )
            for name in truth:
                made[name].append(share_estimate(sizes, drawn, hold, above, of=name, seed=number))
            broken += _promised_wrongly(sizes, drawn, hold, stratum, holds)
        rows: dict[str, Any] = {"promise_holds": round(1 - broken / LISTENINGS, 4)}
        for name, true in truth.items():
            values, low, high = np.array(made[name]).T
            rows[name] = {
                "true": round(float(true), 4),
                "mean": round(float(values.mean()), 4),
                "error_of_mean": round(float(values.std(ddof=1) / LISTENINGS**0.5), 4),
                "covers": round(float(((low <= true) & (true <= high)).mean()), 4),
                "width": round(float((high - low).mean()), 4),
            }
        found[str(clips)] = rows
        print(clips, rows, flush=True)
    return found


def _promised_wrongly(
    sizes: NDArray[np.int64],
    drawn: NDArray[np.int64],
    hold: NDArray[np.int64],
    stratum: NDArray[np.int64],
    holds: NDArray[np.bool_],
) -> bool:
    """Whether the lowest threshold that the clips promise has a precision below the promise."""
    wrong = False
    for edge in range(5, 0, -1):
        bound = share_estimate(sizes, drawn, hold, np.arange(6) >= edge, of="precision", level=1 - 2 * RISK / 5)
        if bound.low >= PROMISE:
            wrong = bool(holds[stratum >= edge].mean() < PROMISE)
    return wrong
