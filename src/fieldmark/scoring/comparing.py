"""Runs compared on the same units: who is ahead, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError, MisuseError, did_you_mean
from fieldmark.foundation.files import appearing_file
from fieldmark.foundation.registry import require
from fieldmark.scoring import SCORECARD_FILE, Score, Scorecard
from fieldmark.stats import comparison
from fieldmark.stats.comparison import Difference, PairedRuns

PLOT_FORMATS = ("png", "svg", "pdf")


@dataclass(frozen=True)
class Comparison:
    """Several runs by one metric.

    Args:
        benchmark, split, metric: What was compared.
        units: How many independent units all runs share.
        names: The runs, best first.
        scores: Their scores, in that order.
        outcome: All pairs and ranks, numbered in that order.
        simulated: Whether the data are.
    """

    benchmark: str
    split: str
    metric: str
    units: int
    names: tuple[str, ...]
    scores: tuple[Score, ...]
    outcome: PairedRuns
    simulated: bool

    def behind_best(self, run: int) -> Difference | None:
        """The best run minus this one, None for the best itself."""
        differences = (pair for pair in self.outcome.differences if (pair.first, pair.second) == (0, run))
        return next(differences, None)

    def rows(self) -> list[dict[str, str]]:
        """The table: one row per run, best first."""
        percent = next(m for m in BENCHMARKS[self.benchmark].task.metrics if m.name == self.metric).is_share
        group = self.outcome.best_group
        rows = []
        for standing in self.outcome.standings:
            pair = self.behind_best(standing.run)
            rows.append(
                {
                    "run": self.names[standing.run] + (" *" if standing.run in group else ""),
                    self.metric: _bounds(self.scores[standing.run], percent),
                    "rank": rank_range(standing.rank_low, standing.rank_high),
                    "behind the best by": "" if pair is None else _bounds(_score_of(pair), percent),
                    "p (Holm)": "" if pair is None else f"{pair.p_adjusted:.2g}",
                    "chance to be ahead": "" if pair is None else f"{1 - pair.better:.0%}",
                }
            )
        return rows

    def to_markdown(self) -> str:
        """The table for a README."""
        rows = self.rows()
        lines = [list(rows[0]), ["---", *["---:"] * (len(rows[0]) - 1)], *(list(row.values()) for row in rows)]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"

    def to_latex(self) -> str:
        """The table for a paper (booktabs)."""
        rows = self.rows()
        body = "\n".join(" & ".join(_tex(cell) for cell in row.values()) + r" \\" for row in rows)
        header = " & ".join(_tex(name) for name in rows[0]) + r" \\"
        columns = "l" + "r" * (len(rows[0]) - 1)
        rules = (r"\toprule", r"\midrule", r"\bottomrule")
        return (
            f"\\begin{{tabular}}{{{columns}}}\n{rules[0]}\n{header}\n{rules[1]}\n{body}\n{rules[2]}\n\\end{{tabular}}\n"
        )

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain data."""
        return {
            "benchmark": self.benchmark,
            "split": self.split,
            "metric": self.metric,
            "units": self.units,
            "simulated": self.simulated,
            "runs": [
                {
                    "name": self.names[standing.run],
                    "value": self.scores[standing.run].value,
                    "low": self.scores[standing.run].low,
                    "high": self.scores[standing.run].high,
                    "rank_low": standing.rank_low,
                    "rank_high": standing.rank_high,
                    "separable_from_best": standing.run not in self.outcome.best_group,
                }
                for standing in self.outcome.standings
            ],
            "differences": [
                {
                    "first": self.names[pair.first],
                    "second": self.names[pair.second],
                    **pair.to_json(),
                }
                for pair in self.outcome.differences
            ],
        }

    def plot(self, path: Path) -> None:
        """Draws the scores with their intervals and rank ranges; the ending of the file decides the format.

        Raises:
            MisuseError: For an ending that is none of `PLOT_FORMATS`.
        """
        form = path.suffix.removeprefix(".").lower()
        if form not in PLOT_FORMATS:
            suffixes = ", ".join(f".{name}" for name in PLOT_FORMATS)
            raise MisuseError(f"{path}: found a plot ending in {path.suffix or 'nothing'}, expected one of {suffixes}.")
        module: Any = require("matplotlib.figure", "A plot")
        figure = module.Figure(figsize=(7, 1.1 + 0.42 * len(self.names)), layout="constrained")
        axes = figure.subplots()
        for place, score in enumerate(self.scores):
            color = "#0b6e4f" if place in self.outcome.best_group else "#6b7280"
            low = score.value if score.low is None else score.low
            high = score.value if score.high is None else score.high
            axes.plot([low, high], [place, place], color=color, linewidth=2)
            axes.plot(score.value, place, "o", color=color)
            standing = self.outcome.standings[place]
            rank = rank_range(standing.rank_low, standing.rank_high)
            axes.annotate(f"rank {rank}", (high, place), xytext=(6, 0), textcoords="offset points", va="center", size=8)
        axes.set_yticks(range(len(self.names)), self.names)
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xmargin(0.15)
        axes.set_ymargin(0.15)
        axes.spines[["left", "top", "right"]].set_visible(False)
        note = " (simulated data)" if self.simulated else ""
        axes.set_xlabel(f"{self.metric} on {self.split} of {self.benchmark}{note}\ngreen: not separable from the best")
        with appearing_file(path) as partial:
            figure.savefig(partial, format=form, dpi=150)


def compare(runs: Sequence[str | Path] | Mapping[str, Scorecard], *, metric: str | None = None) -> Comparison:
    """Compares two or more runs that were scored on the same units.

    Args:
        runs: Folders of runs or scorecards on disk, or scorecards by name.
        metric: By which metric; the primary one if not given.

    Raises:
        InputError: When the runs answer different questions or were scored on different units.
    """
    cards = dict(runs) if isinstance(runs, Mapping) else _read(runs)
    if len(cards) < 2:
        raise MisuseError("A comparison needs at least two runs with different names.")
    first_name, first = next(iter(cards.items()))
    for name, card in cards.items():
        found, expected = ((c.benchmark, c.version, c.split, c.unit_ids) for c in (card, first))
        if found != expected:
            what = "other units" if found[:3] == expected[:3] else _question(card)
            hint = "Score both on the same part of the same benchmark."
            raise InputError(name, found=what, expected=f"{_question(first)}, as {first_name}", hint=hint)
    chosen = metric or next(iter(first.metrics))
    declared = {m.name: m for m in BENCHMARKS[first.benchmark].task.metrics}
    comparable = [name for name in first.pseudo if name in declared]
    if chosen not in comparable:
        raise MisuseError(f"Runs cannot be compared by {chosen!r}. {did_you_mean(chosen, comparable)}")
    up = declared[chosen].higher_is_better
    order = sorted(cards, key=lambda name: cards[name].metrics[chosen].value, reverse=up)
    values = np.array([cards[name].metrics[chosen].value for name in order])
    outcome = comparison.compare(values, np.stack([cards[name].pseudo[chosen] for name in order]), higher_is_better=up)
    return Comparison(
        benchmark=first.benchmark,
        split=first.split,
        metric=chosen,
        units=first.units,
        names=tuple(order),
        scores=tuple(cards[name].metrics[chosen] for name in order),
        outcome=outcome,
        simulated=any(bool(card.provenance.get("simulated")) for card in cards.values()),
    )


def _question(card: Scorecard) -> str:
    return f"a run on {card.split} of {card.benchmark} (version {card.version})"


def _read(paths: Sequence[str | Path]) -> dict[str, Scorecard]:
    cards = {}
    for path in map(Path, paths):
        file = path / SCORECARD_FILE if path.is_dir() else path
        name = path.name if path.is_dir() else path.stem
        cards[str(path) if name in cards else name] = Scorecard.read(file)
    return cards


def _score_of(pair: Difference) -> Score:
    return Score(pair.value, pair.interval.low, pair.interval.high, pair.interval.method, pair.interval.reason)


def _bounds(score: Score, percent: bool) -> str:
    scale, digits = (100, 1) if percent else (1, 3)
    if score.low is None or score.high is None:
        return f"{scale * score.value:.{digits}f}"
    return f"{scale * score.value:.{digits}f} [{scale * score.low:.{digits}f}, {scale * score.high:.{digits}f}]"


def rank_range(low: int, high: int) -> str:
    """The ranks that a run may have, in words.

    >>> rank_range(1, 1), rank_range(1, 3)
    ('1', '1 to 3')
    """
    return str(low) if low == high else f"{low} to {high}"


def _tex(text: str) -> str:
    for character in "&%$#_{}":
        text = text.replace(character, f"\\{character}")
    return text
