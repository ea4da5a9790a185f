"""Reading a run with the labels that it may name: the one place where that is decided."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fieldmark.benchmarks.declarations import Task
from fieldmark.errors import InputError
from fieldmark.labels import UNKNOWN_NAME, Labels
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.lines import RunSource
from fieldmark.runs.predictions import read_predictions

STORED = ".parquet"


def read_run(
    task: Task, path: RunSource, items: Sequence[str], labels: Labels, *, closed: bool, stored: bool = False
) -> tuple[Any, Labels]:
    """Reads a run as it is scored.

    Args:
        task: What is asked.
        path: The run.
        items: What has to be answered.
        labels: The labels there are.
        closed: Whether it may name no others. Where nobody says which classes there are, those of the run count too.
        stored: Whether predictions that Fieldmark stored are accepted in place of the challenge's own format.

    Returns:
        The predictions, and the labels there are.

    Raises:
        InputError: When something is wrong with it.
    """
    if stored and isinstance(path, Path) and path.suffix == STORED and STORED not in task.run.file_types:
        return _read_stored(path, items, labels, unknown=task.unknown), labels
    if not closed:
        labels = Labels.of({*labels.names, *task.run.labels_in(path)} - {UNKNOWN_NAME})
    return task.run.read(path, items, labels, unknown=task.unknown), labels


def _read_stored(path: Path, items: Sequence[str], labels: Labels, *, unknown: bool) -> LabelScores:
    """Predictions from Parquet, checked to answer every item with the labels of the benchmark."""
    predictions = read_predictions(path)
    if not isinstance(predictions, LabelScores):
        raise InputError(path, found="predictions of another kind", expected="scores of labels")
    missing = set(items) - set(predictions.items)
    if missing:
        listed = f"no answer for {len(missing)} of {len(items)} ids ({min(missing)}, ...)"
        raise InputError(path, found=listed, expected="one for each")
    strange = [name for name in predictions.labels.names if name not in labels.code_of]
    if predictions.names_unknown and not unknown:
        strange.append(UNKNOWN_NAME)
    lacking = [name for name in labels.names if name not in predictions.labels.code_of]
    if strange or lacking:
        what = f"the label {strange[0]!r}" if strange else f"no label {lacking[0]!r}"
        raise InputError(path, found=what, expected=f"the {len(labels)} labels of the benchmark")
    return predictions
