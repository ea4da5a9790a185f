"""Features of photos of three species; a fourth is never seen."""

from __future__ import annotations

import numpy as np

from fieldmark.methods.base import features_of
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import Part
from fieldmark_tests.lessons import part_of

LABELS = Labels(("a", "b", "c", "never seen"))


def make_part(rng: np.random.Generator, n: int, dimensions: int, centers: np.ndarray) -> Part:
    truth = rng.integers(0, 3, n).astype(np.int32)
    features = (centers[truth] + rng.normal(0, 1.5, (n, dimensions))).astype(np.float32)
    return part_of([f"{n}-{row}" for row in range(n)], truth, features)


def unit(part: Part) -> np.ndarray:
    """Features scaled to length one."""
    return features_of(part) / np.linalg.norm(features_of(part), axis=1, keepdims=True)
