"""The mean of several predictions of the same items: of probabilities, of logits, or of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from fieldmark.errors import MisuseError
from fieldmark.runs.best_labels import BLOCK_CELLS, MOST_LISTED, best_labels
from fieldmark.runs.label_scores import LabelScores, Scale, log_softmax
from fieldmark.tables.labels import UNKNOWN

Mean = Literal["probabilities", "logits", "ranks"]
Floats = NDArray[np.float64]
# Probabilities of exactly 0 and 1 have no logit.
SMALLEST, LARGEST = 1e-30, 1 - 1e-8
# A run file rounds: probabilities of an item may add up to a little more than one.
ROUNDING = 1e-2


def mean_predictions(
    members: Sequence[LabelScores], weights: Sequence[float] | Floats, *, mean: Mean, several: bool
) -> LabelScores:
    """One prediction from several of the same items.

    Args:
        members: The predictions, dense or listed. A label that a list does not name has the probability 0; for the mean
            of logits it counts as much as the last of the list.
        weights: How much each counts; only their ratios matter.
        mean: Of what: probabilities, logits (of log-probabilities where one label holds, of log-odds where several
            may), or ranks of the labels within each item (1 for the best, less for each rank below).
        several: Whether several labels may hold for an item.

    Returns:
        Log-probabilities where one label holds, scores from 0 to 1 where several may, and for ranks. With more than
        1,000 labels only the best are listed of each item.

    Raises:
        MisuseError: For predictions of other items or labels, and for scores that only rank where not ranks are asked.
    """
    shares = np.asarray(weights, dtype=np.float64)
    if len(shares) != len(members) or (shares < 0).any() or not shares.sum() > 0:
        raise MisuseError(f"{len(members)} members need as many weights of at least 0, and one above; got {weights}.")
    shares = shares / shares.sum()
    same = _aligned(members)
    labels, items = same[0].labels, same[0].items
    unknown = any(_scores_unknown(one) for one in same)
    blocks = _combined(same, shares, mean, several=several, unknown=unknown)
    scale: Scale = "score" if several or mean == "ranks" else "log_probability"
    kind = np.result_type(*(one.scores.dtype for one in same))
    if len(labels) > MOST_LISTED and not unknown:
        return best_labels(items, labels, scale, (block.astype(kind) for block in blocks), MOST_LISTED)
    columns = np.concatenate([np.zeros((0, len(labels) + unknown), dtype=kind), *(b.astype(kind) for b in blocks)])
    return LabelScores(
        items, labels, columns[:, : len(labels)], scale, unknown_label=columns[:, -1] if unknown else None
    )


def member_probabilities(predictions: LabelScores, *, several: bool, unknown: bool = False) -> Floats:
    """The probability of every label for every item, and of unknown in a last column where that is asked for.

    Raises:
        MisuseError: For scores that only rank.
    """
    made = np.zeros((len(predictions.items), len(predictions.labels) + unknown))
    if predictions.dense:
        columns = predictions.columns if unknown else predictions.scores
        own = columns.astype(np.float64) if predictions.scale == "score" else np.exp(log_softmax(columns * 1.0))
        made[:, : own.shape[1]] = own
    else:
        row, code, scores = predictions.pairs()
        listed = scores.astype(np.float64)
        if predictions.scale == "log_probability":
            listed = np.exp(np.minimum(listed, 0.0))
        elif predictions.scale == "logit":
            listed = _softmax_of_lists(row, listed, len(made))
        kept = (code != UNKNOWN) | unknown
        made[row[kept], code[kept]] = listed[kept]  # -1, unknown, is the last column
    if predictions.scale == "score":
        _refuse_no_probabilities(made, several=several)
    return made


def _aligned(members: Sequence[LabelScores]) -> list[LabelScores]:
    first = members[0]
    for one in members[1:]:
        if set(one.items) != set(first.items):
            strange = min(set(one.items) ^ set(first.items))
            raise MisuseError(f"The members of an ensemble answer other items: only one answers {strange!r}.")
        if set(one.labels.names) != set(first.labels.names):
            strange = min(set(one.labels.names) ^ set(first.labels.names))
            raise MisuseError(f"The members of an ensemble know other labels: only one knows {strange!r}.")
    return [one.coded_by(first.labels).select(first.items) for one in members]


def _scores_unknown(predictions: LabelScores) -> bool:
    return predictions.unknown_label is not None or (predictions.codes is not None and UNKNOWN in predictions.codes)


def _combined(
    members: Sequence[LabelScores], shares: Floats, mean: Mean, *, several: bool, unknown: bool
) -> Iterator[Floats]:
    """The scores of all labels, a block of items at a time."""
    size = max(BLOCK_CELLS // max(len(members[0].labels), 1), 1)
    for block in zip(*(one.blocks(size) for one in members), strict=True):
        if mean == "ranks":
            from scipy.stats import rankdata  # takes long to import

            width = len(block[0].labels) + unknown
            ranks = (rankdata(-_raw(one, unknown), axis=1) for one in block)
            yield sum((w * (1 - (rank - 1) / width) for w, rank in zip(shares, ranks, strict=True)), np.zeros(()))
            continue
        if mean == "logits" and not several:
            logs = (_logs(one, unknown) for one in block)
            yield log_softmax(sum((w * log for w, log in zip(shares, logs, strict=True)), np.zeros(())))
            continue
        chances = (member_probabilities(one, several=several, unknown=unknown) for one in block)
        if mean == "logits":
            odds = (logit(np.clip(one, SMALLEST, LARGEST)) for one in chances)
            yield expit(sum((w * one for w, one in zip(shares, odds, strict=True)), np.zeros(())))
            continue
        total = sum((w * one for w, one in zip(shares, chances, strict=True)), np.zeros(()))
        yield total if several else np.log(np.maximum(total, SMALLEST))


def _raw(predictions: LabelScores, unknown: bool) -> Floats:
    """The scores of all labels as they are, the lowest of all where a list does not name one."""
    made = np.full((len(predictions.items), len(predictions.labels) + unknown), -np.inf)
    if predictions.dense:
        made[:, : predictions.columns.shape[1]] = predictions.columns
        return made
    row, code, scores = predictions.pairs()
    made[row, code] = scores
    return made


def _logs(predictions: LabelScores, unknown: bool) -> Floats:
    """Log-probabilities; a label that has none counts as much as the least likely one that has."""
    if predictions.dense and predictions.scale != "score" and _scores_unknown(predictions) == unknown:
        return np.asarray(log_softmax(predictions.columns.astype(np.float64)))
    chances = member_probabilities(predictions, several=False, unknown=unknown)
    lowest = np.where(chances > 0, chances, 1.0).min(axis=1, keepdims=True)
    return np.log(np.where(chances > 0, chances, lowest))


def _softmax_of_lists(row: NDArray[np.int32], scores: Floats, items: int) -> Floats:
    highest = np.full(items, -np.inf)
    np.maximum.at(highest, row, scores)
    shares = np.exp(scores - highest[row])
    return np.asarray(shares / np.bincount(row, weights=shares, minlength=items)[row])


def _refuse_no_probabilities(scores: NDArray[Any], *, several: bool) -> None:
    within = bool((scores >= 0).all() and (scores <= 1).all())
    if not within or (not several and (scores.sum(axis=1) > 1 + ROUNDING).any()):
        raise MisuseError(
            "A member of the ensemble gives scores that only rank labels and are no probabilities: take the mean of "
            "ranks (--mean ranks, or --set mean=ranks)."
        )


__all__ = ["Mean", "mean_predictions", "member_probabilities"]
