"""Can the public board be climbed by guessing past the Ladder? Every deciding metric that the populations can draw.

An attacker holds a run and, for each unit, another answer that is right as often as not. Each run exchanges the answers
of some units, at random, and keeps the exchange when the Ladder says that it was an improvement. The gain that counts
is that of the score which the board shows, in a hundred runs; a plain board, which shows every score, stands beside it,
and so does the margin of one standard error, which Blum and Hardt (2015) recommend.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

from evidence import challenges, editions
from evidence.results import read_result, write_result
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Metric
from fieldmark.challenge.boards import ladder
from fieldmark.scoring import Scorecard, measure

NAME = "ladder"
RUNS, ATTACKS = 100, 5
EXCHANGED = (1, 3, 10, 30)
MARGINS: dict[str, dict[str, float | None]] = {"plain": {"step": 1e-12}, "one standard error": {"level": None}}
MARGINS["ours"] = {}
Draw = Callable[[np.random.Generator], dict[str, Any]]
Fields = dict[str, Any]
SOURCES: dict[str, tuple[str, Draw]] = {
    "ranked labels of a few": ("folder", challenges.snakes),
    "top 1": ("semi-inat-2021", challenges.snakes),
    "five of them": ("fungiclef-2025", challenges.ranked),
    "five of them, wrong": ("fgvcx-fungi-2018", challenges.ranked),
    **challenges.POPULATIONS,
    **editions.POPULATIONS,
}


def guessed(fields: Fields, rng: np.random.Generator) -> Fields | None:
    """Another answer to every item, right as often as not; None where it is not known how to change one."""
    items, lucky = len(fields["unit"]), rng.random(len(fields["unit"])) < 0.5
    other = dict(fields)
    if "first" in fields and "true_codes" in fields:
        wrong = rng.integers(0, fields["n_classes"], items)
        other["first"] = np.where(lucky, fields["true_codes"], wrong).astype(np.int32)
        other["ranked"] = np.broadcast_to(other["first"][:, None], fields["ranked"].shape).copy()
    if "unknown_score" in fields:
        strange = np.where(lucky, ~fields["is_known"], fields["is_known"])
        other["unknown_score"] = np.where(strange, 9.0, -9.0) + rng.normal(size=items)
    if "rank_of_truth" in fields:
        other["rank_of_truth"] = np.where(lucky, 1, 0 * lucky)
    if "scored" in fields:
        segment, cls, score = fields["scored"]
        other["scored"] = (segment, cls, score[rng.permutation(len(score))])
    if "intersection" in fields:
        share = np.where(lucky, 0.95, 0.4)
        other["intersection"] = np.floor(fields["union"] * share).astype(np.int64)
    changed = {"first", "unknown_score", "rank_of_truth", "scored", "intersection"} & set(fields)
    return other if changed else None


def mixed(mine: Fields, other: Fields, units: np.ndarray) -> Fields:
    """The answers of one run, and on some units those of the other."""
    taken = np.isin(mine["unit"], units)
    fields = dict(mine)
    for name in ("first", "unknown_score", "rank_of_truth", "intersection"):
        if name in mine:
            fields[name] = np.where(taken, other[name], mine[name])
    if "ranked" in mine:
        fields["ranked"] = np.where(taken[:, None], other["ranked"], mine["ranked"])
    if "scored" in mine:
        segment, cls, score = mine["scored"]
        fields["scored"] = (segment, cls, np.where(taken[segment], other["scored"][2], score))
    return fields


def card_of(fields: Fields, metric: Metric) -> Scorecard:
    """What the scorer says of answers."""
    units = [f"{unit:06d}" for unit in fields["unit"]]
    truth = SimpleNamespace(units=units, items=units, groups=fields.get("groups", pl.DataFrame()))
    plain = {name: value for name, value in fields.items() if name != "groups"}
    answers: Any = SimpleNamespace(**plain, truth=truth)
    unit_ids, scores, pseudo = measure([metric], answers)
    return Scorecard("", "", "public", len(units), len(unit_ids), 0, scores, {}, pseudo=pseudo, unit_ids=unit_ids)


def climb(start: Fields, other: Fields, metric: Metric, exchanged: int, margin: str, seed: int) -> tuple[float, int]:
    """How far the shown score rises in all runs, and how many of them were called improvements."""
    rng, units = np.random.default_rng(seed), np.unique(start["unit"])
    options = MARGINS[margin]
    held, cards = start, [card_of(start, metric)]
    shown = [ladder.release(cards, metric, **options)[-1].value]
    improved = 0
    for _ in range(RUNS):
        tried = mixed(held, other, rng.choice(units, min(exchanged, len(units)), replace=False))
        told = ladder.release([cards[-1], card_of(tried, metric)], metric, **options)[-1]
        if told.improved:
            held, improved = tried, improved + 1
            cards.append(card_of(tried, metric))
            shown.append(told.value)
    sign = 1 if metric.higher_is_better else -1
    first, last = float(shown[0] or 0.0), float(shown[-1] or 0.0)
    return sign * (last - first), improved


def run() -> dict[str, Any]:
    """The gain of guessing, by metric, size of the exchange and margin; what was studied before is kept."""
    rows = (read_result(NAME) or {"rows": []})["rows"]
    done = {row["population"] for row in rows}
    for number, (name, (benchmark, draw)) in enumerate(SOURCES.items()):
        metric = BENCHMARKS[benchmark].task.deciding
        if name in done:
            continue
        rows += _study(name, metric, draw, number)
        write_result(NAME, _result(rows))
    return _result(rows)


def _study(name: str, metric: Metric, draw: Draw, number: int) -> list[dict[str, Any]]:
    worlds = [_world(draw, [number, seed]) for seed in range(ATTACKS)]
    if any(world is None for world in worlds):
        return []
    drawn = [world for world in worlds if world is not None]
    try:
        if all(_same(card_of(start, metric), card_of(other, metric), metric) for start, other in drawn):
            return []
    except (AttributeError, KeyError):  # the population draws what other metrics read
        return []
    row: dict[str, Any] = {"population": name, "metric": metric.name, "units": len(np.unique(drawn[0][0]["unit"]))}
    for margin in MARGINS:
        ends = {
            exchanged: [
                climb(start, other, metric, exchanged, margin, seed) for seed, (start, other) in enumerate(drawn)
            ]
            for exchanged in EXCHANGED
        }
        best = max(EXCHANGED, key=lambda exchanged: float(np.mean([gain for gain, _ in ends[exchanged]])))
        row[margin] = {
            "best_exchange": best,
            "gain": round(float(np.mean([gain for gain, _ in ends[best]])), 4),
            "called_improvements": round(float(np.mean([count for _, count in ends[best]])), 1),
        }
    print(row, flush=True)
    return [row]


def _world(draw: Draw, seed: list[int]) -> tuple[Fields, Fields] | None:
    rng = np.random.default_rng(seed)
    start = draw(rng)
    other = guessed(start, rng)
    return None if other is None else (start, other)


def _same(first: Scorecard, second: Scorecard, metric: Metric) -> bool:
    return first.metrics[metric.name].value == second.metrics[metric.name].value


def _result(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"simulated": True, "runs": RUNS, "attacks": ATTACKS, "rows": rows}
