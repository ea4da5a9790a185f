"""Can the public board be climbed by guessing past the Ladder? Every metric that decides a benchmark.

An attacker holds a run and, for each unit, another answer that is right as often as not. Each run exchanges the answers
of some units, at random, and keeps the exchange when the Ladder says that it was an improvement. The gain that counts
is that of the score which the board shows, in a hundred runs; a plain board, which shows every score, stands beside it,
and so does the margin of one standard error, which Blum and Hardt (2015) recommend. Metrics that take long are attacked
less often; the table says how often.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

from evidence.guessing import ATTACKS, TARGETS, Fields, Target, guessed, mixed
from evidence.results import read_result, write_result
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Metric
from fieldmark.challenge.boards import ladder
from fieldmark.metrics.geo import adaptive_sets
from fieldmark.scoring import Scorecard, measure

NAME = "ladder"
RUNS = 100
EXCHANGED = (1, 3, 10, 30)
MARGINS: dict[str, dict[str, float | None]] = {"plain": {"step": 1e-12}, "one standard error": {"level": None}}
MARGINS["ours"] = {}


def card_of(fields: Fields, metric: Metric) -> Scorecard:
    """What the scorer says of answers."""
    units = [f"{unit:06d}" for unit in fields["unit"]]
    truth = SimpleNamespace(units=units, items=units, groups=fields.get("groups", pl.DataFrame()))
    plain = {name: value for name, value in fields.items() if name != "groups"}
    if "scores" in fields:  # the sets depend on the scores of all items
        plain["sets_of_30"] = adaptive_sets([fields["scores"]], fields["true_codes"], k=30)
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
        card = card_of(tried, metric)
        told = ladder.release([cards[-1], card], metric, **options)[-1]
        if told.improved:
            held, improved = tried, improved + 1
            cards.append(card)
            shown.append(told.value)
    sign = 1 if metric.higher_is_better else -1
    first, last = float(shown[0] or 0.0), float(shown[-1] or 0.0)
    return sign * (last - first), improved


def run() -> dict[str, Any]:
    """The gain of guessing, by metric, size of the exchange and margin; what was studied before is kept."""
    rows = [row for row in (read_result(NAME) or {"rows": []})["rows"] if row["population"] in TARGETS]
    rows = [{"attacks": ATTACKS, **row} for row in rows]
    done = {row["population"] for row in rows}
    for number, (name, target) in enumerate(TARGETS.items()):
        if name not in done:
            rows.append(_study(name, target, number))
            write_result(NAME, _result(rows))
    return _result(rows)


def _study(name: str, target: Target, number: int) -> dict[str, Any]:
    metric = BENCHMARKS[target.benchmark].task.deciding
    worlds = []
    for seed in range(target.attacks):
        rng = np.random.default_rng([number, seed])
        start = target.draw(rng)
        worlds.append((start, guessed(start, rng)))
    units = len(np.unique(worlds[0][0]["unit"]))
    row: dict[str, Any] = {"population": name, "metric": metric.name, "units": units, "attacks": target.attacks}
    for margin in MARGINS:
        ends = {
            exchanged: [
                climb(start, other, metric, exchanged, margin, seed) for seed, (start, other) in enumerate(worlds)
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
    return row


def _result(rows: list[dict[str, Any]]) -> dict[str, Any]:
    deciding = {BENCHMARKS[name].task.deciding.name for name in BENCHMARKS}
    missing = sorted(deciding - {row["metric"] for row in rows})
    return {"simulated": True, "runs": RUNS, "deciding": len(deciding), "missing": missing, "rows": rows}
