"""The nearest training items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.methods.base import Arrays, Fitted, OnFeatures, check_lengths, features_of, truth_of, with_lengths
from fieldmark.runs.label_scores import Scale
from fieldmark.views import Part, View

BLOCK_ITEMS = 1024


@dataclass(frozen=True)
class NearestNeighbors(OnFeatures):
    """A vote of the k training items of highest cosine.

    Weighted, each votes with exp(cosine / temperature), after Wu et al., "Unsupervised feature learning via
    non-parametric instance discrimination" (2018), and a share `floor` of the vote is spread evenly over all labels,
    so that none is impossible.

    By majority, each has one vote, as in the few-shot baseline of FungiTastic. Labels with equally many votes, and
    labels without any, stand in the order of their nearest training item; at most the share `floor` is spread over all
    labels in that order, which never outweighs a vote. A label without training items comes last. Of training items
    that are equally near, that of the label listed first counts as the nearer one.

    Args:
        k: How many neighbors vote.
        vote: "weighted" or "majority".
        temperature: How much more the nearer ones count in a weighted vote.
        floor: The share that is spread.
        lengths: "unit" scales features to length one. "given" takes them as they come, so that the inner product
            ranks: what the organizers of FungiTastic do with their quantized embeddings.
    """

    k: int = 10
    vote: str = "weighted"
    temperature: float = 0.07
    floor: float = 0.01
    lengths: str = "unit"

    scale: ClassVar[Scale] = "log_probability"
    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "k": (10, 1, 3, 5, 20, 40),
        "temperature": (0.07, 0.03, 0.15),
    }

    def __post_init__(self) -> None:
        if self.k < 1 or self.temperature <= 0 or not 0 < self.floor < 1:
            raise MisuseError("knn needs k of at least 1, a temperature above 0 and a floor between 0 and 1.")
        if self.vote not in ("weighted", "majority"):
            raise MisuseError(f"knn has no vote={self.vote}: expected weighted or majority.")
        check_lengths("knn", self.lengths)

    def fit(self, view: View) -> Fitted:
        # By label, so that the first of equals is the one of the label listed first.
        order = np.argsort(truth_of(view.train), kind="stable")
        features = with_lengths(features_of(view.train), self.lengths)[order]
        # In single precision: rounded ones would change which item is the nearest.
        learned = {"features": features, "labels": truth_of(view.train)[order], "n_labels": np.array(len(view.labels))}
        return Fitted(self, learned)

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        count = self._weighted if self.vote == "weighted" else self._majority
        k, n_labels = min(self.k, len(arrays["labels"])), arrays["n_labels"].item()
        in_blocks = [count(near, arrays["labels"], k, n_labels) for near in self._similarity(arrays, part)]
        return np.concatenate(in_blocks) if in_blocks else np.zeros((0, n_labels), dtype=np.float32)

    def _similarity(self, arrays: Arrays, part: Part) -> Iterator[NDArray[np.float32]]:
        stored = arrays["features"].astype(np.float32, copy=False)
        asked = with_lengths(features_of(part), self.lengths)
        for start in range(0, len(asked), BLOCK_ITEMS):
            yield asked[start : start + BLOCK_ITEMS] @ stored.T

    def _weighted(
        self, similarity: NDArray[np.float32], labels: NDArray[Any], k: int, n_labels: int
    ) -> NDArray[np.float32]:
        nearest = nearest_of(similarity, k)
        near = np.take_along_axis(similarity, nearest, axis=1)
        weight = np.exp((near - near.max(axis=1, keepdims=True)) / self.temperature)
        weight /= weight.sum(axis=1, keepdims=True)
        votes = np.zeros((len(similarity), n_labels), dtype=np.float32)
        np.add.at(votes, (np.arange(len(votes))[:, None], labels[nearest]), weight)
        return np.asarray(np.log((1 - self.floor) * votes + self.floor / n_labels), dtype=np.float32)

    def _majority(
        self, similarity: NDArray[np.float32], labels: NDArray[Any], k: int, n_labels: int
    ) -> NDArray[np.float32]:
        rows = np.arange(len(similarity))[:, None]
        votes = np.zeros((len(similarity), n_labels))
        np.add.at(votes, (rows, labels[nearest_of(similarity, k)]), 1 / k)
        present, starts = np.unique(labels, return_index=True)
        best = np.full((len(similarity), n_labels), -np.inf, dtype=np.float32)
        best[:, present] = np.maximum.reduceat(similarity, starts, axis=1)
        spread = np.empty_like(votes)
        spread[rows, np.argsort(-best, axis=1, kind="stable")] = 1 / np.arange(1, n_labels + 1)
        spread /= spread.sum(axis=1, keepdims=True)
        share = min(self.floor, 1 / (2 * k))
        return np.log((1 - share) * votes + share * spread).astype(np.float32)


def nearest_of(similarity: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """The columns of the k highest values of each row; among equals the first, whatever the sort does.

    >>> nearest_of(np.array([[0.5, 0.9, 0.9, 0.5]], dtype=np.float32), 3)
    array([[0, 1, 2]])
    """
    if k == 1:
        return np.asarray(similarity.argmax(axis=1)[:, None])
    lowest = np.partition(similarity, -k, axis=1)[:, -k, None]
    above, equal = similarity > lowest, similarity == lowest
    room = k - above.sum(axis=1, keepdims=True)
    chosen = above | (equal & (np.cumsum(equal, axis=1) <= room))
    return np.nonzero(chosen)[1].reshape(len(similarity), k)
