"""What a run heard in soundscapes beside what is to be heard there, as matrices of segments and species."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fieldmark.questions.truth import Truth
from fieldmark.reports.section import Context
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.predictions import read_predictions
from fieldmark.tables.labels import Labels


@dataclass(frozen=True)
class Heard:
    """Answers and truth.

    Args:
        score: One row per segment, one column per species; 0 where the run lists nothing.
        truth: The same, whether the species is to be heard.
        threshold: From which score on an answer counts as a detection.
        chosen_on: The part on which the threshold was chosen.
    """

    score: NDArray[np.float32]
    truth: NDArray[np.bool_]
    threshold: float
    chosen_on: str

    @property
    def detected(self) -> NDArray[np.bool_]:
        return np.asarray((self.score >= self.threshold) & (self.score > 0))


def listen(context: Context) -> Heard:
    """The scored part of the first run; the threshold is the one with the best F1 over all pairs on val."""
    score, truth = _matrices(context, context.predictions, context.opened.truth[context.part])
    chosen_on, by = context.part, (score, truth)
    stored = None if context.folder is None else context.folder / "predictions" / "val.parquet"
    if context.part != "val" and stored is not None and stored.exists() and "val" in context.opened.truth:
        chosen_on, by = "val", _stored(context, stored)
    return Heard(score, truth, best_threshold(*by), chosen_on)


def _stored(context: Context, path: Path) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    truth = context.opened.truth["val"]
    return _matrices(context, read_predictions(path).select(truth.items), truth)


def _matrices(
    context: Context, predictions: LabelScores, truth: Truth
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    held = context.task.run.held(predictions)
    score = np.zeros((len(held.items), len(held.labels)), dtype=np.float32)
    rows, codes, scores = held.pairs()
    score[rows, codes] = scores
    return score, _marked(truth, held.labels)


def _marked(truth: Truth, labels: Labels) -> NDArray[np.bool_]:
    row_of = {item: row for row, item in enumerate(truth.items)}
    marked = np.zeros((len(truth.items), len(labels)), dtype=np.bool_)
    codes = labels.encode(truth.rows["label"])
    rows = np.array([row_of[item] for item in truth.rows["item_id"]], dtype=np.int64)
    marked[rows[codes >= 0], codes[codes >= 0]] = True
    return marked


def best_threshold(score: NDArray[np.float32], truth: NDArray[np.bool_]) -> float:
    """The score from which on detections have the best F1 over all pairs of segment and species.

    >>> best_threshold(np.array([[0.9, 0.2], [0.8, 0.7]]), np.array([[True, False], [True, False]]))
    0.8
    """
    listed = score > 0
    if not listed.any() or not truth.any():
        return 0.5
    order = np.argsort(-score[listed], kind="stable")
    sorted_scores, hits = score[listed][order], np.cumsum(truth[listed][order])
    f1 = 2 * hits / (np.arange(1, len(hits) + 1) + truth.sum())
    # Equal scores are detected together or not at all.
    last = np.append(np.diff(sorted_scores) != 0, True)
    return float(sorted_scores[last][np.argmax(f1[last])])
