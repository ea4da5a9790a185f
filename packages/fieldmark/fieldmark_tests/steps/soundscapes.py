"""Scores of segments, in which some species are heard."""

from __future__ import annotations

import datetime

import numpy as np
import polars as pl
from scipy.special import expit

from fieldmark.runs.label_scores import LabelScores
from fieldmark.tables.labels import Labels

LABELS = Labels(("wren", "owl", "crane", "rook"))


SEGMENTS = 24


def soundscapes(recordings: int = 10, *, seed: int = 0) -> tuple[LabelScores, np.ndarray, pl.DataFrame]:
    """Recordings at two sites with birds of their own, who sing for a while once they begin; noisy scores."""
    rng = np.random.default_rng(seed)
    holds, rows = [], []
    for number in range(recordings):
        site = "NORTH" if number % 2 else "SOUTH"
        likes = np.array([0.6, 0.1, 0.3, 0.02] if site == "NORTH" else [0.02, 0.3, 0.1, 0.6])
        sings = rng.random(4) < likes
        for segment in range(SEGMENTS):
            sings = np.where(rng.random(4) < 0.25, rng.random(4) < likes, sings)
            holds.append(sings)
            rows.append((f"r{number}/{5 * segment}", f"r{number}", 5.0 * segment, site, datetime.date(2020, 5, 1)))
    columns = ("item_id", "observation_id", "start_s", "site", "date")
    items = pl.DataFrame(rows, schema=columns, orient="row")
    truth = np.array(holds)
    scores = expit(2.0 * truth - 2.5 + rng.normal(0, 1.2, truth.shape)).astype(np.float32)
    return LabelScores(tuple(items["item_id"]), LABELS, scores, "score"), truth, items


def shuffled(predictions: LabelScores, items: pl.DataFrame) -> tuple[LabelScores, pl.DataFrame]:
    order = np.random.default_rng(4).permutation(len(items))
    return predictions.select([predictions.items[row] for row in order]), items.sample(fraction=1, shuffle=True, seed=1)
