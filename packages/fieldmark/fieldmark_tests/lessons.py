"""What steps learn from in the tests: a few items of val with their labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.questions.targets import LabelTargets, PairTargets, Targets
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.base import Lesson, Step
from fieldmark.views.parts import Part


def lesson(
    val: LabelScores,
    truth: NDArray[np.generic],
    items: pl.DataFrame | None = None,
    *,
    benchmark: str = "",
    taxa: pl.DataFrame | None = None,
) -> Lesson:
    """A lesson about the items of predictions: one code per item, or one row of marks per item."""
    table = items if items is not None and items.width else pl.DataFrame({"item_id": val.items})
    targets: Targets = LabelTargets(np.asarray(truth, dtype=np.int32)) if truth.ndim == 1 else pairs_of(truth)
    task = BENCHMARKS[benchmark or ("folder" if truth.ndim == 1 else "birdclef-2020")].task
    known = pl.DataFrame({"label": val.labels.names}) if taxa is None else taxa
    return Lesson(task, val.labels, known, Part(with_columns(table), targets))


def learned(
    step: Step, val: LabelScores, truth: NDArray[np.generic], items: pl.DataFrame | None = None, **about: object
) -> Step:
    """A step fitted to predictions on val."""
    return step.fit(val, lesson(val, truth, items, **about))  # type: ignore[arg-type]


def pairs_of(marks: NDArray[np.generic]) -> PairTargets:
    """Targets from one row of marks per item; the first label that holds is the foremost."""
    row, code = np.nonzero(marks)
    any_label = marks.astype(bool).any(axis=1)
    foremost = np.where(any_label, marks.astype(bool).argmax(axis=1), -1).astype(np.int32)
    everything = np.ones(len(row), dtype=np.bool_)
    return PairTargets(row.astype(np.int32), code.astype(np.int32), everything, foremost, marks.shape[1])


def with_columns(items: pl.DataFrame) -> pl.DataFrame:
    """The items with the columns that every part has."""
    missing = {
        "observation_id": pl.col("item_id"),
        "media_ids": pl.lit([], pl.List(pl.String)),
        "start_s": pl.lit(None, pl.Float64),
        "end_s": pl.lit(None, pl.Float64),
    }
    return items.with_columns(**{name: value for name, value in missing.items() if name not in items.columns})


def part_of(
    ids: Sequence[str], truth: NDArray[np.generic] | None = None, features: NDArray[np.float32] | None = None
) -> Part:
    """A part without media: ids, labels and features of photos."""
    targets = None if truth is None else LabelTargets(np.asarray(truth, dtype=np.int32))
    made = {} if features is None else {"photo": features}
    return Part(with_columns(pl.DataFrame({"item_id": list(ids)})), targets, features=made)


__all__ = ["learned", "lesson", "pairs_of", "part_of", "with_columns"]
