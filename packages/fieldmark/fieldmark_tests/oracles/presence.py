"""Presence at sites: random cases with pairs that nobody asked about, and the metrics pair by pair.

ROC-AUC and the correlation of Pearson by species; the area under precision gain by recall gain (Flach and Kull, 2015),
both of which are straight lines in one over the number of true positives between two thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random

from fieldmark_tests.oracles import classification
from fieldmark_tests.oracles.tables import Case, Row, Table

PRESENCE = "occurrences/presence"


def draw_presence(rng: Random) -> Case:
    """The scores of every species at every site, and for every pair that was asked about whether it was there."""
    species = [f"species {number}" for number in range(rng.randint(1, 5))]
    steps, looked = rng.choice((3, 10, 1 << 20)), rng.choice((1.0, 0.7))
    sites = [f"s{number}" for number in range(rng.randint(4, 25))]
    lines = [(site, *(repr(rng.randint(0, steps) / steps) for _ in species)) for site in sites]
    truth: list[Row] = [
        (site, name, str(rng.random() < 0.4).lower(), f"u{number // 2}")
        for number, site in enumerate(sites)
        for name in species
        if rng.random() < looked or name == species[0]
    ]
    return Case(
        PRESENCE,
        Table(("id", *species), tuple(lines)),
        Table(("id", "label", "present", "unit"), tuple(truth)),
        Table(("label",), tuple((name,) for name in species)),
    )


def present(case: Case, items: Sequence[str]) -> dict[str, float]:
    """The mean over the species that were found somewhere and not everywhere."""
    score = {row[0]: dict(zip(case.run.columns[1:], map(float, row[1:]), strict=True)) for row in case.run.rows}
    pairs: dict[str, list[tuple[float, bool]]] = {}
    for site, name, there, *_ in case.truth.rows:
        if site in set(items):
            pairs.setdefault(name, []).append((score[site][name], there == "true"))
    kept = [own for own in pairs.values() if len({there for _, there in own}) == 2]
    of_species: dict[str, Callable[[list[float], list[bool]], float]] = {
        "species_roc_auc": area,
        "species_cor": correlation,
        "species_prg_auc": area_of_gains,
    }
    return {
        metric: classification.mean([value([one for one, _ in own], [there for _, there in own]) for own in kept])
        for metric, value in of_species.items()
    }


def area(scores: list[float], found: list[bool]) -> float:
    return classification.roc_auc([-score for score in scores], found)


def correlation(scores: list[float], found: list[bool]) -> float:
    mean, share = classification.mean(scores), classification.mean([float(one) for one in found])
    spread = sum((score - mean) ** 2 for score in scores)
    both = sum((score - mean) * (one - share) for score, one in zip(scores, found, strict=True))
    return both / math.sqrt(spread * sum((one - share) ** 2 for one in found)) if spread else 0.0


def area_of_gains(scores: list[float], found: list[bool]) -> float:
    """The sum of trapezoids between thresholds, from a recall gain of 0 on."""
    positives = sum(found)
    share, total, before = positives / len(found), 0.0, (0.0, 0.0)
    for level in sorted(set(scores), reverse=True):
        above = [there for score, there in zip(scores, found, strict=True) if score >= level]
        after = float(sum(above)), float(len(above) - sum(above))
        if after[0] > max(before[0], share * positives):
            # From where the recall is the share of presences on, the gains are at least 0.
            first = max((share * positives - before[0]) / (after[0] - before[0]), 0.0)
            start = tuple(one + first * (other - one) for one, other in zip(before, after, strict=True))
            ends = []
            for true, false in (start, after):
                odds = share / (1 - share)
                ends.append((1 - odds * (positives - true) / true, 1 - odds * false / true))
            total += (ends[1][0] - ends[0][0]) * (ends[0][1] + ends[1][1]) / 2
        before = after
    return total
