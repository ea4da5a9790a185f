"""The nearest training items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.methods.base import LENGTHS, Arrays, Fitted, OnFeatures, features_of, truth_of, with_lengths
from fieldmark.runs.label_scores import Scale
from fieldmark.settings import setting
from fieldmark.views.parts import Part, View
from fieldmark.work.large_arrays import Nearest, products_with, taken_rows

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

    k: int = setting(10, least=1)
    vote: str = setting("weighted", choices=("weighted", "majority"))
    temperature: float = setting(0.07, above=0)
    floor: float = setting(0.01, above=0, below=1)
    lengths: str = setting("unit", choices=LENGTHS)

    second_order: ClassVar[bool] = True
    scale: ClassVar[Scale] = "log_probability"
    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "k": (10, 1, 3, 5, 20, 40),
        "temperature": (0.07, 0.03, 0.15),
    }

    def fit(self, view: View) -> Fitted:
        # By label, so that the first of equals is the one of the label listed first.
        order = np.argsort(truth_of(view.train), kind="stable")
        features = taken_rows(features_of(view.train), order, lambda rows: with_lengths(rows, self.lengths))
        # In single precision: rounded ones would change which item is the nearest.
        learned = {"features": features, "labels": truth_of(view.train)[order], "n_labels": np.array(len(view.labels))}
        return Fitted(self, learned)

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        asked, n_labels = features_of(part), arrays["n_labels"].item()
        count = self._weighted if self.vote == "weighted" else self._majority
        scores = np.empty((len(asked), n_labels), dtype=np.float32)
        for start in range(0, len(asked), BLOCK_ITEMS):
            block = slice(start, start + BLOCK_ITEMS)
            scores[block] = count(with_lengths(asked[block], self.lengths), arrays, n_labels)
        return scores

    def _weighted(self, asked: NDArray[np.float32], arrays: Arrays, n_labels: int) -> NDArray[np.float32]:
        nearest = Nearest(len(asked), self.k)
        for block, similarity in products_with(arrays["features"], asked):
            nearest.see(similarity, block.start)
        weight = np.exp((nearest.values - nearest.values.max(axis=1, keepdims=True)) / self.temperature)
        weight /= weight.sum(axis=1, keepdims=True)
        votes = np.zeros((len(asked), n_labels), dtype=np.float32)
        np.add.at(votes, (np.arange(len(votes))[:, None], arrays["labels"][nearest.items]), weight)
        return np.asarray(np.log((1 - self.floor) * votes + self.floor / n_labels), dtype=np.float32)

    def _majority(self, asked: NDArray[np.float32], arrays: Arrays, n_labels: int) -> NDArray[np.float32]:
        rows, labels = np.arange(len(asked))[:, None], arrays["labels"]
        nearest, best = Nearest(len(asked), self.k), np.full((len(asked), n_labels), -np.inf, dtype=np.float32)
        for block, similarity in products_with(arrays["features"], asked):
            nearest.see(similarity, block.start)
            present, starts = np.unique(labels[block], return_index=True)
            best[:, present] = np.maximum(best[:, present], np.maximum.reduceat(similarity, starts, axis=1))
        votes, k = np.zeros((len(asked), n_labels)), nearest.items.shape[1]
        np.add.at(votes, (rows, labels[nearest.items]), 1 / k)
        spread = np.empty_like(votes)
        spread[rows, np.argsort(-best, axis=1, kind="stable")] = 1 / np.arange(1, n_labels + 1)
        spread /= spread.sum(axis=1, keepdims=True)
        share = min(self.floor, 1 / (2 * k))
        return np.log((1 - share) * votes + share * spread).astype(np.float32)
