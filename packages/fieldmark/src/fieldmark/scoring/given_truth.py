"""The truth as people hand it over, and what a task asks of it: the one place where that is decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from fieldmark.benchmarks.declarations import Metric, Task
from fieldmark.errors import InputError
from fieldmark.questions.answer import LooseTruth
from fieldmark.questions.truth import SIMULATED, Truth
from fieldmark.storage.release import WORLD_FILE
from fieldmark.tables.given_tables import LINE, GivenTable, read_given
from fieldmark.tables.labels import UNKNOWN_NAME
from fieldmark.tables.schema import missing_column


def read_truth(task: Task, truth: Any, classes: Any = None, media: Any = None) -> LooseTruth:
    """Reads the truth from files, frames or mappings of columns, as it is scored.

    Args:
        task: What is asked.
        truth: The table of truth.
        classes: What is known about the labels; None takes those of the truth.
        media: For soundscapes: the recordings.

    Raises:
        InputError: When something is wrong with a table: it contradicts itself, or lacks what the deciding metric
            needs, for instance.
    """
    loose = task.answer.given(task.items, truth, classes, media, task.by)
    known, table = loose.truth, loose.truth.given
    if table is not None and task.given == "checked":
        _refuse_lacking(task, table)
        if len(known.items) < len(table.frame):
            _refuse_contradictions(task, table)
    if task.units_within and task.units_within in known.groups.columns:
        known = known.with_units_within(task.units_within)
    if table is not None and task.given == "checked" and task.unit_is_label and "unit" in table:
        _refuse_mixed_units(task, table, known)
    # From here on only the names of the columns matter, not what stands in them.
    kept = None if table is None else replace(table, frame=table.frame.clear())
    simulated = True if _is_simulated(table, truth, classes, media) else None
    return loose._replace(truth=replace(known, given=kept, simulated=simulated))


def _is_simulated(table: GivenTable | None, truth: Any, classes: Any, media: Any) -> bool:
    """Whether a truth is marked as that of a world: in a column of one of its tables, or by a file beside it."""
    if isinstance(truth, (str, Path)) and (Path(truth).parent / WORLD_FILE).is_file():
        return True
    tables = [] if table is None else [table]
    tables += [read_given(one, "classes or media", ()) for one in (classes, media) if one is not None]
    return any(one.parsed(SIMULATED, bool).frame[SIMULATED].any() for one in tables if SIMULATED in one)


def measurable(task: Task, truth: Truth) -> tuple[tuple[Metric, ...], list[str]]:
    """The metrics for which a truth says enough, and a sentence for each that is left off."""
    if truth.given is None or task.given != "checked":
        return task.metrics, []
    lacking = {metric.name: [name for name in metric.needs if name not in truth.given] for metric in task.metrics}
    said = [f"{metric} is left off: the truth has no column {names[0]!r}" for metric, names in lacking.items() if names]
    return tuple(metric for metric in task.metrics if not lacking[metric.name]), said


def _refuse_lacking(task: Task, table: GivenTable) -> None:
    """Refuses a table without a column that a metric needs, unless the metric may be left off and does not decide."""
    columns = [name for name in table.frame.columns if name not in (LINE, "item_id")]
    for metric in task.metrics:
        if metric.optional and metric is not task.deciding:
            continue
        for name in metric.needs:
            if name not in columns:
                lacking = missing_column(table.where, name, columns)
                needed = f"{lacking.expected}, which {metric.name} needs"
                raise InputError(table.where, line=1, found=lacking.found, expected=needed, hint=lacking.hint)


def _refuse_contradictions(task: Task, table: GivenTable) -> None:
    """Refuses rows of one id that say different things about it."""
    frame = table.frame
    for column in dict.fromkeys(name for name in ("unit", "split", *task.by) if name in frame.columns):
        _refuse_several(frame, table, ["item_id"], column, "the id")
    if frame["label"].has_nulls():
        named = frame.with_columns(label=pl.col("label").fill_null(""), named=pl.col("label").is_not_null())
        mixed = named.filter(pl.col("named").n_unique().over("item_id") > 1)
        if len(mixed):
            one = mixed.filter(pl.col("item_id") == mixed["item_id"][0])
            blank, other = (one.filter(pl.col("named") == wanted).row(0, named=True) for wanted in (False, True))
            found = f"no label for the id {other['id']!r} beside the label {other['label']!r} in line {other[LINE]}"
            raise InputError(table.where, line=blank[LINE], found=found, expected="a blank label for what has none")


def _refuse_mixed_units(task: Task, table: GivenTable, truth: Truth) -> None:
    """Refuses a unit with two labels, and a known label with two units."""
    units = pl.DataFrame({"item_id": list(truth.items), "apart": list(truth.units)})
    frame = table.frame.select("item_id", "id", "label", "unit", LINE)
    frame = frame.join(units, on="item_id", how="left", maintain_order="left")
    _refuse_several(frame, table, ["apart"], "label", "the unit")
    inside = truth.groups.select(task.units_within or []).with_columns(item_id=pl.Series(list(truth.items)))
    known = frame.filter(pl.col("label") != UNKNOWN_NAME)
    within = known.join(inside, on="item_id", how="left", maintain_order="left")
    _refuse_several(within, table, ["label", *inside.drop("item_id").columns], "unit", "the label")


def _refuse_several(frame: pl.DataFrame, table: GivenTable, keys: Sequence[str], column: str, what: str) -> None:
    """Refuses a table in which what the keys name has two values in a column, naming both lines."""
    frame = frame.select(list(dict.fromkeys((*keys, column, "id", LINE))))
    first = frame.unique(list(keys), keep="first", maintain_order=True).select(
        *keys, pl.col(column).alias("_first"), pl.col(LINE).alias("_first_line")
    )
    beside = frame.join(first, on=list(keys), how="left", maintain_order="left", nulls_equal=True)
    other = beside.filter(pl.col(column).ne_missing(pl.col("_first")))
    if other.is_empty():
        return
    row = other.row(0, named=True)
    name = row["id"] if keys[0] == "item_id" else row[keys[0]]
    value, before = (f"no {column}" if one is None else f"the {column} {one!r}" for one in (row[column], row["_first"]))
    found = f"{value} for {what} {name!r}, which has {before} in line {row['_first_line']}"
    raise InputError(table.where, line=row[LINE], found=found, expected=f"one {column} for each {what.split()[1]}")
