"""What a run scored: values, intervals, and what they were computed from."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.titles import metric_is_share, metric_title
from fieldmark.errors import InputError
from fieldmark.notebooks import DrawnPlot, bounds_text, draw_intervals, html_note, html_page, html_table, text_table
from fieldmark.runs.provenance import external_data_in_words
from fieldmark.storage.files import write_json
from fieldmark.storage.parquet import read_frame
from fieldmark.tables.text_columns import NameColumn, column_of

SCORECARD_FILE = "scorecard.json"
# From this difference on, a reader should know where a score comes from.
MUCH_FROM_TIES = 0.02


@dataclass(frozen=True)
class Score:
    """One value with its interval; `reason` says why there is none, or why to be careful with it.

    `rests_on` is the number of units on which it rests, None where that was not counted.
    """

    value: float
    low: float | None
    high: float | None
    interval: str
    reason: str | None = None
    rests_on: float | None = None


@dataclass(frozen=True)
class Scorecard:
    """What a run scored, how sure that is, and what it was computed from.

    Args:
        benchmark: What was scored.
        version: The version of the benchmark.
        split: On which part.
        items: How many answers.
        units: How many independent units are behind them.
        classes: How many classes there are.
        metrics: The values with their intervals, the primary metric first.
        conventions: In words, for each metric and for the intervals.
        remarks: What a reader must know of this run and truth: answers that are missing, metrics left off.
        groups: The same metrics by month, site or whatever the task names, for each value.
        confusion: Counts of true against answered groups of labels (phyla), where the classes name them.
        provenance: Method, what it saw, and whether the data are simulated (None where not known).
        digests: Of what the scores rest on besides the answers (`scoring.digests`); none on cards of before.
        described: Of each metric its title, its unit ("%" for shares) and whether higher is better; none on cards of
            before, whose metrics are looked up among all benchmarks.
        pseudo: One pseudo-value per unit and metric, for comparisons; kept out of the JSON.
        unit_ids: The units behind the pseudo-values.
    """

    benchmark: str
    version: str
    split: str
    items: int
    units: int
    classes: int
    metrics: dict[str, Score]
    conventions: dict[str, str]
    remarks: list[str] = field(default_factory=list)
    groups: dict[str, dict[str, dict[str, Score]]] = field(default_factory=dict)
    confusion: dict[str, Any] | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    digests: dict[str, Any] = field(default_factory=dict)
    described: dict[str, dict[str, Any]] = field(default_factory=dict)
    pseudo: dict[str, NDArray[np.float64]] = field(default_factory=dict, repr=False, compare=False)
    unit_ids: Sequence[str] = field(default=(), repr=False, compare=False)

    @property
    def versioned_benchmark(self) -> str:
        """The benchmark in the version that was scored."""
        return f"{self.benchmark}@{self.version}"

    @property
    def rests_on_ties(self) -> bool:
        """Whether a run owes much of its cmAP to equal scores: the organizers' evaluator puts the right ones first."""
        if "cmap" not in self.metrics or "cmap_expected" not in self.metrics:
            return False
        return self.metrics["cmap"].value - self.metrics["cmap_expected"].value > MUCH_FROM_TIES

    def title(self, metric: str) -> str:
        """What a metric is called on pages."""
        return str(self.described[metric]["title"]) if metric in self.described else metric_title(metric)

    def is_share(self, metric: str) -> bool:
        """Whether a metric is a share, which people read in percent."""
        known = self.described.get(metric)
        return metric_is_share(metric) if known is None else bool(known["unit"] == "%")

    def to_json(self) -> dict[str, Any]:
        """The scorecard as plain data, without the pseudo-values."""
        data = asdict(self)
        del data["pseudo"], data["unit_ids"]
        for added in ("digests", "described", "remarks"):  # a card of before stays as it was
            if not data[added]:
                del data[added]
        by_group = [scores for by_value in data["groups"].values() for scores in by_value.values()]
        for scores in (data["metrics"], *by_group):
            for score in scores.values():
                score["value"] = None if np.isnan(score["value"]) else score["value"]
                for left_out in ("reason", "rests_on"):
                    if score[left_out] is None:
                        del score[left_out]
        return data

    def to_frame(self) -> pl.DataFrame:
        """One row for each metric: its value, the ends of its interval, and how that was made."""
        scores = list(self.metrics.values())
        return pl.DataFrame(
            {
                "metric": list(self.metrics),
                "title": [self.title(name) for name in self.metrics],
                "value": pl.Series([score.value for score in scores], dtype=pl.Float64),
                "low": pl.Series([score.low for score in scores], dtype=pl.Float64),
                "high": pl.Series([score.high for score in scores], dtype=pl.Float64),
                "interval": [score.interval for score in scores],
                "reason": pl.Series([score.reason for score in scores], dtype=pl.String),
            }
        )

    def __str__(self) -> str:
        rows = [
            [self.title(name), *bounds_text(score.value, score.low, score.high, percent=self.is_share(name))]
            for name, score in self.metrics.items()
        ]
        simulated = ", simulated data" if self.provenance.get("simulated") else ""
        size = f"{self.items:,} items, {self.units:,} independent units, {self.classes:,} classes{simulated}"
        told = [f"{', '.join(names)}: {reason}" for reason, names in cautions([self.metrics]).items()]
        if "external_data" in self.provenance:
            told.append(f"external data: {external_data_in_words(self.provenance['external_data'])}")
        table = text_table(["", "score", "95 % interval"], rows)
        title = f"{self.versioned_benchmark}, {self.split}: {size}; shares in percent"
        return "\n".join([title, table, *self.remarks, *told])

    def plot(self) -> DrawnPlot:
        """The metrics that are shares, with their intervals."""
        shares = {name: score for name, score in self.metrics.items() if self.is_share(name)} or self.metrics
        mark = " (simulated data)" if self.provenance.get("simulated") else ""
        bounds = [(score.value, score.low, score.high) for score in shares.values()]
        label = f"{self.split} of {self.benchmark}{mark}, 95 % intervals"
        return draw_intervals([self.title(name) for name in shares], bounds, label=label)

    def _repr_html_(self) -> str:
        rows = [
            [self.title(name), *bounds_text(score.value, score.low, score.high, percent=self.is_share(name))]
            for name, score in self.metrics.items()
        ]
        note = f"{self.items:,} items, {self.units:,} independent units, {self.classes:,} classes; shares in percent"
        table = html_table(["metric", "score", "95 % interval"], rows)
        warnings = [html_note(f"{', '.join(names)}: {reason}") for reason, names in cautions([self.metrics]).items()]
        warnings += [html_note(remark) for remark in self.remarks]
        simulated = bool(self.provenance.get("simulated"))
        return html_page(f"{self.benchmark}, {self.split}", table, html_note(note), *warnings, simulated=simulated)

    def write(self, path: str | Path) -> None:
        """Writes the scorecard as JSON, and its pseudo-values beside it as Parquet."""
        path = Path(path)
        write_json(path, self.to_json())
        pl.DataFrame({"unit": column_of(self.unit_ids), **self.pseudo}).write_parquet(
            path.with_suffix(".units.parquet")
        )

    @classmethod
    def read(cls, path: str | Path) -> Scorecard:
        """Reads a scorecard and its pseudo-values."""
        path = Path(path)
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            units = path.with_suffix(".units.parquet")
            return cls.from_data(data, read_frame(units, units, expected="the values per unit of that scorecard"))
        except FileNotFoundError as error:
            hint = "Make one with `fieldmark fit` or `fieldmark score`."
            raise InputError(path, found="no such file", expected="a scorecard", hint=hint) from error
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            hint = "Score the run again."
            raise InputError(path, found=f"something else ({error})", expected="a scorecard", hint=hint) from error

    @classmethod
    def from_data(cls, data: Mapping[str, Any], units: pl.DataFrame) -> Scorecard:
        """A scorecard from the plain data of `to_json` and the table of its pseudo-values."""
        groups = {
            column: {value: scores_of(scores) for value, scores in by_value.items()}
            for column, by_value in data["groups"].items()
        }
        plain = {**data, "metrics": scores_of(data["metrics"]), "groups": groups}
        pseudo = {name: units[name].to_numpy() for name in units.columns if name != "unit"}
        return cls(**plain, pseudo=pseudo, unit_ids=NameColumn(units["unit"]))


def cautions(cards: Iterable[Mapping[str, Score]]) -> dict[str, list[str]]:
    """Why to be careful with scores, or why they have no interval: each reason with the metrics it is about.

    >>> few = "fewer than 20 units"
    >>> cautions([{"top_1": Score(0.5, 0.4, 0.6, "t"), "mrr": Score(0.5, 0.4, 0.6, "t", few)}])
    {'fewer than 20 units': ['mrr']}
    """
    metrics_of: dict[str, list[str]] = {}
    for scores in cards:
        for name, score in scores.items():
            if score.reason and name not in metrics_of.setdefault(score.reason, []):
                metrics_of[score.reason].append(name)
    return metrics_of


def units_rested_on(scores: Iterable[Score]) -> float:
    """The number of units on which all of some scores rest; without a limit where it was not counted."""
    return min((score.rests_on for score in scores if score.rests_on is not None), default=math.inf)


def scores_of(data: Mapping[str, Any]) -> dict[str, Score]:
    """Scores by metric from plain data; a value that is not a number stands there as null."""
    return {
        name: Score(**{**score, "value": float("nan") if score["value"] is None else score["value"]})
        for name, score in data.items()
    }
