"""Predictions stored as Parquet: a score of every label for every item, beside the run file that says the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from fieldmark_tests.oracles.drawing import (
    classes_table,
    draw_grid_score,
    draw_items,
    draw_labels,
    draw_truth,
    truth_table,
)
from fieldmark_tests.oracles.lists import PLACES, PLANTS
from fieldmark_tests.oracles.photos import FORMS
from fieldmark_tests.oracles.tables import UNKNOWN, Case, Row, Table


@dataclass(frozen=True)
class Stored:
    """Dense predictions.

    Args:
        items: The ids of the items.
        labels: The labels in the order of their columns.
        scores: One row per item.
        unknown: How strange each item looks, where that is asked.
        answers: The column of the first answer of each item, where a rule gave it.
    """

    items: Sequence[str]
    labels: Sequence[str]
    scores: Sequence[Sequence[float]]
    unknown: Sequence[float] | None = None
    answers: Sequence[int] | None = None

    def write(self, path: Path, *, double: bool = False) -> Path:
        """Writes them as `fieldmark` stores predictions, in single or in double precision."""
        number = pa.float64() if double else pa.float32()
        flat = pa.array([score for row in self.scores for score in row], type=number)
        columns = {
            "item_id": pa.array(self.items, type=pa.string()),
            "scores": pa.FixedSizeListArray.from_arrays(flat, len(self.labels)),
        }
        if self.unknown is not None:
            columns["unknown"] = pa.array(self.unknown, type=number)
        if self.answers is not None:
            columns["answer"] = pa.array(self.answers, type=pa.int32())
        header = json.dumps({"labels": list(self.labels), "scale": "score"})
        pq.write_table(pa.table(columns).replace_schema_metadata({"fieldmark": header}), path)
        return path

    def ranked(self, row: int) -> list[str]:
        """The labels of an item by falling score, equal ones in the order of the labels, a given answer first."""
        places = sorted(range(len(self.labels)), key=lambda place: (-self.scores[row][place], place))
        if self.answers is not None:
            places.sort(key=lambda place: place != self.answers[row])  # type: ignore[index]
        return [self.labels[place] for place in places]


def draw_stored(benchmark: str, rng: Random) -> tuple[Stored, Case]:
    """Stored predictions, and a case whose run file says the same."""
    form = FORMS.get(benchmark)
    open_set = form is not None and form.unknown
    classes = draw_labels(rng, rng.choice((3, 8, 40)))
    items = draw_items(rng, rng.randint(5, 20))
    true = draw_truth(rng, items, classes, unknown=open_set)
    labels = [*classes, UNKNOWN] if open_set and rng.random() < 0.7 else classes
    steps, help_given = rng.choice((4, 64, 1024)), rng.choice((0.0, 0.5, 1.0))
    scores = [[draw_grid_score(rng, steps) + help_given * (label == name) for name in labels] for label in true]
    if benchmark == "snakeclef-2020":
        scores = [[(score + 1 / 1024) / 4 for score in row] for row in scores]
    stored = Stored(
        items,
        labels,
        scores,
        [draw_grid_score(rng, steps) for _ in items] if form and "unknown_score" in form.columns else None,
        [rng.randrange(len(labels)) for _ in items] if form and rng.random() < 0.3 else None,
    )
    flag = form.flag if form else ""
    case = Case(benchmark, run_table(benchmark, stored), truth_table(rng, items, true), classes_table(rng, classes))
    if flag:
        case = Case(benchmark, case.run, case.truth, classes_table(rng, classes, flag=flag))
    return stored, case


def run_table(benchmark: str, stored: Stored) -> Table:
    """The run file that says what the predictions say, with every label."""
    if benchmark == "snakeclef-2020":
        rows = [(item, *map(repr, row)) for item, row in zip(stored.items, stored.scores, strict=True)]
        return Table(("hashed_id", *stored.labels), tuple(rows))
    if benchmark in FORMS:
        form = FORMS[benchmark]
        ranked = [(item, form.separator.join(stored.ranked(row))) for row, item in enumerate(stored.items)]
        if benchmark == "fungiclef-2023":
            ranked = [(item, listed.split()[0]) for item, listed in ranked]
        if stored.unknown is None:
            return Table(form.columns, tuple(ranked))
        pairs = zip(ranked, stored.unknown, strict=True)
        return Table(form.columns, tuple((*fields, repr(score)) for fields, score in pairs))
    columns = PLANTS if benchmark == "plantclef-2020" else PLACES
    long: list[Row] = []
    for row, item in enumerate(stored.items):
        score_of = dict(zip(stored.labels, stored.scores[row], strict=True))
        fields = [(item, name, repr(score_of[name]), str(n)) for n, name in enumerate(stored.ranked(row), 1)]
        long += [line[: len(columns)] for line in fields]
    return Table(columns, tuple(long), ";")
