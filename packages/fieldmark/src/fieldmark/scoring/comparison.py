"""Runs compared on the same units: who is ahead, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.notebooks import (
    PLOT_FORMATS,
    DrawnPlot,
    draw_intervals,
    html_note,
    html_page,
    html_table,
    shown_bounds,
    text_table,
)
from fieldmark.scoring import SCORECARD_FILE, Score, Scorecard
from fieldmark.scoring.comparability import refuse_other_questions, remarks_on
from fieldmark.scoring.scorecard import units_rested_on
from fieldmark.stats import comparison
from fieldmark.stats.comparison import Difference, PairedRuns


@dataclass(frozen=True)
class Comparison:
    """Several runs by one metric.

    Args:
        benchmark: What the runs answer.
        split: On which part.
        metric: By which metric.
        units: How many independent units all runs share.
        names: The runs, best first.
        scores: Their scores, in that order.
        outcome: All pairs and ranks, numbered in that order.
        simulated: Whether the data are.
        remarks: What a reader must know, a sentence each.
        title: What the metric is called on pages.
    """

    benchmark: str
    split: str
    metric: str
    units: int
    names: tuple[str, ...]
    scores: tuple[Score, ...]
    outcome: PairedRuns
    simulated: bool
    remarks: tuple[str, ...] = ()
    title: str = ""

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

    def __str__(self) -> str:
        rows = self.rows()
        simulated = ", simulated data" if self.simulated else ""
        return "\n".join(
            [
                text_table(list(rows[0]), [list(row.values()) for row in rows]),
                f"on {self.split} of {self.benchmark}: {self.units} independent units{simulated}",
                *self.remarks,
                "* not separable from the best at 95 %; intervals and p-values of differences are paired over units",
            ]
        )

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
            **({"remarks": list(self.remarks)} if self.remarks else {}),
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

    def to_frame(self) -> pl.DataFrame:
        """One row for each run, best first: its score, the ranks it may have, and how far it is behind the best."""
        rows = []
        for standing in self.outcome.standings:
            score, pair = self.scores[standing.run], self.behind_best(standing.run)
            rows.append(
                {
                    "run": self.names[standing.run],
                    "value": score.value,
                    "low": score.low,
                    "high": score.high,
                    "rank_low": standing.rank_low,
                    "rank_high": standing.rank_high,
                    "among_the_best": standing.run in self.outcome.best_group,
                    "behind": None if pair is None else pair.value,
                    "behind_low": None if pair is None else pair.interval.low,
                    "behind_high": None if pair is None else pair.interval.high,
                    "p_adjusted": None if pair is None else pair.p_adjusted,
                }
            )
        numbers = ("value", "low", "high", "behind", "behind_low", "behind_high", "p_adjusted")
        return pl.DataFrame(rows, schema_overrides=dict.fromkeys(numbers, pl.Float64))

    def plot(self, path: str | Path | None = None) -> DrawnPlot:
        """The scores with their intervals and the ranks they may have, written to a file where one is given.

        Raises:
            MisuseError: For an ending that is none of `PLOT_FORMATS`.
        """
        note = " (simulated data)" if self.simulated else ""
        standings = self.outcome.standings
        drawn = draw_intervals(
            self.names,
            [(score.value, score.low, score.high) for score in self.scores],
            label=f"{self.metric} on {self.split} of {self.benchmark}{note}\ngreen: not separable from the best",
            green=self.outcome.best_group,
            beside=[f"rank {rank_range(standing.rank_low, standing.rank_high)}" for standing in standings],
        )
        if path is not None:
            drawn.save(path)
        return drawn

    def _repr_html_(self) -> str:
        rows = self.rows()
        note = f"{self.units:,} independent units; * not separable from the best at 95 %; differences are paired"
        title = f"{self.title or self.metric} on {self.split} of {self.benchmark}"
        table = html_table(list(rows[0]), [list(row.values()) for row in rows])
        notes = [html_note(text) for text in (note, *self.remarks)]
        return html_page(title, table, *notes, simulated=self.simulated)


Compared = str | Path | Scorecard


def compare(runs: Sequence[Compared] | Mapping[str, Compared], *, metric: str | None = None) -> Comparison:
    """Compares two or more runs that were scored on the same units, against the same truth and classes.

    Args:
        runs: Folders of runs, scorecards on disk, or scorecards; also by name.
        metric: The metric; the primary one if not given.

    Raises:
        InputError: When the runs answer different questions, or what the metric rests on is not the same for them.
    """
    cards = _cards(runs)
    if len(cards) < 2:
        raise MisuseError("A comparison needs at least two runs with different names.")
    refuse_other_questions(cards)
    first = next(iter(cards.values()))
    chosen = metric or next(iter(first.metrics))
    declared = {m.name: m for m in BENCHMARKS[first.versioned_benchmark].task.metrics}
    comparable = [name for name in first.pseudo if name in declared and all(name in c.pseudo for c in cards.values())]
    if chosen not in comparable:
        raise MisuseError(f"Runs cannot be compared by {chosen!r}. {did_you_mean(chosen, comparable)}")
    remarks = remarks_on(cards, declared[chosen])
    up = declared[chosen].higher_is_better
    order = sorted(cards, key=lambda name: cards[name].metrics[chosen].value, reverse=up)
    values = np.array([cards[name].metrics[chosen].value for name in order])
    pseudo = np.stack([cards[name].pseudo[chosen] for name in order])
    rests_on = units_rested_on(card.metrics[chosen] for card in cards.values())
    outcome = comparison.compare(values, pseudo, higher_is_better=up, rests_on=rests_on)
    return Comparison(
        benchmark=first.benchmark,
        split=first.split,
        metric=chosen,
        units=first.units,
        names=tuple(order),
        scores=tuple(cards[name].metrics[chosen] for name in order),
        outcome=outcome,
        simulated=any(bool(card.provenance.get("simulated")) for card in cards.values()),
        remarks=remarks,
        title=declared[chosen].title,
    )


def _cards(runs: Sequence[Compared] | Mapping[str, Compared]) -> dict[str, Scorecard]:
    """The scorecards by name: as given, by their folder or file, or by the method that answered."""
    if isinstance(runs, (str, Path, Scorecard)):
        raise MisuseError("A comparison needs at least two runs, in a list or by name.")
    if isinstance(runs, Mapping):
        return {str(name): _card(one) for name, one in runs.items()}
    cards: dict[str, Scorecard] = {}
    for number, one in enumerate(runs, 1):
        name, unique = name_of(one, number)
        cards[unique if name in cards else name] = _card(one)
    return cards


def _card(one: Compared) -> Scorecard:
    if isinstance(one, Scorecard):
        return one
    if not isinstance(one, (str, Path)):
        raise MisuseError(
            f"A run to be compared is a folder, a scorecard on disk or a Scorecard, not {type(one).__name__}."
        )
    path = Path(one)
    return Scorecard.read(path / SCORECARD_FILE if path.is_dir() else path)


def name_of(one: Compared | None, number: int) -> tuple[str, str]:
    """How a run is called, and how if that name is taken; None for one that has neither a place nor a scorecard."""
    if one is None or isinstance(one, Scorecard):
        name = str((one and one.provenance.get("method")) or f"run {number}")
        return name, f"{name} ({number})"
    path = Path(str(one))
    return path.name if path.is_dir() else path.stem, str(path)


def _score_of(pair: Difference) -> Score:
    return Score(pair.value, pair.interval.low, pair.interval.high, pair.interval.method, pair.interval.reason)


def _bounds(score: Score, percent: bool) -> str:
    value, low, high = shown_bounds(score.value, score.low, score.high, percent=percent)
    return f"{value} [{low}, {high}]" if low else value


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


__all__ = ["PLOT_FORMATS", "Comparison", "compare", "name_of", "rank_range"]
