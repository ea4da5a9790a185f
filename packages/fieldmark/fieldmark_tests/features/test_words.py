from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from fieldmark.features import words
from fieldmark.features.words import WordsEncoder

CAPTIONS = [
    "A red cap with white spots and a white stem.",
    "A brown cap with a ring.",
    "White gills, white stem, white ring.",
    "The cap is brown and the stem is red.",
]


def test_weights_are_those_of_scikit_learn():
    encoded = WordsEncoder.fit(CAPTIONS)(CAPTIONS)
    reference = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True).fit(CAPTIONS)
    expected = reference.transform(CAPTIONS).toarray()
    assert encoded.shape == expected.shape
    # Words stand in another order: that of their hashes.
    assert np.sort(encoded, axis=1) == pytest.approx(np.sort(expected, axis=1), abs=1e-6)
    assert encoded @ encoded.T == pytest.approx(expected @ expected.T, abs=1e-6)


def test_texts_that_are_missing_or_of_new_words_are_zeros():
    encoder = WordsEncoder.fit(CAPTIONS)
    assert not encoder([None, "", "zzz yyy"]).any() and encoder([]).shape == (0, len(encoder.buckets))
    assert len(WordsEncoder.fit([None, None]).buckets) == 0


def test_texts_are_read_block_by_block_with_the_same_result(monkeypatch):
    whole = WordsEncoder.fit(CAPTIONS, words=3)
    monkeypatch.setattr(words, "BLOCK_TEXTS", 3)
    assert len(whole.buckets) == 3
    again = WordsEncoder.fit(iter(CAPTIONS), words=3)
    assert (again.buckets == whole.buckets).all()
    assert (WordsEncoder.of(again.arrays)(iter(CAPTIONS)) == whole(CAPTIONS)).all()
