"""Every class by itself, and its confusions: a table to sort and to take away, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.reports.charts.estimates import Share, share
from fieldmark.reports.charts.heat import SHARE_TITLES, share_step
from fieldmark.reports.markup import as_download, render
from fieldmark.reports.section import UNKNOWN_SPECIES, Context, Section
from fieldmark.tables.labels import UNKNOWN

# Longer tables are only in the file to download; what is left out is said.
MOST_ROWS = 3000
# More classes than this cannot be read in a matrix: those with the most errors are shown.
MOST_CLASSES = 30
OTHERS = "all others"
NAMES_PX, LETTER_PX, LONGEST_NAME = 210, 7, 28
# A matrix is about so wide, and its cells are no smaller and no larger than these.
MATRIX_PX, SMALLEST_CELL_PX, LARGEST_CELL_PX = 480, 22, 48


@dataclass(frozen=True)
class ClassRow:
    """One class.

    Args:
        code: Its code, -1 for unknown.
        label: Its label.
        title: What a reader calls it.
        trained, items, units: How many training items it has, how many were asked about, in how many units.
        precision: Of the answers with this class, how many are right; None where there are none.
        recall: Of its items, how many were answered right; None where there are none.
        f1: The harmonic mean of the two; None where neither answers nor items are there.
        mostly: The class that its items are most often taken for, and how often; empty where they never are.
    """

    code: int
    label: str
    title: str
    trained: int
    items: int
    units: int
    precision: Share | None
    recall: Share | None
    f1: float | None
    mostly: tuple[str, int] | None


@dataclass(frozen=True)
class Matrix:
    """Counts of true and predicted class.

    Args:
        names: The classes, in the order of both axes; the last may stand for all others.
        counts: One row per true class, one column per answered class.
        left_out: How many classes stand under all others.
    """

    names: tuple[str, ...]
    counts: NDArray[np.int64]
    left_out: int


class Classes(Section):
    """A row per class, and the matrix."""

    name = "classes"
    title = "Classes and confusions"

    def applies(self, context: Context) -> bool:
        return len(context.labels) > 1

    def render(self, context: Context) -> str:
        rows = class_rows(context)
        matrix = confusion_matrix(context)
        short = [_short(name) for name in matrix.names]
        return render(
            "sections/classes.html.j2",
            context=context,
            rows=rows[:MOST_ROWS],
            more=max(len(rows) - MOST_ROWS, 0),
            matrix=matrix,
            cells=_cells(matrix),
            steps=SHARE_TITLES,
            cell=cell_px(len(matrix.names)),
            margin=min(NAMES_PX, 16 + LETTER_PX * max(map(len, short))),
            short=short,
            classes_csv=as_download(class_table(rows)),
            confusions_csv=as_download(confusion_table(context)),
        )


def class_rows(context: Context) -> list[ClassRow]:
    """A row for each class that was asked about or answered, and for the unknown where the task has them."""
    truth, answered, correct = context.truth, context.predicted, context.correct
    codes = np.union1d(truth, answered)
    if not context.task.unknown:
        codes = codes[codes != UNKNOWN]
    rows = []
    for code in codes.tolist():
        mine, called = truth == code, answered == code
        precision = share(correct[called], context.unit[called]) if called.any() else None
        recall = share(correct[mine], context.unit[mine]) if mine.any() else None
        label = UNKNOWN_SPECIES if code == UNKNOWN else context.labels.names[code]
        wrong = answered[mine & ~correct]
        rows.append(
            ClassRow(
                code=code,
                label=label,
                title=context.title(label),
                trained=0 if code == UNKNOWN else int(context.train_counts[code]),
                items=int(mine.sum()),
                units=len(np.unique(context.unit[mine])),
                precision=precision,
                recall=recall,
                f1=2 * int((mine & called).sum()) / (int(mine.sum()) + int(called.sum())),
                mostly=_mostly(context, wrong),
            )
        )
    return sorted(rows, key=lambda row: (-row.items, row.title))


def confusion_matrix(context: Context) -> Matrix:
    """The matrix of all classes, related ones side by side, or of those with the most errors where there are many."""
    truth, answered = context.truth, context.predicted
    codes = np.union1d(truth, answered)
    wrong = ~context.correct
    errors = {
        int(code): int((wrong & (truth == code)).sum() + (wrong & (answered == code)).sum()) for code in codes.tolist()
    }
    shown = sorted(errors, key=lambda code: (-errors[code], code))[:MOST_CLASSES]
    shown.sort(key=lambda code: _lineage(context, code))
    place = {code: number for number, code in enumerate(shown)}
    left_out = len(errors) - len(shown)
    size = len(shown) + (left_out > 0)
    counts = np.zeros((size, size), dtype=np.int64)
    rows = [place.get(int(code), len(shown)) for code in truth]
    columns = [place.get(int(code), len(shown)) for code in answered]
    np.add.at(counts, (rows, columns), 1)
    names = tuple(_name(context, code) for code in shown) + ((OTHERS,) if left_out else ())
    return Matrix(names, counts, left_out)


def cell_px(classes: int) -> int:
    """How large a cell is: a few classes fill the page, many are as small as can be read.

    >>> cell_px(9), cell_px(16), cell_px(31)
    (48, 30, 22)
    """
    return min(LARGEST_CELL_PX, max(SMALLEST_CELL_PX, MATRIX_PX // classes))


def class_table(rows: Sequence[ClassRow]) -> pl.DataFrame:
    """The rows as a table to take away."""
    columns: dict[str, list[object]] = {
        "label": [row.label for row in rows],
        "name": [row.title for row in rows],
        "training_items": [row.trained for row in rows],
        "items": [row.items for row in rows],
        "units": [row.units for row in rows],
    }
    for name in ("precision", "recall"):
        shares = [getattr(row, name) for row in rows]
        columns[name] = [None if one is None else one.value for one in shares]
        columns[f"{name}_low"] = [None if one is None else one.low for one in shares]
        columns[f"{name}_high"] = [None if one is None else one.high for one in shares]
    columns["f1"] = [row.f1 for row in rows]
    columns["mostly_taken_for"] = [row.mostly[0] if row.mostly else None for row in rows]
    return pl.DataFrame(columns)


def confusion_table(context: Context) -> pl.DataFrame:
    """Every pair of true and predicted class that occurs, with how often: the whole matrix in long form."""
    pairs, counts = np.unique(np.column_stack([context.truth, context.predicted]), axis=0, return_counts=True)
    names = {code: _label(context, code) for code in np.unique(pairs).tolist()}
    return pl.DataFrame(
        {
            "true": [names[code] for code in pairs[:, 0].tolist()],
            "answered": [names[code] for code in pairs[:, 1].tolist()],
            "items": counts,
        }
    )


def _cells(matrix: Matrix) -> list[tuple[int, int, int, int, str]]:
    """Row, column, heat, count and a sentence for each cell that is not empty."""
    totals = matrix.counts.sum(axis=1)
    cells = []
    for row, column in zip(*np.nonzero(matrix.counts), strict=True):
        count = int(matrix.counts[row, column])
        part = count / int(totals[row])
        said = "correct" if row == column else f"predicted as {matrix.names[column]}"
        said = f"{matrix.names[row]}: {count} of {int(totals[row])} {said} ({part:.0%})"
        cells.append((int(row), int(column), share_step(part) + 1, count, said))
    return cells


def _mostly(context: Context, wrong: NDArray[np.int32]) -> tuple[str, int] | None:
    if not len(wrong):
        return None
    codes, counts = np.unique(wrong, return_counts=True)
    return _name(context, int(codes[counts.argmax()])), int(counts.max())


def _lineage(context: Context, code: int) -> tuple[object, ...]:
    """A class by its ranks from the highest to its name, so that relatives stand side by side; unknown last."""
    if code == UNKNOWN:
        return (1,)
    ranks = context.taxonomy.ranks.values()
    return (0, *(taxa.names[of[code]] if of[code] != UNKNOWN else "" for taxa, of in ranks), code)


def _label(context: Context, code: int) -> str:
    if code != UNKNOWN:
        return context.labels.names[code]
    return UNKNOWN_SPECIES if context.task.unknown else "no answer"


def _name(context: Context, code: int) -> str:
    return context.title(_label(context, code))


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}\N{HORIZONTAL ELLIPSIS}"


SECTION = Classes()
