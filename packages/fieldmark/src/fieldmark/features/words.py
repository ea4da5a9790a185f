"""Texts as numbers: the words that train has often, weighted by how few texts have them (TF-IDF)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.registry import require

# Words fall into so many buckets by their hash. Two words that are common in train share one about once in a thousand.
BUCKETS = 2**20
BLOCK_TEXTS = 4096
# A word must stand in this many texts of train.
FEWEST = 2

Texts = Iterable[str | None]


@dataclass(frozen=True)
class WordsEncoder:
    """TF-IDF over the words and pairs of words that most texts of train have.

    A word that stands t times in a text has (1 + ln t) x (1 + ln((1 + n) / (1 + d))), with n the texts of train and d
    those that have the word; each text is scaled to length one. Words are told apart by a hash, so that no list of
    words is held, and texts are read a block at a time.

    Args:
        buckets: The hashes of the words.
        weights: The second factor, for each.
    """

    buckets: NDArray[np.int64]
    weights: NDArray[np.float32]

    @classmethod
    def fit(cls, texts: Texts, *, words: int = 1024) -> WordsEncoder:
        """Counts in how many texts of train each word stands, and keeps the most common ones.

        Args:
            texts: The texts of train, None where there is none.
            words: How many words and pairs of words are kept at most.
        """
        read, having, number = _counter(), np.zeros(BUCKETS, dtype=np.int64), 0
        for block in _blocks(text for text in texts if text):
            having += np.bincount(read(block).indices, minlength=BUCKETS)
            number += len(block)
        order = np.argsort(-having, kind="stable")[:words]
        kept = np.sort(order[(having[order] >= FEWEST) & (having[order] < number)])
        weights = 1 + np.log((1 + number) / (1 + having[kept]))
        return cls(kept, weights.astype(np.float32))

    def __call__(self, texts: Texts) -> NDArray[np.float32]:
        """One row per text; zeros where there is none, or none of the words."""
        read, rows = _counter(), [np.zeros((0, len(self.buckets)), dtype=np.float32)]
        for block in _blocks(texts):
            counts = read([text or "" for text in block])[:, self.buckets].toarray()
            values = np.log1p(np.maximum(counts - 1, 0)) * (counts > 0) + (counts > 0)
            values = values * self.weights
            lengths = np.linalg.norm(values, axis=1, keepdims=True)
            rows.append((values / np.maximum(lengths, 1e-12)).astype(np.float32))
        return np.concatenate(rows)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that was learned."""
        return {"buckets": self.buckets, "weights": self.weights}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> WordsEncoder:
        """The encoder that these arrays were made by."""
        return cls(arrays["buckets"].astype(np.int64), arrays["weights"].astype(np.float32))


def _counter() -> Callable[[Sequence[str]], Any]:
    """Counts the words of texts: one sparse row per text, one column per bucket."""
    text: Any = require("sklearn.feature_extraction.text", "Reading captions")
    made = text.HashingVectorizer(n_features=BUCKETS, alternate_sign=False, norm=None, ngram_range=(1, 2))
    return made.transform  # type: ignore[no-any-return]


def _blocks(texts: Texts) -> Iterator[list[Any]]:
    rest = iter(texts)
    while block := list(islice(rest, BLOCK_TEXTS)):
        yield block
