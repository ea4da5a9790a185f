"""Presence at sites equals the naive program's, on random cases: pairs that nobody asked about, ties, units.

The area under the curve of gains is integrated by itself in `tests/metrics/test_presence.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import fieldmark
from tests.oracles import classification

PRESENCE = "occurrences/presence"


def draw(rng: Random) -> tuple[dict[str, dict[str, float]], list[tuple[str, str, bool, str]]]:
    """The scores of every species at every site, and for every pair that was asked about whether it was there."""
    species = [f"species {number}" for number in range(rng.randint(1, 5))]
    steps = rng.choice((3, 10, 1 << 20))
    sites = [f"s{number}" for number in range(rng.randint(4, 25))]
    scores = {site: {name: rng.randint(0, steps) / steps for name in species} for site in sites}
    looked = rng.choice((1.0, 0.7))
    truth = [
        (site, name, rng.random() < 0.4, f"u{number // 2}")
        for number, site in enumerate(sites)
        for name in species
        if rng.random() < looked or name == species[0]
    ]
    return scores, truth


def mean_over_species(
    scores: dict[str, dict[str, float]],
    truth: list[tuple[str, str, bool, str]],
    of_species: Callable[[list[float], list[bool]], float],
) -> float:
    """The mean over the species that were found somewhere and not everywhere."""
    values = []
    for name in sorted({label for _, label, _, _ in truth}):
        rows = [(scores[site][name], present) for site, label, present, _ in truth if label == name]
        found = [present for _, present in rows]
        if any(found) and not all(found):
            values.append(of_species([score for score, _ in rows], found))
    return classification.mean(values) if values else math.nan


def area(scores: list[float], found: list[bool]) -> float:
    return classification.roc_auc([-score for score in scores], found)


def correlation(scores: list[float], found: list[bool]) -> float:
    mean, share = classification.mean(scores), classification.mean([float(one) for one in found])
    spread = sum((score - mean) ** 2 for score in scores)
    both = sum((score - mean) * (one - share) for score, one in zip(scores, found, strict=True))
    return both / math.sqrt(spread * sum((one - share) ** 2 for one in found)) if spread else 0.0


def write(folder: Path, scores: dict[str, dict[str, float]], truth: list[tuple[str, str, bool, str]]) -> None:
    names = sorted({name for row in scores.values() for name in row})
    lines = [",".join((site, *(repr(row[name]) for name in names))) for site, row in scores.items()]
    (folder / "run.csv").write_text("\n".join([",".join(("id", *names)), *lines]) + "\n")
    rows = [f"{site},{name},{str(present).lower()},{unit}" for site, name, present, unit in truth]
    (folder / "truth.csv").write_text("\n".join(["id,label,present,unit", *rows]) + "\n")
    (folder / "classes.csv").write_text("\n".join(["label", *names]) + "\n")


def test_the_mean_over_species_equals_its_definition(tmp_path: Path) -> None:
    for seed in range(60):
        scores, truth = draw(Random(seed))
        write(tmp_path, scores, truth)
        files = {name: tmp_path / f"{name}.csv" for name in ("truth", "classes")}
        card = fieldmark.score(PRESENCE, tmp_path / "run.csv", **files)
        for metric, of_species in (("species_roc_auc", area), ("species_cor", correlation)):
            wanted = mean_over_species(scores, truth, of_species)
            assert card.metrics[metric].value == pytest.approx(wanted, abs=1e-9, nan_ok=True), (seed, metric)
        assert card.units == len({unit for *_, unit in truth}), seed
