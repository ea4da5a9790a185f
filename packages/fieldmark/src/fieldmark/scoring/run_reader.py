"""Reading a run with the labels that it may name: the one place where that is decided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fieldmark.benchmarks.declarations import Task
from fieldmark.errors import InputError
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.lines import RunSource
from fieldmark.runs.predictions import read_predictions
from fieldmark.tables.labels import UNKNOWN_NAME, Labels

STORED = ".parquet"
# So many labels of a run and of the truth are shown where they have none in common.
SHOWN = 2


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
    if closed:
        return task.run.read(path, items, labels, unknown=task.unknown), labels
    named = task.run.labels_in(path)
    all_labels = Labels.of({*labels.names, *named} - {UNKNOWN_NAME})
    predictions = task.run.read(path, items, all_labels, unknown=task.unknown)
    refuse_other_labels(task, path, named, labels)
    return predictions, all_labels


def refuse_other_labels(task: Task, where: object, named: Iterable[str], labels: Labels) -> None:
    """Refuses answers that name labels, none of which is known: they would all count as wrong, which nobody can mean.

    Args:
        task: What is asked.
        where: The run, as messages call it.
        named: The labels that it names.
        labels: The labels there are.

    Raises:
        InputError: Shows labels of both.
    """
    own, known = (task.answer.comparable(names) for names in (named, labels.names))
    if own and known and own.isdisjoint(known):
        found = f"labels that are none of the truth's ({', '.join(map(repr, sorted(own)[:SHOWN]))})"
        expected = f"labels such as {' and '.join(map(repr, sorted(known)[:SHOWN]))}"
        hint = (
            "Are they names where the truth has ids, or the other way round? If they are classes of the benchmark that "
            "the truth does not happen to name, list all classes (--classes FILE)."
        )
        raise InputError(where, found=found, expected=expected, hint=hint)


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
