"""The answers of a run, read from its raw scores."""

from __future__ import annotations

import numpy as np

from fieldmark.reports.section import Context


def answers(context: Context) -> list[tuple[str, str, float]]:
    """(true label, first answer, its probability) of each item, from the raw scores."""
    names = context.labels.names
    label_of = dict(context.items.select("item_id", "label").iter_rows())
    rows = []
    for item, scores in zip(context.predictions.items, context.predictions.scores.astype(np.float64), strict=True):
        probabilities = np.exp(scores) / np.exp(scores).sum()
        rows.append((label_of[item], names[int(scores.argmax())], float(probabilities.max())))
    return rows
