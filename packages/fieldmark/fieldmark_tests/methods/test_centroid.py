"""The nearest class mean."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.methods.base import features_of
from fieldmark.methods.centroid import Centroid
from fieldmark_tests.methods.few_photos import answers, part, view_of
from fieldmark_tests.methods.photos_of_three import LABELS as THREE
from fieldmark_tests.methods.photos_of_three import unit


def test_centroids_of_given_lengths_let_longer_features_pull_more():
    train = part([[4.0, 0.0], [0.0, 1.0]], [0, 0])
    centroids = {kind: Centroid(lengths=kind).fit(view_of(train)).arrays["centroids"][0] for kind in ("unit", "given")}
    assert centroids["unit"] == pytest.approx(np.array([1, 1]) / 2**0.5)
    assert centroids["given"] == pytest.approx(np.array([4, 1]) / 17**0.5)


def test_a_centroid_of_zeros_wins_only_where_the_organizers_let_it():
    train, asked = part([[1.0, 0.0], [0.8, 0.6]], [0, 1]), part([[-1.0, 0.0]], None)
    assert answers(Centroid(absent="zero"), view_of(train), asked).tolist() == [2]
    assert answers(Centroid(), view_of(train), asked).tolist() == [1]


def test_centroid_scores_are_cosines_to_the_class_means(view):
    fitted = Centroid().fit(view)
    scores = fitted.predict(view.test, THREE).scores
    mean = unit(view.train)[view.train.truth == 1].mean(axis=0)
    one = features_of(view.test)[0]
    assert scores[0, 1] == pytest.approx(one @ mean / np.linalg.norm(one) / np.linalg.norm(mean), abs=1e-5)
    assert (scores[:, 3] == -1).all()
