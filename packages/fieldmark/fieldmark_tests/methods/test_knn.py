"""Votes of the nearest photos."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from fieldmark.methods.base import features_of
from fieldmark.methods.knn import NearestNeighbors
from fieldmark.work.large_arrays import Nearest, nearest_of
from fieldmark_tests.methods.few_photos import LABELS, answers, part, view_of
from fieldmark_tests.methods.photos_of_three import LABELS as THREE


@pytest.mark.parametrize("k", [1, 3, 5])
def test_a_majority_of_neighbors_decides_as_in_scikit_learn_where_it_is_one(k):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 6, 200)
    features = rng.normal(size=(6, 8))[truth] + rng.normal(size=(200, 8))
    asked = rng.normal(size=(80, 8))
    reference = KNeighborsClassifier(k, metric="cosine").fit(features, truth)
    share = reference.predict_proba(asked)
    clear = (share == share.max(axis=1, keepdims=True)).sum(axis=1) == 1
    ours = answers(NearestNeighbors(k=k, vote="majority"), view_of(part(features, truth)), part(asked, None))
    assert clear.sum() > 20 and (ours[clear] == reference.predict(asked)[clear]).all()


def test_of_labels_with_equal_votes_the_one_with_the_nearest_photo_wins():
    train = part([[1, 0.1], [1, 0.3], [1, 0.2], [1, 0.5]], [0, 0, 1, 1])
    fitted = NearestNeighbors(k=4, vote="majority").fit(view_of(train))
    predicted = fitted.predict(part([[1, 0.2], [1, 0.09]], None), LABELS)
    assert predicted.top(2).tolist() == [[1, 0], [0, 1]]


def test_labels_without_votes_follow_by_their_nearest_photo_and_those_without_photos_come_last():
    train = part(np.eye(4, 5) + np.array([0, 0, 0, 0, 0.5]), [3, 2, 4, 1])
    scores = NearestNeighbors(k=1, vote="majority").fit(view_of(train)).predict(part([[4, 3, 1, 2, 0]], None), LABELS)
    assert scores.top(6).tolist() == [[3, 2, 1, 4, 0, 5]]
    assert np.exp(scores.scores).sum() == pytest.approx(1, abs=1e-5)


def test_a_vote_is_never_outweighed_by_nearness_however_many_vote():
    rng = np.random.default_rng(2)
    features = np.concatenate([rng.normal(size=(60, 3)) * 0.1 + [1, 0, 0.2], [[1, 0, 0]]])
    truth = [0] * 31 + [1] * 29 + [2]
    ours = answers(
        NearestNeighbors(k=61, vote="majority", floor=0.9), view_of(part(features, truth)), part([[1, 0, 0]], None)
    )
    assert ours.tolist() == [0]


def test_equally_near_photos_count_in_the_order_of_their_labels_whatever_their_order_in_train():
    same = np.ones((4, 3))
    for truth in ([4, 2, 3, 2], [2, 3, 2, 4]):
        for k in (1, 2, 3):
            ours = answers(NearestNeighbors(k=k, vote="majority"), view_of(part(same, truth)), part(same[:1], None))
            assert ours.tolist() == [2]


@pytest.mark.parametrize("width", [1, 3, 7, 40])
@pytest.mark.parametrize("k", [1, 2, 5, 60])
def test_the_nearest_are_the_same_in_blocks_of_any_width_also_among_equals(k, width):
    similarity = np.random.default_rng(4).integers(0, 5, (30, 40)).astype(np.float32)
    nearest = Nearest(len(similarity), k)
    for first in range(0, 40, width):
        nearest.see(similarity[:, first : first + width], first)
    expected = nearest_of(similarity, min(k, 40))
    assert np.array_equal(nearest.items, expected)
    assert np.array_equal(nearest.values, np.take_along_axis(similarity, expected, axis=1))


def test_given_lengths_rank_by_inner_product_and_unit_lengths_by_cosine():
    train, asked = part([[3.0, 3.0], [1.0, 0.0]], [0, 1]), part([[1.0, 0.1]], None)
    for lengths, expected in (("given", 0), ("unit", 1)):
        assert answers(NearestNeighbors(k=1, vote="majority", lengths=lengths), view_of(train), asked).tolist() == [
            expected
        ]


@pytest.mark.parametrize("vote", ["weighted", "majority"])
def test_the_nearest_item_is_told_from_one_that_is_hardly_farther(vote):
    # Two directions that half precision cannot tell apart, each asked about.
    near = np.array([[1.0, 0.3], [1.0, 0.3 + 5e-5]], dtype=np.float32)
    fitted = NearestNeighbors(k=1, vote=vote).fit(view_of(part(near, [1, 0])))
    assert fitted.predict(part(np.array([[1.0, 0.2], [1.0, 0.4]]), None), LABELS).top(1)[:, 0].tolist() == [1, 0]


def test_knn_votes_for_the_class_scikit_learn_votes_for(view):
    reference = KNeighborsClassifier(1, metric="cosine").fit(features_of(view.train), view.train.truth)
    ours = NearestNeighbors(k=1).fit(view).predict(view.test, THREE).top(1)[:, 0]
    assert (ours == reference.predict(features_of(view.test))).all()
