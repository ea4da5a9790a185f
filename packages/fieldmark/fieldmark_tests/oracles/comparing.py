"""Scores a case from files and lists every number that differs from what the naive program says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import fieldmark
from fieldmark.errors import InputError
from fieldmark_tests.oracles.lists import draw_birds, draw_places, draw_plants
from fieldmark_tests.oracles.photos import FORMS, draw_ranked, draw_snakes
from fieldmark_tests.oracles.programs import TEMPORAL, TEMPORAL_CLOSED, Expected, expected
from fieldmark_tests.oracles.tables import Case

TOLERANCE = 1e-12
LISTS: dict[str, Callable[[Random], Case]] = {
    "snakeclef-2020": draw_snakes,
    "plantclef-2020": draw_plants,
    "geolifeclef-2020": draw_places,
    "birdclef-2020": draw_birds,
}
# Variants in time order are scored by the very metrics of the two that stand for all of them.
VARIANTS = tuple(sorted({*TEMPORAL, *TEMPORAL_CLOSED} - {"fungitastic/temporal", "fungitastic-mini/temporal-closed"}))
TABLE_BENCHMARKS = (*(name for name in FORMS if name not in VARIANTS), *LISTS)


def draw(benchmark: str, seed: int) -> Case:
    """The random case of a benchmark with that seed."""
    rng = Random(f"{benchmark} {seed}")
    return draw_ranked(benchmark, rng) if benchmark in FORMS else LISTS[benchmark](rng)


def score_files(benchmark: str, paths: Mapping[str, Any], metrics: Sequence[Any] | None = None) -> Any:
    """The scorecard of the files (or tables) by their names; `run` and `truth` must be there."""
    return fieldmark.score(
        benchmark,
        paths["run"],
        truth=paths["truth"],
        classes=paths.get("classes"),
        media=paths.get("media"),
        metrics=metrics,
    )


def score_case(case: Case, folder: Path) -> Any:
    """The scorecard of a case, from files."""
    return score_files(case.benchmark, case.write(folder))


def values_of(card: Any) -> dict[str, float]:
    """The value of each metric, and in each group."""
    values = {name: score.value for name, score in card.metrics.items()}
    for column, by_value in card.groups.items():
        for value, scores in by_value.items():
            values |= {f"{name} ({column} {value})": score.value for name, score in scores.items()}
    return values


def differences(found: Mapping[str, float], wanted: Mapping[str, float]) -> list[str]:
    """A line for each number that is missing, too many or another one."""
    lines = []
    for name in sorted({*found, *wanted}):
        ours, theirs = found.get(name), wanted.get(name)
        if ours is None or theirs is None or not same(ours, theirs):
            lines.append(f"{name}: fieldmark.score says {ours!r}, the definition {theirs!r}")
    return lines


def same(left: float, right: float) -> bool:
    """Whether two numbers agree to 1e-12 (of the larger one, where that is above 1), or are both undefined."""
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def wanted_values(wanted: Expected) -> dict[str, float]:
    """The same numbers as `values_of`, and how many items, units and classes there are."""
    values = dict(wanted.metrics)
    for column, by_value in wanted.groups.items():
        for value, metrics in by_value.items():
            values |= {f"{name} ({column} {value})": metric for name, metric in metrics.items()}
    return {**values, "items": wanted.items, "units": wanted.units, "classes": wanted.classes}


def differences_of_case(case: Case, card: Any) -> list[str]:
    """What differs between a scorecard and the naive program."""
    found = {**values_of(card), "items": card.items, "units": card.units, "classes": card.classes}
    return differences(found, wanted_values(expected(case)))


def report(benchmark: str, seed: int, lines: Sequence[str]) -> list[str]:
    """The lines with what it takes to draw the case again."""
    return [f"{benchmark}, seed {seed}: {line}" for line in lines]


def refusal(benchmark: str, paths: Mapping[str, Any]) -> str:
    """The sentence that a score is refused with.

    Raises:
        AssertionError: When it is not refused.
    """
    try:
        card = score_files(benchmark, paths)
    except InputError as error:
        return str(error)
    raise AssertionError(f"accepted without a word: {values_of(card)}")
