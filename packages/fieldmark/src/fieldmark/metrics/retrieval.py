"""Mean average precision of sound recordings cut into segments: cmAP over classes, rmAP over segments.

For a query with documents ranked by falling score, AP = sum over ranks k of P(k) rel(k) / (number of relevant ones),
with P(k) the share of relevant documents among the first k. Relevant documents that a run does not list count in the
denominator, so they are misses. For cmAP a query is a class and its documents are segments; for rmAP a query is a
segment and its documents are classes.

Equal scores leave the order open. With N documents (R of them relevant) before a group of n equal ones (r relevant),
the group adds to the sum, by convention:

* "optimistic": sum_{k=1..r} (R + k) / (N + k), relevant ones first, as the organizers sort.
* "expected": the mean over all orders of the group. Rank j of the group is relevant with probability r / n and then has
  (j - 1)(r - 1) / (n - 1) relevant ones before it on average: r/n sum_{j=1..n} (R + 1 + (j-1)(r-1)/(n-1)) / (N + j).
* "grouped": r (R + r) / (N + n), a threshold that admits the whole group, as scikit-learn has it.

All three are closed forms in differences of harmonic numbers, so that leaving out a recording needs only counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldmark.metrics.checks import refuse_nan
from fieldmark.metrics.classification import Codes, Mask, Values, mean_without_each_unit

Scores = NDArray[Any]
Counts = NDArray[np.int64]
Ties = Literal["optimistic", "expected", "grouped"]

# Cells of the tables (score levels x recordings) that are filled at a time.
TABLE_CELLS = 2_000_000
# Columns of a dense matrix that are turned around at a time.
_COLUMNS = 32


def cmap(
    segment: Codes, cls: Codes, score: Scores, true_segment: Codes, true_cls: Codes, *, ties: Ties = "optimistic"
) -> float:
    """Class-wise mean average precision: the mean over classes that occur in the truth.

    A class that no row names has AP 0; rows of classes outside the truth are ignored. NaN for an empty truth.

    Args:
        segment: The segment that each row of the run is about.
        cls: The class that the row names; each pair once.
        score: Its score, higher is better.
        true_segment: The segment of each true pair; a pair may be repeated.
        true_cls: Its class.
        ties: How equal scores are ordered.

    >>> run = np.array([0, 1, 2]), np.array([0, 0, 0]), np.array([0.9, 0.9, 0.1])
    >>> truth = np.array([1, 2]), np.array([0, 0])
    >>> [round(cmap(*run, *truth, ties=ties), 4) for ties in ("optimistic", "expected", "grouped")]
    [0.8333, 0.7083, 0.5833]
    """
    _, precision = _average_precisions(cls, segment, score, true_cls, true_segment, ties)
    return float(precision.mean()) if len(precision) else float("nan")


def cmap_without_each_unit(
    segment: Codes,
    cls: Codes,
    score: Scores,
    true_segment: Codes,
    true_cls: Codes,
    unit: Codes,
    *,
    ties: Ties = "optimistic",
) -> Values:
    """The cmAP with each unit (recording) left out in turn: its rows and its truth, and classes that only it has.

    `unit` holds the recording of each *segment*. NaN where no class is left.
    """
    refuse_nan(score)
    truth = _by_query(true_cls, true_segment)
    order = np.argsort(cls, kind="stable")
    sorted_cls = cls[order]
    starts, ends = (np.searchsorted(sorted_cls, truth.query, side) for side in ("left", "right"))

    def columns() -> Iterator[_Column]:
        for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
            rows, relevant = order[start:end], truth.documents(number)
            yield _Column(score[rows], segment[rows], np.isin(segment[rows], relevant), relevant)

    return _mean_without_each_unit(columns(), unit, ties)


def rmap(
    segment: Codes, cls: Codes, score: Scores, true_segment: Codes, true_cls: Codes, *, ties: Ties = "optimistic"
) -> float:
    """Segment-wise mean average precision: the mean over segments with at least one true class.

    Rows about other segments are ignored: false alarms in silence cost nothing here. Arguments as in `cmap`.

    >>> run = np.array([0, 0, 1]), np.array([4, 5, 4]), np.array([0.9, 0.5, 0.9])
    >>> rmap(*run, np.array([0]), np.array([5]))
    0.5
    """
    _, precision = _average_precisions(segment, cls, score, true_segment, true_cls, ties)
    return float(precision.mean()) if len(precision) else float("nan")


def rmap_without_each_unit(
    segment: Codes,
    cls: Codes,
    score: Scores,
    true_segment: Codes,
    true_cls: Codes,
    unit: Codes,
    *,
    ties: Ties = "optimistic",
) -> Values:
    """The rmAP with each unit (recording) left out in turn; `unit` holds the recording of each *segment*."""
    segments, precision = _average_precisions(segment, cls, score, true_segment, true_cls, ties)
    return mean_without_each_unit(precision, unit[segments], n_units=int(unit.max()) + 1)


def cmap_dense(score: Scores, true_segment: Codes, true_cls: Codes, *, ties: Ties = "optimistic") -> float:
    """`cmap` of a matrix with one row per segment and one column per class, in which every pair is listed.

    >>> score = np.array([[0.9], [0.9], [0.1]])
    >>> round(cmap_dense(score, np.array([1, 2]), np.array([0, 0]), ties="expected"), 4)
    0.7083
    """
    harmonic = _harmonic_numbers(len(score))
    precisions = [_of_column(column, ties, harmonic) for column in _dense_columns(score, true_segment, true_cls)]
    return float(np.mean(precisions)) if precisions else float("nan")


def cmap_dense_without_each_unit(
    score: Scores, true_segment: Codes, true_cls: Codes, unit: Codes, *, ties: Ties = "optimistic"
) -> Values:
    """`cmap_dense` with each unit (recording) left out in turn; `unit` holds the recording of each row."""
    return _mean_without_each_unit(_dense_columns(score, true_segment, true_cls), unit, ties)


def padded_cmap(
    segment: Codes,
    cls: Codes,
    score: Scores,
    true_segment: Codes,
    true_cls: Codes,
    *,
    n_classes: int,
    n_segments: int,
    padding: int = 5,
) -> float:
    """Class-wise mean average precision after `padding` segments, true and scored 1, were added to every class.

    All classes of the benchmark are averaged: one that the truth lacks has AP 1 unless its scores reach 1. Pairs that
    are not listed have the score 0; equal scores stand or fall together. BirdCLEF 2023 is scored so, with 5.

    `n_classes` and `n_segments` say how many there are, listed or not; the other arguments are those of `cmap`.

    >>> run = np.array([0, 1]), np.array([0, 0]), np.array([0.9, 0.2])
    >>> round(padded_cmap(*run, np.array([1]), np.array([0]), n_classes=2, n_segments=2), 4)
    0.9881
    """
    refuse_nan(score)
    harmonic = _harmonic_numbers(n_segments + padding)
    columns = _padded_columns((segment, cls, score), (true_segment, true_cls), n_classes, n_segments, padding)
    return float(np.mean([_of_column(column, "grouped", harmonic) for column in columns]))


def padded_cmap_without_each_unit(
    segment: Codes,
    cls: Codes,
    score: Scores,
    true_segment: Codes,
    true_cls: Codes,
    unit: Codes,
    *,
    n_classes: int,
    n_segments: int,
    padding: int = 5,
) -> Values:
    """`padded_cmap` with each unit (recording) left out in turn; what was added always stays."""
    refuse_nan(score)
    columns = _padded_columns((segment, cls, score), (true_segment, true_cls), n_classes, n_segments, padding)
    padded = np.append(unit, np.full(padding, unit.max() + 1, dtype=unit.dtype))
    return _mean_without_each_unit(columns, padded, "grouped")[:-1]


def _padded_columns(
    run: tuple[Codes, Codes, Scores], true: tuple[Codes, Codes], n_classes: int, n_segments: int, padding: int
) -> Iterator[_Column]:
    """Every class with all its segments, listed or not, and those that are added."""
    segment, cls, score = run
    order = np.argsort(cls, kind="stable")
    bounds = np.searchsorted(cls[order], np.arange(n_classes + 1))
    true_order = np.argsort(true[1], kind="stable")
    true_bounds = np.searchsorted(true[1][true_order], np.arange(n_classes + 1))
    every, added = np.arange(n_segments + padding, dtype=np.int32), np.ones(padding)
    for one in range(n_classes):
        rows = order[bounds[one] : bounds[one + 1]]
        scores = np.zeros(n_segments)
        scores[segment[rows]] = score[rows]
        is_relevant = np.zeros(n_segments + padding, dtype=bool)
        is_relevant[true[0][true_order[true_bounds[one] : true_bounds[one + 1]]]] = True
        is_relevant[n_segments:] = True
        yield _Column(np.append(scores, added), every, is_relevant, np.flatnonzero(is_relevant).astype(np.int32))


class _Truth(NamedTuple):
    """The relevant documents of each query, sorted and without repetition."""

    query: Codes
    starts: Counts
    sorted_documents: Codes

    def documents(self, number: int) -> Codes:
        return self.sorted_documents[self.starts[number] : self.starts[number + 1]]


class _Column(NamedTuple):
    """The listed segments of a class with their scores and whether the class is there, and all where it is."""

    score: Scores
    segment: Codes
    is_relevant: Mask
    relevant: Codes


def _by_query(true_query: Codes, true_document: Codes) -> _Truth:
    width = int(true_document.max(initial=-1)) + 1
    query, document = np.divmod(np.unique(true_query.astype(np.int64) * width + true_document), max(width, 1))
    queries, starts = np.unique(query, return_index=True)
    return _Truth(queries.astype(np.int32), np.append(starts, len(query)), document.astype(np.int32))


def _average_precisions(
    query: Codes, document: Codes, score: Scores, true_query: Codes, true_document: Codes, ties: Ties
) -> tuple[Codes, Values]:
    """The queries of the truth and the average precision of each, all at once."""
    refuse_nan(score)
    truth = _by_query(true_query, true_document)
    has_truth = np.isin(query, truth.query)
    number, document, score = np.searchsorted(truth.query, query[has_truth]), document[has_truth], score[has_truth]
    n_relevant = np.diff(truth.starts)
    if not len(number):
        return truth.query, np.zeros(len(truth.query))

    width = int(max(document.max(), truth.sorted_documents.max())) + 1
    pair = number * width + document
    if len(np.unique(pair)) < len(pair):
        raise ValueError("a pair of segment and class occurs twice in the run")
    is_relevant = np.isin(pair, np.repeat(np.arange(len(n_relevant)), n_relevant) * width + truth.sorted_documents)

    order = np.lexsort((-score, number))
    number, score, is_relevant = number[order], score[order], is_relevant[order]
    new_query = np.diff(number, prepend=-1) != 0
    starts = np.flatnonzero(new_query | np.append(True, score[1:] != score[:-1]))
    size, relevant = np.diff(starts, append=len(score)), np.add.reduceat(is_relevant, starts, dtype=np.int64)
    so_far = np.concatenate([[0], np.cumsum(is_relevant)])
    first = np.flatnonzero(new_query)[np.cumsum(new_query)[starts] - 1]  # where the query of each group begins
    harmonic = _harmonic_numbers(int(np.bincount(number).max()))
    added = _precision_sum(starts - first, so_far[starts] - so_far[first], size, relevant, ties, harmonic)
    total = np.bincount(number[starts], weights=added, minlength=len(n_relevant))
    return truth.query, total / n_relevant


def _dense_columns(score: Scores, true_segment: Codes, true_cls: Codes) -> Iterator[_Column]:
    """The columns of the classes in the truth, a few at a time so that the matrix is never copied whole."""
    truth = _by_query(true_cls, true_segment)
    every = np.arange(len(score), dtype=np.int32)
    for first in range(0, len(truth.query), _COLUMNS):
        block = np.ascontiguousarray(score[:, truth.query[first : first + _COLUMNS]].T)
        refuse_nan(block)
        for offset, column in enumerate(block):
            relevant = truth.documents(first + offset)
            is_relevant = np.zeros(len(every), dtype=bool)
            is_relevant[relevant] = True
            yield _Column(column, every, is_relevant, relevant)


def _of_column(column: _Column, ties: Ties, harmonic: Values) -> float:
    """The average precision of a class."""
    level, relevant = np.unique(column.score[column.is_relevant], return_counts=True)
    in_order = np.sort(column.score)
    below, up_to = (np.searchsorted(in_order, level, side) for side in ("left", "right"))
    relevant_before = relevant.sum() - np.cumsum(relevant)
    before = len(in_order) - up_to
    added = _precision_sum(before, relevant_before, up_to - below, relevant, ties, harmonic)
    return float(added.sum() / len(column.relevant))


def _mean_without_each_unit(columns: Iterator[_Column], unit: Codes, ties: Ties) -> Values:
    n_units = int(unit.max()) + 1
    total, classes = np.zeros(n_units), np.zeros(n_units, dtype=np.int64)
    harmonic = _harmonic_numbers(len(unit))
    for column in columns:
        own_relevant = np.bincount(unit[column.relevant], minlength=n_units)
        left = len(column.relevant) - own_relevant
        total += _sums_without_each_unit(column, unit, n_units, ties, harmonic) / np.maximum(left, 1)
        classes += left > 0
    return np.asarray(np.divide(total, classes, out=np.full(n_units, np.nan), where=classes > 0))


def _sums_without_each_unit(column: _Column, unit: Codes, n_units: int, ties: Ties, harmonic: Values) -> Values:
    """The sum of precisions of a class without each unit, from how many of its rows stand above and at each level."""
    level, relevant = np.unique(column.score[column.is_relevant], return_counts=True)
    if not len(level):
        return np.zeros(n_units)
    # Between levels 0, 2, 4, ...; at a level 1, 3, 5, ...
    left = np.searchsorted(level, column.score)
    place = 2 * left + (level[np.minimum(left, len(level) - 1)] == column.score)
    unit_of_row = unit[column.segment].astype(np.int64)
    sums = np.empty(n_units)
    width = max(TABLE_CELLS // (2 * len(level) + 1), 1)
    all_rows, all_relevant = np.bincount(place, minlength=2 * len(level) + 1), relevant
    for first in range(0, n_units, width):
        last = min(first + width, n_units)
        here = (unit_of_row >= first) & (unit_of_row < last) if width < n_units else slice(None)
        own, owner, hit = place[here], unit_of_row[here] - first, column.is_relevant[here]
        rows = all_rows[:, None] - _table(own, owner, 2 * len(level) + 1, last - first)
        hits = all_relevant[:, None] - _table(own[hit] // 2, owner[hit], len(level), last - first)
        rows_up_to = np.cumsum(rows, axis=0)
        before = rows_up_to[-1] - rows_up_to[1::2]
        relevant_before = hits.sum(axis=0) - np.cumsum(hits, axis=0)
        sums[first:last] = _precision_sum(before, relevant_before, rows[1::2], hits, ties, harmonic).sum(axis=0)
    return sums


def _table(row: Counts, column: Counts, n_rows: int, n_columns: int) -> Counts:
    table: Counts = np.bincount(row * n_columns + column, minlength=n_rows * n_columns)
    return table.reshape(n_rows, n_columns)


def _precision_sum(
    before: Counts, relevant_before: Counts, size: Counts, relevant: Counts, ties: Ties, harmonic: NDArray[Any]
) -> Values:
    """What groups of equal scores add to the sum of precisions; see the formulas at the top."""
    if ties == "grouped":
        return np.asarray(relevant * (relevant_before + relevant) / np.maximum(before + size, 1))
    if ties == "optimistic":
        spread = (harmonic[before + relevant] - harmonic[before]).astype(np.float64)
        return np.asarray(relevant - (before - relevant_before) * spread)
    if ties != "expected":
        raise ValueError(f"ties={ties!r}, expected 'optimistic', 'expected' or 'grouped'")
    slope = np.where(size > 1, (relevant - 1) / np.maximum(size - 1, 1), 0.0)
    spread = (harmonic[before + size] - harmonic[before]).astype(np.float64)
    shares = slope * size + (relevant_before + 1 - slope * (before + 1)) * spread
    return np.asarray(relevant / np.maximum(size, 1) * shares)


def _harmonic_numbers(n: int) -> NDArray[Any]:
    """H_0 to H_n; extended precision, because differences of them are multiplied by up to n."""
    return np.concatenate([[0], np.cumsum(1 / np.arange(1, n + 1, dtype=np.longdouble))])
