"""Can the public board be climbed by guessing past the Ladder? Every metric that decides a benchmark.

An attacker holds a run and, for each unit, another answer; all other answers together score as those held do, so that
whatever is gained is luck. Each run exchanges the answers of some units, at random, and keeps the exchange when the
Ladder says that it was an improvement. The gain that counts is that of the score which the board shows, in a hundred
runs; a plain board, which shows every score, stands beside it, and so does the margin of one standard error, which Blum
and Hardt (2015) recommend.

Two more attacks on our margin. Reserve: the attacker knows a fifth of the answers, withholds them, and spends one more
of them with each run until the Ladder speaks, so that it speaks of guesses too; what counts is the gain once all of the
reserve is spent, beyond the reserve itself. Newcomers: ten accounts, each of whose first scores is shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Metric
from fieldmark.metrics.geo import adaptive_sets
from fieldmark.scoring import Scorecard, measure
from fieldmark_challenge.boards import ladder
from studies.evidence.guessing import TARGETS, Fields, Target, guessed, mixed
from studies.evidence.results import read_result, write_result

NAME = "ladder"
ATTACKS = 12
RUNS = 100
NEWCOMERS = 10
RESERVED = 0.2
EXCHANGED = (1, 3, 10, 30)
LUCK = np.linspace(0.02, 0.98, 49)  # how often a guess is right
MARGINS: dict[str, dict[str, float | None]] = {"plain": {"step": 1e-12}, "one standard error": {"level": None}}
MARGINS["ours"] = {}


def card_of(fields: Fields, metric: Metric) -> Scorecard:
    """What the scorer says of answers."""
    units = [f"{unit:06d}" for unit in fields["unit"]]
    truth = SimpleNamespace(units=units, items=units, groups=fields.get("groups", pl.DataFrame()))
    plain = {name: value for name, value in fields.items() if name != "groups"}
    if "scores" in fields:  # the sets depend on the scores of all items
        plain["sets_of_30"] = adaptive_sets([fields["scores"]], fields["true_codes"], k=30)
    if "dangerous" in fields:  # every item of these is of a known species
        plain["truly_dangerous"] = fields["dangerous"][fields["true_codes"]]
    answers: Any = SimpleNamespace(**plain, truth=truth, shared_counts=None)
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
        card = card_of(tried, metric)
        told = ladder.release([cards[-1], card], metric, **options)[-1]
        if told.improved:
            held, improved = tried, improved + 1
            cards.append(card)
            shown.append(told.value)
    sign = 1 if metric.higher_is_better else -1
    first, last = float(shown[0] or 0.0), float(shown[-1] or 0.0)
    return sign * (last - first), improved


def climb_by_reserve(start: Fields, other: Fields, metric: Metric, exchanged: int, seed: int) -> float:
    """The gain beyond the reserve itself, once all of it is spent."""
    rng = np.random.default_rng([seed, 1])
    units = rng.permutation(np.unique(start["unit"]))
    reserve, open_units = np.split(units, [int(RESERVED * len(units))])
    right, wrong = (guessed(start, rng, luck=luck) for luck in (1.0, 0.0))
    held, cards = mixed(start, wrong, reserve), []
    cards.append(card_of(held, metric))
    spent = more = 0
    for _ in range(RUNS):
        more += 1
        if spent + more > len(reserve):
            break
        tried = mixed(held, other, rng.choice(open_units, min(exchanged, len(open_units)), replace=False))
        tried = mixed(tried, right, reserve[spent : spent + more])
        card = card_of(tried, metric)
        if ladder.release([cards[-1], card], metric)[-1].improved:
            held, spent, more = tried, spent + more, 0
            cards.append(card)
    sign = 1 if metric.higher_is_better else -1
    plain, climbed = (_value(mixed(one, right, reserve), metric) for one in (start, held))
    return sign * (climbed - plain)


def climb_by_newcomers(start: Fields, other: Fields, metric: Metric, exchanged: int, seed: int) -> float:
    """The gain of somebody who hands in each run by a new account, whose first score is shown."""
    rng, units = np.random.default_rng([seed, 2]), np.unique(start["unit"])
    sign = 1 if metric.higher_is_better else -1
    first = best = ladder.release([card_of(start, metric)], metric)[-1].value or 0.0
    held = start
    for _ in range(NEWCOMERS):
        tried = mixed(held, other, rng.choice(units, min(exchanged, len(units)), replace=False))
        shown = ladder.release([card_of(tried, metric)], metric)[-1].value or 0.0
        if sign * (shown - best) > 0:
            held, best = tried, shown
    return sign * (best - first)


def _value(fields: Fields, metric: Metric) -> float:
    return card_of(fields, metric).metrics[metric.name].value


def run() -> dict[str, Any]:
    """The gain of guessing, by metric, size of the exchange and margin; what was studied before is kept."""
    rows = {row["population"]: row for row in (read_result(NAME) or {"rows": []})["rows"]}
    rows = {name: rows[name] for name in TARGETS if name in rows}
    for number, (name, target) in enumerate(TARGETS.items()):
        metric = BENCHMARKS[target.benchmark].task.deciding
        row = rows.setdefault(name, {"population": name, "metric": metric.name})
        if {*MARGINS, *OTHER_ATTACKS} <= set(row):
            continue
        worlds = _worlds(target, metric, number)
        row["units"] = len(np.unique(worlds[0][0]["unit"]))
        for margin in set(MARGINS) - set(row):
            row[margin] = _climbed(worlds, metric, margin)
        for attack in set(OTHER_ATTACKS) - set(row):
            row[attack] = _attacked(worlds, metric, OTHER_ATTACKS[attack])
        print(row, flush=True)
        write_result(NAME, _result([*rows.values()]))
    return _result([*rows.values()])


def _worlds(target: Target, metric: Metric, number: int) -> list[tuple[Fields, Fields]]:
    """A test set with the answers held, and other answers, for each attack."""
    worlds = []
    for seed in range(ATTACKS):
        start = target.draw(np.random.default_rng([number, seed]))
        worlds.append((start, other_answers(start, metric, [number, seed, 1])))
    return worlds


def other_answers(start: Fields, metric: Metric, seed: list[int]) -> Fields:
    """Guesses that score as the answers held do, as nearly as luck in steps of a fiftieth allows."""
    guesses = (guessed(start, np.random.default_rng(seed), luck=luck) for luck in LUCK)
    held = _value(start, metric)
    return min(guesses, key=lambda other: abs(_value(other, metric) - held))


def _climbed(worlds: list[tuple[Fields, Fields]], metric: Metric, margin: str) -> dict[str, float]:
    ends = {
        exchanged: np.array(
            [climb(start, other, metric, exchanged, margin, seed) for seed, (start, other) in enumerate(worlds)]
        )
        for exchanged in EXCHANGED
    }
    best = max(EXCHANGED, key=lambda exchanged: float(ends[exchanged][:, 0].mean()))
    return {**_gain(best, ends[best][:, 0]), "called_improvements": round(float(ends[best][:, 1].mean()), 1)}


def _attacked(worlds: list[tuple[Fields, Fields]], metric: Metric, attack: Attack) -> dict[str, float]:
    gains = {
        exchanged: np.array(
            [attack(start, other, metric, exchanged, seed) for seed, (start, other) in enumerate(worlds)]
        )
        for exchanged in EXCHANGED
    }
    best = max(gains, key=lambda exchanged: float(gains[exchanged].mean()))
    return _gain(best, gains[best])


def _gain(exchanged: int, gains: NDArray[np.float64]) -> dict[str, float]:
    error = float(np.std(gains, ddof=1)) / math.sqrt(len(gains))
    return {"best_exchange": exchanged, "gain": round(float(gains.mean()), 4), "standard_error": round(error, 4)}


Attack = Callable[[Fields, Fields, Metric, int, int], float]
OTHER_ATTACKS: dict[str, Attack] = {"reserve": climb_by_reserve, "newcomers": climb_by_newcomers}


def _result(rows: list[dict[str, Any]]) -> dict[str, Any]:
    deciding = {BENCHMARKS[name].task.deciding.name for name in BENCHMARKS}
    missing = sorted(deciding - {row["metric"] for row in rows})
    return {
        "simulated": True,
        "runs": RUNS,
        "attacks": ATTACKS,
        "deciding": len(deciding),
        "missing": missing,
        "rows": rows,
    }
