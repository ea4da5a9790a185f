"""Predictions whose logits are too sharp, and biased."""

from __future__ import annotations

import numpy as np

from fieldmark.runs.label_scores import LabelScores
from fieldmark.tables.labels import Labels

LABELS = Labels(tuple("abcde"))


def drawn(temperature: np.ndarray, biases: np.ndarray, seed: int = 0) -> tuple[LabelScores, np.ndarray]:
    """Logits z with the label drawn from softmax(z / temperature + biases)."""
    rng, n = np.random.default_rng(seed), len(temperature)
    logits = rng.normal(0, 3, (n, 5)).astype(np.float32)
    truth = (logits / temperature[:, None] + biases + rng.gumbel(size=(n, 5))).argmax(axis=1).astype(np.int32)
    return LabelScores(tuple(map(str, range(n))), LABELS, logits, "logit"), truth


def log_loss(predictions: LabelScores, truth: np.ndarray) -> float:
    p = predictions.probabilities()[np.arange(len(truth)), truth]
    return -float(np.log(np.maximum(p, 1e-12)).mean())
