"""How well each score of strangeness tells unknown species from known ones, as a table beside the run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.answers import Answers
from fieldmark.benchmarks import Benchmark
from fieldmark.benchmarks.measures import roc_auc, tnr_at_tpr
from fieldmark.errors import InputError
from fieldmark.files import write_json
from fieldmark.labels import UNKNOWN_NAME, Labels
from fieldmark.methods.base import Fitted, OpenMethod, truth_of
from fieldmark.methods.combining import COMBINED, cross_fitted
from fieldmark.runs.predictions import Predictions
from fieldmark.scoring import Score, measure
from fieldmark.views import Opened, Part, Truth, View

TABLE_FILE, SCORES_FOLDER = "unknown-scores.json", "unknown-scores"
METRICS = (roc_auc(), tnr_at_tpr())
ALL_UNKNOWN = "all unknown species"


@dataclass(frozen=True)
class UnknownTable:
    """Each score by part and by group of unknown species.

    Args:
        chosen: The score behind the run.
        rule: How it was chosen.
        scores: `{part: {group: {score: {metric: value with interval}}}}`.
        values: `{part: one row per item, one column per score}`; kept out of the JSON.
    """

    chosen: str
    rule: str
    scores: dict[str, dict[str, dict[str, dict[str, Score]]]]
    values: dict[str, pl.DataFrame] = field(default_factory=dict, repr=False, compare=False)

    @property
    def names(self) -> list[str]:
        """The scores that were tried."""
        return list(next(iter(next(iter(self.scores.values())).values())))

    def write(self, folder: Path) -> None:
        """Writes the table, and the scores of each part beside it."""
        write_json(
            folder / TABLE_FILE,
            {"chosen": self.chosen, "rule": self.rule, "scores": _plain(asdict(self)["scores"])},
        )
        for part, values in self.values.items():
            (folder / SCORES_FOLDER).mkdir(exist_ok=True)
            values.write_parquet(folder / SCORES_FOLDER / f"{part}.parquet")

    @classmethod
    def read(cls, folder: Path) -> UnknownTable | None:
        """Reads the table of a run; None where the run has none."""
        path = folder / TABLE_FILE
        if not path.exists():
            return None
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            scores = {
                part: {
                    group: {name: {m: _score(s) for m, s in by.items()} for name, by in table.items()}
                    for group, table in groups.items()
                }
                for part, groups in data["scores"].items()
            }
            values = {file.stem: pl.read_parquet(file) for file in sorted((folder / SCORES_FOLDER).glob("*.parquet"))}
            return cls(data["chosen"], data["rule"], scores, values)
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise InputError(path, found=f"something else ({error})", expected="a table of scores") from error


def unknown_table(
    benchmark: Benchmark, opened: Opened, view: View, fitted: Mapping[str, Fitted]
) -> UnknownTable | None:
    """Measures every score that a method tried, on each part whose truth is there.

    Args:
        benchmark: What was asked.
        opened: The truth.
        view: The parts, with the features the method needs.
        fitted: The method that answered each part.

    Returns:
        The table, or None for a method without such scores, or a benchmark without unknown items.
    """
    parts = {"val": view.val, "test": view.test}
    options: Any = fitted["val"].method
    scores: dict[str, dict[str, dict[str, dict[str, Score]]]] = {}
    tables: dict[str, pl.DataFrame] = {}
    for name, part in parts.items():
        method = fitted[name].method
        if part is None or name not in opened.truth or not isinstance(method, OpenMethod):
            continue
        if not (opened.truth[name].rows["label"] == UNKNOWN_NAME).any():
            continue
        values = method.unknown_scores(fitted[name].arrays, part)
        if name == "val" and options.choose == "val-unknowns":
            values |= _out_of_fold(values, part)
        tables[name] = pl.DataFrame({"item_id": part.item_ids, **values})
        scores[name] = by_group(benchmark, values, part.item_ids, opened.truth[name], view.labels)
    if not scores:
        return None
    rule = f"highest ROC-AUC on {options.choose}" if options.score == "all" else "named beforehand"
    return UnknownTable(options.chosen, rule, scores, tables)


def by_group(
    benchmark: Benchmark,
    values: Mapping[str, NDArray[np.float32]],
    items: tuple[str, ...],
    truth: Truth,
    labels: Labels,
) -> dict[str, dict[str, dict[str, Score]]]:
    """The metrics of each score, for all unknown species and for each group of them."""
    asked = replace(benchmark, task=replace(benchmark.task, metrics=METRICS))
    everything = np.ones(len(truth.items), dtype=bool)
    groups = {ALL_UNKNOWN: everything}
    if "unknown_species" in truth.groups.columns:
        column = truth.groups["unknown_species"]
        groups |= {name: column.list.contains(name).to_numpy() for name in sorted(column.explode().unique())}
    found: dict[str, dict[str, dict[str, Score]]] = {}
    nothing = np.zeros((len(items), len(labels) + 1), dtype=np.float32)
    extended = Labels((*labels.names, UNKNOWN_NAME))
    for group, inside in groups.items():
        for name, strangeness in values.items():
            predictions = Predictions(items, extended, nothing, "score", unknown=strangeness)
            answers = Answers(predictions, truth.take(inside), labels, pl.DataFrame(), 1)
            found.setdefault(group, {})[name] = measure(asked, answers)[1]
    return found


def _out_of_fold(values: Mapping[str, NDArray[np.float32]], val: Part) -> dict[str, NDArray[np.float32]]:
    """The combined score on the very items it was fitted to would flatter it: here by folds, as it was judged."""
    if COMBINED not in values:
        return {}
    single = {name: score.astype(np.float64) for name, score in values.items() if name != COMBINED}
    unit = np.unique(val.items["observation_id"].to_numpy(), return_inverse=True)[1]
    combined = cross_fitted(single, truth_of(val) < 0, unit)
    return {} if combined is None else {COMBINED: combined.astype(np.float32)}


def _score(data: Mapping[str, Any]) -> Score:
    return Score(**{**data, "value": float("nan") if data["value"] is None else data["value"]})


def _plain(data: Any) -> Any:
    """The same with None in place of NaN, as JSON wants it."""
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items()}
    return None if isinstance(data, float) and np.isnan(data) else data
