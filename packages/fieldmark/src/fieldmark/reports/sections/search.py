"""What a search over settings tried, and how the trials compare with the chosen one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from fieldmark.errors import InputError
from fieldmark.fitting.search_table import RECORD_FILE, TABLE_FILE
from fieldmark.questions.targets import Shape
from fieldmark.reports.charts.estimates import Axis
from fieldmark.reports.markup import render
from fieldmark.reports.section import Context, Section

# Beyond this, a reader looks into the table beside the run.
ROWS_SHOWN = 30


@dataclass(frozen=True)
class TriedSettings:
    """One combination of settings.

    Args:
        settings: The value of each setting that was searched, as it would be typed.
        value, low, high: Its score on the held-out items of all folds, with its interval.
        difference: Its score less that of the chosen trial, by the same items, and the interval of that.
        seconds: How long its fits took.
        chosen: Whether it is the one that was taken.
        reason: Why there is no interval, where there is none.
    """

    settings: tuple[str, ...]
    value: float
    low: float | None
    high: float | None
    difference: float
    difference_low: float | None
    difference_high: float | None
    seconds: float
    chosen: bool
    reason: str = "this metric has no interval here"


class SettingsTried(Section):
    """The trials of `fit --search`, best first."""

    name = "search"
    title = "Settings tried"
    shapes: ClassVar[tuple[Shape, ...]] = ("codes", "pairs", "masks")

    def applies(self, context: Context) -> bool:
        return context.folder is not None and (context.folder / RECORD_FILE).is_file()

    def render(self, context: Context) -> str:
        record = read_record(context)
        metric = next(one for one in context.task.metrics if one.name == record["metric"])
        ordered = trials(record, higher_is_better=metric.higher_is_better)
        shown = ordered[:ROWS_SHOWN]
        return render(
            "sections/search.html.j2",
            context=context,
            record=record,
            names=list(record["space"]),
            metric=metric,
            trials=shown,
            untold=sum(not is_worse(trial, metric.higher_is_better) for trial in ordered if not trial.chosen),
            hidden=len(ordered) - len(shown),
            axis=Axis.around(shown),
            table=TABLE_FILE,
        )


def read_record(context: Context) -> dict[str, Any]:
    """What the first run says about its search."""
    assert context.folder is not None  # asked by `applies`
    path = context.folder / RECORD_FILE
    try:
        record: dict[str, Any] = json.loads(path.read_text())
        record["metric"], record["space"], record["rows"][0]["difference"]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        hint = "Fit the run again, or delete the file to report without it."
        raise InputError(path, found=f"no record of a search ({error})", expected="what fit wrote", hint=hint) from None
    return record


def trials(record: dict[str, Any], *, higher_is_better: bool) -> list[TriedSettings]:
    """The trials of a record, the chosen one first, then by score."""
    rows = [
        TriedSettings(
            settings=tuple(str(row[name]) for name in record["space"]),
            value=row[record["metric"]],
            chosen=row["chosen"],
            **{name: row[name] for name in ("low", "high", "seconds")},
            **{name: row[name] for name in ("difference", "difference_low", "difference_high")},
        )
        for row in record["rows"]
    ]
    return sorted(rows, key=lambda trial: (not trial.chosen, -trial.value if higher_is_better else trial.value))


def is_worse(trial: TriedSettings, higher_is_better: bool) -> bool:
    """Whether a trial is told apart from the chosen one: its paired interval lies on the worse side."""
    if trial.difference_low is None or trial.difference_high is None:
        return False
    return trial.difference_high < 0 if higher_is_better else trial.difference_low > 0


SECTION = SettingsTried()
