"""Whether a specimen looks like anything that a model was shown, without a single unknown species to learn from.

Two scores: how far the nearest training photos lie (features scaled to length one, the `K`-th nearest; Sun et al.,
"Out-of-distribution detection with deep nearest neighbors", 2022), and how little the likeliest label stands out. Each
is turned into the share of val that is less strange; the higher of the two shares is the strangeness of a specimen.
The line accepts the share `ACCEPTED` of the observations of val, so that no unknown species is needed to draw it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fieldmark.steps.novelty import unit

ACCEPTED = 0.95
K = 3
# Training photos whose features are kept, spread evenly over the labels.
MOST_KEPT = 10_000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Strangers:
    """What is kept of train and val to tell strangers by.

    Args:
        far: The sorted distances of val observations to their neighbors; empty where a model has no features.
        doubt: Their sorted doubts (1 - the highest probability).
        line: From which strangeness on a specimen may be unknown.
        kept: Features of training photos, scaled to length one; without rows where a model has no features.
    """

    far: Floats
    doubt: Floats
    line: float
    kept: NDArray[np.float16] = field(default_factory=lambda: np.zeros((0, 0), np.float16))

    def score(self, distance: float | None, doubt: float) -> float:
        """The strangeness of one specimen, from 0 to 1."""
        return float(_shares(self.far, self.doubt, np.array([np.nan if distance is None else distance]), doubt)[0])

    @cached_property
    def _stored(self) -> NDArray[np.float32]:
        """What is kept, ready to be compared with many."""
        return np.asarray(unit(self.kept), dtype=np.float32)

    def distances(self, features: NDArray[Any]) -> Floats:
        """How far the `K`-th nearest training photo of each row lies."""
        return neighbor_distances(features, self._stored)

    def nearest(self, features: NDArray[Any], number: int) -> tuple[NDArray[np.int64], Floats]:
        """The kept rows nearest to the mean of some photos, and their likeness (cosine)."""
        asked = unit(features).mean(axis=0, keepdims=True)
        likeness = (self._stored @ unit(asked)[0]).astype(np.float64)
        best = np.argsort(-likeness, kind="stable")[:number]
        return best, likeness[best]

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved beside the plain data."""
        return {"far": self.far, "doubt": self.doubt, "kept": self.kept}

    @classmethod
    def from_data(cls, line: float, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """From the line and the arrays that were saved."""
        return cls(arrays["far"], arrays["doubt"], line, arrays["kept"])


def neighbor_distances(features: NDArray[Any], kept: NDArray[Any], k: int = K) -> Floats:
    """The distance of each row to its k-th nearest among those kept, all of length one."""
    k = min(k, len(kept))
    stored = kept if kept.dtype == np.float32 and len(kept) and np.isclose(np.linalg.norm(kept[0]), 1) else unit(kept)
    found = []
    for start in range(0, len(features), 1024):
        cosine = unit(features[start : start + 1024]) @ stored.T
        cosine.partition(len(stored) - k, axis=1)
        found.append(np.sqrt(np.maximum(2 - 2 * cosine[:, len(stored) - k].astype(np.float64), 0)))
    return np.concatenate(found) if found else np.zeros(0)


def learn_strangers(distance: Floats | None, doubt: Floats, kept: NDArray[Any] | None) -> Strangers:
    """The line from the observations of val that are of known labels.

    Args:
        distance: How far the neighbors of each lie; None where a model has no features.
        doubt: 1 - the highest probability of each.
        kept: Features of training photos.
    """
    far = np.sort(distance) if distance is not None else np.zeros(0)
    sorted_doubt = np.sort(doubt)
    asked = distance if distance is not None else np.full(len(doubt), np.nan)
    scores = np.sort(_shares(far, sorted_doubt, asked, doubt))
    place = min(int(np.ceil(ACCEPTED * (len(scores) + 1))), len(scores)) - 1
    line = float(scores[place]) if len(scores) else 1.0
    half = np.zeros((0, 0), np.float16) if kept is None else unit(kept).astype(np.float16)
    return Strangers(far, sorted_doubt, line, half)


def _shares(far: Floats, doubts: Floats, distance: Floats, doubt: float | Floats) -> Floats:
    """The higher of the two shares of val that are less strange; a distance that nobody knows says nothing."""
    by_doubt = np.searchsorted(doubts, np.atleast_1d(doubt), side="left") / (len(doubts) + 1)
    if not len(far):
        return np.asarray(by_doubt, dtype=np.float64)
    by_distance = np.searchsorted(far, distance, side="left") / (len(far) + 1)
    return np.asarray(np.maximum(np.where(np.isnan(distance), 0.0, by_distance), by_doubt), dtype=np.float64)


def evenly(codes: NDArray[Any], most: int = MOST_KEPT, seed: int = 0) -> NDArray[np.int64]:
    """Rows to keep, spread evenly over their labels: each label in turn gives one, in a random order.

    >>> evenly(np.array([0, 0, 0, 1]), most=2).tolist() in ([0, 3], [1, 3], [2, 3])
    True
    """
    if len(codes) <= most:
        return np.arange(len(codes))
    order = np.random.default_rng(seed).permutation(len(codes))
    turn = np.zeros(len(codes), dtype=np.int64)
    seen: dict[int, int] = {}
    for row in order:
        code = int(codes[row])
        turn[row] = seen.get(code, 0)
        seen[code] = turn[row] + 1
    place = np.empty(len(codes), dtype=np.int64)
    place[order] = np.arange(len(codes))
    return np.sort(np.lexsort((place, turn))[:most])
