"""How well each novelty score separates unknown species from known ones, as a table beside the run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks import Benchmark
from fieldmark.benchmarks.measures import roc_auc, tnr_at_tpr
from fieldmark.errors import InputError
from fieldmark.methods.base import Fitted
from fieldmark.questions.truth import Truth
from fieldmark.runs.label_scores import LabelScores
from fieldmark.scoring import Score, measure
from fieldmark.storage.files import write_json
from fieldmark.storage.parquet import read_frame
from fieldmark.tables.labels import UNKNOWN_NAME, Labels
from fieldmark.views.open_benchmark import Opened
from fieldmark.views.parts import View

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
            values = {file.stem: read_frame(file, file) for file in sorted((folder / SCORES_FOLDER).glob("*.parquet"))}
            return cls(data["chosen"], data["rule"], scores, values)
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise InputError(path, found=f"something else ({error})", expected="a table of scores") from error


def unknown_table(opened: Opened, view: View, fitted: Mapping[str, Fitted]) -> UnknownTable | None:
    """Measures every score that a method tried, on each part whose truth is there.

    Args:
        opened: The benchmark and its truth.
        view: The parts, with the features the method needs.
        fitted: The method that answered each part.

    Returns:
        The table, or None for a method without such scores, or a benchmark without unknown items.
    """
    choice = fitted["val"].method.unknown_choice
    if choice is None:
        return None
    scores: dict[str, dict[str, dict[str, dict[str, Score]]]] = {}
    tables: dict[str, pl.DataFrame] = {}
    for name, part in (("val", view.val), ("test", view.test)):
        if part is None or name not in opened.truth:
            continue
        if not (opened.truth[name].rows["label"] == UNKNOWN_NAME).any():
            continue
        values = fitted[name].unknown_scores(part, on_val=name == "val")
        tables[name] = pl.DataFrame({"item_id": part.item_ids, **values})
        scores[name] = by_group(opened.benchmark, values, part.item_ids, opened.truth[name], view.labels)
    return UnknownTable(*choice, scores, tables) if scores else None


def by_group(
    benchmark: Benchmark,
    values: Mapping[str, NDArray[np.float32]],
    items: tuple[str, ...],
    truth: Truth,
    labels: Labels,
) -> dict[str, dict[str, dict[str, Score]]]:
    """The metrics of each score, for all unknown species and for each group of them."""
    groups = {ALL_UNKNOWN: np.ones(len(truth.items), dtype=bool)}
    if "unknown_species" in truth.groups.columns:
        column = truth.groups["unknown_species"]
        groups |= {name: column.list.contains(name).to_numpy() for name in sorted(column.explode().unique())}
    measured: dict[str, dict[str, dict[str, Score]]] = {}
    nothing = np.zeros((len(items), len(labels)), dtype=np.float32)
    for group, inside in groups.items():
        for name, strangeness in values.items():
            predictions = LabelScores(items, labels, nothing, "score", unknown=strangeness)
            shown = benchmark.task.answer.evaluate(predictions, truth.take(inside), labels, pl.DataFrame(), 1)
            measured.setdefault(group, {})[name] = measure(METRICS, shown)[1]
    return measured


def _score(data: Mapping[str, Any]) -> Score:
    return Score(**{**data, "value": float("nan") if data["value"] is None else data["value"]})


def _plain(data: Any) -> Any:
    """The same with None in place of NaN, as JSON wants it, and without what was not counted."""
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items() if not (key == "rests_on" and value is None)}
    return None if isinstance(data, float) and np.isnan(data) else data
