"""Items of which some are unknown."""

from __future__ import annotations

import numpy as np
import polars as pl

from fieldmark.runs.label_scores import LabelScores
from fieldmark.tables.labels import Labels

LABELS, ITEMS = Labels(("a", "b", "c")), pl.DataFrame()


TAXA = pl.DataFrame({"label": list(LABELS.names), "poisonous": [True, False, False]})


def drawn(n: int = 400, share: float = 0.3, seed: int = 0) -> tuple[LabelScores, np.ndarray]:
    """Items of which a share is unknown, with a novelty score that tells something."""
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(n) < share, -1, rng.integers(0, 3, n)).astype(np.int32)
    logits = rng.normal(0, 1, (n, 3)).astype(np.float32)
    logits[np.arange(n)[truth >= 0], truth[truth >= 0]] += 2
    unknown = (rng.normal(0, 1, n) + 1.5 * (truth < 0)).astype(np.float32)
    return LabelScores(tuple(map(str, range(n))), LABELS, logits, "logit", unknown=unknown), truth


def codes(predictions: LabelScores) -> np.ndarray:
    return predictions.top(1)[:, 0]
