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
estimated without bias, and do their 95 % intervals cover? And the same with 100 draws from each of 24 surveys that
differ in length, in how often the detector calls and misses, in its curve, in the threshold and in the number of clips.
The interval was chosen among five on 40 other surveys of that kind.
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
SURVEYS, SURVEY_LISTENINGS = 24, 100


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
        "listening": _listening(),
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


class Survey(NamedTuple):
    """The windows of some recordings: how many there are in each stratum, and in how many the species sounds."""

    sizes: NDArray[np.int64]
    hold: NDArray[np.int64]

    @classmethod
    def made(
        cls, rng: np.random.Generator, windows: int, called: float, missed: float, low: float, rise: float
    ) -> Survey:
        """A survey in which a share of the windows is called, and the species sounds in some of the others."""
        score = rng.beta(1.2, 1.0, int(windows * called))
        holds = rng.random(len(score)) < expit(low + rise * score)
        stratum = 1 + np.argsort(np.argsort(score)) * 5 // len(score)
        others = windows - len(score)
        sizes = np.append(others, np.bincount(stratum)[1:])
        return cls(sizes, np.append(rng.binomial(others, missed), np.bincount(stratum, weights=holds)[1:].astype(int)))

    def truth(self, edge: int) -> dict[str, float]:
        above = np.arange(6) >= edge
        return {
            "prevalence": float(self.hold.sum() / self.sizes.sum()),
            "precision": float(self.hold[above].sum() / self.sizes[above].sum()),
            "recall": float(self.hold[above].sum() / self.hold.sum()),
        }


def _listening() -> dict[str, Any]:
    """Bias and coverage of what clips drawn by stratum tell; the seed is no other study's."""
    rng = np.random.default_rng(46_001)
    survey = Survey.made(rng, WINDOWS, 0.06, 0.015, -1.5, 5.0)
    found: dict[str, Any] = {str(clips): _listened(survey, 3, clips, LISTENINGS, rng) for clips in CLIPS}
    surveys = []
    for _ in range(SURVEYS):
        one = Survey.made(
            rng,
            int(rng.choice([3_000, 20_000, 60_000])),
            float(rng.choice([0.03, 0.06, 0.15])),
            float(np.exp(rng.uniform(np.log(0.001), np.log(0.05)))),
            float(rng.uniform(-3, 1)),
            float(rng.uniform(2, 6)),
        )
        edge, clips = int(rng.integers(1, 6)), int(rng.choice([60, 150, 300]))
        surveys.append({"clips": clips, "edge": edge, **_listened(one, edge, clips, SURVEY_LISTENINGS, rng)})
    found["surveys"] = surveys
    for name in ("prevalence", "precision", "recall"):
        rows = [one[name] for one in surveys]
        found[f"{name}_over_surveys"] = {
            "covers": round(float(np.mean([one["covers"] for one in rows])), 4),
            "least_covers": min(one["covers"] for one in rows),
            "mean_error": round(float(np.mean([one["mean"] - one["true"] for one in rows])), 4),
            "mean_error_of_plain_ratio": round(float(np.mean([one["plain"] - one["true"] for one in rows])), 4),
        }
        print(name, found[f"{name}_over_surveys"], flush=True)
    return found


def _listened(survey: Survey, edge: int, clips: int, times: int, rng: np.random.Generator) -> dict[str, Any]:
    drawn, above = allocate(survey.sizes, clips, first=UNDETECTED), np.arange(6) >= edge
    truth = survey.truth(edge)
    made: dict[str, list[tuple[float, float, float]]] = {name: [] for name in truth}
    plain: dict[str, list[float]] = {name: [] for name in truth}
    broken = 0
    for number in range(times):
        hold = rng.hypergeometric(survey.hold, survey.sizes - survey.hold, drawn)
        for name in truth:
            made[name].append(share_estimate(survey.sizes, drawn, hold, above, of=name, seed=number))
        totals = survey.sizes * hold / drawn
        plain["prevalence"].append(totals.sum() / survey.sizes.sum())
        plain["precision"].append(totals[above].sum() / survey.sizes[above].sum())
        plain["recall"].append(totals[above].sum() / max(totals.sum(), 1e-9))
        broken += _promised_wrongly(survey, drawn, hold)
    rows: dict[str, Any] = {"promise_holds": round(1 - broken / times, 4)}
    for name, true in truth.items():
        values, low, high = np.array(made[name]).T
        rows[name] = {
            "true": round(float(true), 4),
            "mean": round(float(np.nanmean(values)), 4),
            "plain": round(float(np.nanmean(plain[name])), 4),
            "error_of_mean": round(float(np.nanstd(values, ddof=1) / times**0.5), 4),
            "covers": round(float(((low <= true) & (true <= high)).mean()), 4),
            "width": round(float((high - low).mean()), 4),
        }
    print(clips, rows, flush=True)
    return rows


def _promised_wrongly(survey: Survey, drawn: NDArray[np.int64], hold: NDArray[np.int64]) -> bool:
    """Whether the lowest threshold that the clips promise has a precision below the promise."""
    wrong = False
    for edge in range(5, 0, -1):
        above = np.arange(6) >= edge
        bound = share_estimate(survey.sizes, drawn, hold, above, of="precision", level=1 - 2 * RISK / 5)
        if bound.low >= PROMISE:
            wrong = survey.truth(edge)["precision"] < PROMISE
    return wrong
