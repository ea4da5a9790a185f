"""What a search tried, as a table in the run: `search.csv` for people and `search.json` with how it was done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fieldmark.benchmarks.declarations import Metric
from fieldmark.scoring import Scorecard
from fieldmark.stats.comparison import compare
from fieldmark.storage.files import write_json

TABLE_FILE, RECORD_FILE = "search.csv", "search.json"


@dataclass(frozen=True)
class TrialResult:
    """One combination of settings, measured on all folds together.

    Args:
        settings: The settings that were searched, with their values.
        card: The score of the answers to all held-out items together, under the deciding metric alone.
        seconds: How long the fits took, all folds together.
    """

    settings: Mapping[str, Any]
    card: Scorecard
    seconds: float

    @property
    def value(self) -> float:
        return next(iter(self.card.metrics.values())).value


@dataclass(frozen=True)
class Searched:
    """A finished search.

    Args:
        trials: What was tried, in order.
        metric: What decided.
        space: The values of each setting.
        folds, by, seed: How train was cut.
    """

    trials: tuple[TrialResult, ...]
    metric: Metric
    space: Mapping[str, Sequence[Any]]
    folds: int
    by: str
    seed: int

    @property
    def best(self) -> int:
        """The number of the best trial; the first among equals."""
        values = np.array([trial.value for trial in self.trials])
        return int(np.argmax(values if self.metric.higher_is_better else -values))

    @property
    def chosen(self) -> dict[str, Any]:
        """The settings of the best trial."""
        return dict(self.trials[self.best].settings)

    @property
    def remarks(self) -> list[str]:
        """What a reader of the run should know about the choice."""
        chosen = ", ".join(f"{name}={value}" for name, value in self.chosen.items())
        remarks = [
            f"{chosen} was chosen by {self.folds}-fold cross-validation on train (by {self.by}) among "
            f"{len(self.trials)} trials, by {self.metric.name}."
        ]
        best = self.trials[self.best].value
        if sum(trial.value == best for trial in self.trials) > 1:
            return remarks  # the first among equals says nothing about where the best lies
        for name, values in self.space.items():
            numbers = [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
            edge = len(numbers) == len(values) > 2 and self.chosen[name] in (min(numbers), max(numbers))
            if edge:
                remarks.append(
                    f"The best {name} ({self.chosen[name]}) lies at the edge of what was tried: try further."
                )
        return remarks

    @property
    def record(self) -> dict[str, Any]:
        """What the run keeps about it."""
        return {
            "space": {name: list(values) for name, values in self.space.items()},
            "folds": self.folds,
            "by": self.by,
            "seed": self.seed,
            "metric": self.metric.name,
            "trials": len(self.trials),
            "chosen": self.chosen,
            "table": TABLE_FILE,
        }

    def rows(self) -> list[dict[str, Any]]:
        """One row per trial: settings, score with interval, and the paired difference to the chosen trial."""
        rows = []
        for number, trial in enumerate(self.trials):
            score = next(iter(trial.card.metrics.values()))
            difference, low, high = self._difference(number)
            rows.append(
                {
                    "trial": number + 1,
                    "chosen": number == self.best,
                    **trial.settings,
                    self.metric.name: score.value,
                    "low": score.low,
                    "high": score.high,
                    "difference": difference,
                    "difference_low": low,
                    "difference_high": high,
                    "seconds": round(trial.seconds, 3),
                }
            )
        return rows

    def write(self, folder: Path) -> None:
        """Writes the table, and the record with the same rows."""
        rows = self.rows()
        pl.DataFrame(rows, infer_schema_length=None, strict=False).write_csv(folder / TABLE_FILE)
        about = "difference: trial minus chosen, paired by unit, with its 95 % interval; scores are of held-out items"
        write_json(folder / RECORD_FILE, {**self.record, "about": about, "rows": rows})

    def _difference(self, number: int) -> tuple[float, float | None, float | None]:
        """How a trial differs from the chosen one on the same units; no interval for metrics without pseudo-values."""
        pair = (self.trials[number], self.trials[self.best])
        value = pair[0].value - pair[1].value
        if number == self.best:
            return value, None, None
        if any(self.metric.name not in one.card.pseudo for one in pair):
            return value, None, None
        pseudo = [one.card.pseudo[self.metric.name] for one in pair]
        compared = compare(
            np.array([one.value for one in pair]), np.stack(pseudo), higher_is_better=self.metric.higher_is_better
        ).differences[0]
        return value, compared.interval.low, compared.interval.high
