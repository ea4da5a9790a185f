"""The novelty scores against pytorch-ood and scikit-learn, which we did not write."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pytorch_ood.detector import KNN, EnergyBased, Entropy, Mahalanobis, MaxLogit, MaxSoftmax, ViM
from sklearn.covariance import OAS

from fieldmark.steps import novelty
from fieldmark.steps.novelty import SCORES, Seen, around_zero, learn

RNG = np.random.default_rng(5)
CENTERS = RNG.normal(0, 2, (4, 12))
TRUTH = np.repeat(np.arange(4), 30)
TRAIN = (CENTERS[TRUTH] + RNG.normal(size=(120, 12))).astype(np.float32)
ITEMS = (RNG.normal(0, 3, (50, 12))).astype(np.float32)
WEIGHTS, BIAS = RNG.normal(size=(4, 12)).astype(np.float32), RNG.normal(size=4).astype(np.float32)
LOGITS = ITEMS @ WEIGHTS.T + BIAS


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (novelty.max_softmax, lambda z: 1 + MaxSoftmax.score(z)),
        (novelty.max_logit, MaxLogit.score),
        (novelty.energy, EnergyBased.score),
        (novelty.entropy, Entropy.score),
    ],
    ids=["max softmax", "max logit", "energy", "entropy"],
)
def test_scores_of_logits_agree_with_pytorch_ood(ours, theirs):
    assert ours(LOGITS) == pytest.approx(theirs(torch.tensor(LOGITS)).numpy(), rel=1e-4, abs=1e-4)


def test_the_neighbor_distance_agrees_with_pytorch_ood():
    theirs = KNN(None, k=7).fit_features(torch.tensor(TRAIN), torch.tensor(TRUTH)).predict_features(torch.tensor(ITEMS))
    assert novelty.neighbor_distance(ITEMS, TRAIN, 7) == pytest.approx(theirs.numpy(), abs=1e-4)


def test_mahalanobis_without_shrinkage_agrees_with_pytorch_ood():
    fitted = Mahalanobis(None).fit_features(torch.tensor(TRAIN), torch.tensor(TRUTH))
    # Theirs is half the distance under the sum of outer products, not their mean.
    theirs = 2 * len(TRAIN) * fitted.predict_features(torch.tensor(ITEMS)).numpy()
    white, means = novelty.whitening(TRAIN, TRUTH, shrinkage=0.0)
    assert novelty.mahalanobis(ITEMS, white, means) == pytest.approx(theirs, rel=1e-3)


def test_relative_mahalanobis_and_the_round_neighbor_are_those_of_plain_matrices():
    rows, items = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in (TRAIN, ITEMS))
    means = np.stack([rows[one == TRUTH].mean(axis=0) for one in range(4)])

    def shrunk(apart):
        own = apart.T @ apart / len(apart)
        return 0.8 * own + 0.2 * np.trace(own) / len(own) * np.eye(len(own))

    within, overall = shrunk(rows - means[TRUTH]), shrunk(rows - rows.mean(axis=0))

    def distance(center, covariance):
        apart = items - center
        return (apart @ np.linalg.inv(covariance) * apart).sum(axis=1)

    nearest = np.min([distance(mean, within) for mean in means], axis=0)
    names = ("relative-mahalanobis", "round-neighbor")
    learned = learn(names, TRAIN, TRUTH, lambda: np.ones(1), TRAIN.mean(axis=0), 5)
    seen = Seen(LOGITS, ITEMS, learned)
    expected = nearest - distance(rows.mean(axis=0), overall)
    assert SCORES["relative-mahalanobis"](seen) == pytest.approx(expected, rel=1e-3)
    values, axes = np.linalg.eigh(within)
    made_round = [(one - means.mean(axis=0)) @ axes / np.sqrt(values) for one in (items, rows)]
    asked, stored = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in made_round)
    farthest = np.sqrt(2 - 2 * (asked @ stored.T).max(axis=1))
    assert SCORES["round-neighbor"](seen) == pytest.approx(farthest, abs=1e-2)


def test_of_many_items_some_of_each_class_are_kept(monkeypatch):
    monkeypatch.setattr(novelty, "MOST_NEIGHBORS", 8)
    learned = learn(("round-neighbor",), TRAIN, TRUTH, lambda: np.ones(1), TRAIN.mean(axis=0), 5)
    assert len(learned["round_stored"]) == 8


def test_the_shrinkage_is_that_of_scikit_learn():
    apart = TRAIN - novelty.class_means(TRAIN, TRUTH)[TRUTH]
    reference = OAS(assume_centered=True).fit(apart)
    white, _ = novelty.whitening(TRAIN, TRUTH)
    matrix = white(np.eye(12))
    assert matrix @ matrix.T == pytest.approx(np.linalg.inv(reference.covariance_), rel=1e-4, abs=1e-6)


def test_with_fewer_items_than_features_all_is_as_with_all_axes():
    few, truth = TRAIN[::12], TRUTH[::12]  # ten items, twelve features
    apart = few - novelty.class_means(few, truth)[truth]
    reference = OAS(assume_centered=True).fit(apart)
    white, means = novelty.whitening(few, truth)
    assert white.axes.shape[1] < 12
    matrix = white(np.eye(12))
    assert matrix @ matrix.T == pytest.approx(np.linalg.inv(reference.covariance_), rel=1e-4, abs=1e-6)
    assert means == pytest.approx(novelty.class_means(few, truth) @ matrix)
    names, shared = ("mahalanobis", "residual", "relative-mahalanobis", "round-neighbor"), (TRAIN.mean(axis=0), 5)
    learned = learn(names, few, truth, lambda: np.ones(1), *shared)
    # As models of before keep it: a matrix, and the axes that are left out.
    before = {name: one for name, one in learned.items() if "." not in name and name != "principal"}
    for name in ("white", "round", "overall"):
        before[name] = novelty.Whitening.of(learned, name)(np.eye(12, dtype=np.float32))
    axes = np.linalg.eigh((few - shared[0]).T @ (few - shared[0]))[1]
    before["left"] = axes[:, : 12 - learned["principal"].shape[1]].astype(np.float32)
    for name in names:
        given, expected = (SCORES[name](Seen(LOGITS, ITEMS, kept)) for kept in (learned, before))
        assert given == pytest.approx(expected, rel=1e-3, abs=1e-4), name


def test_vim_agrees_with_pytorch_ood():
    fitted = ViM(None, d=5, w=torch.tensor(WEIGHTS), b=torch.tensor(BIAS))
    theirs = fitted.fit_features(torch.tensor(TRAIN), torch.tensor(TRUTH)).predict_features(torch.tensor(ITEMS)).numpy()
    origin = novelty.logit_origin(WEIGHTS, BIAS)
    principal = novelty.principal_axes(TRAIN, origin, 5)
    largest = (TRAIN @ WEIGHTS.T + BIAS).max(axis=1)
    alpha = novelty.matched_scale(largest, novelty.residual(TRAIN, origin, principal))
    ours = novelty.vim(LOGITS, novelty.residual(ITEMS, origin, principal), alpha)
    assert ours == pytest.approx(theirs, rel=1e-3, abs=1e-3)


def test_the_nearest_mean_is_found_by_trying_all():
    means = novelty.class_means(TRAIN, TRUTH)
    by_hand = [min(np.linalg.norm(item - mean) for mean in means) for item in ITEMS]
    assert novelty.nearest_mean(ITEMS, means) == pytest.approx(by_hand, rel=1e-5)


@pytest.mark.parametrize("name", list(SCORES))
def test_every_score_calls_far_away_items_stranger_or_is_told_by_logits_alone(name):
    learned = learn((name,), TRAIN, TRUTH, lambda: around_zero(TRAIN @ WEIGHTS.T).max(axis=1), TRAIN.mean(axis=0), 5)
    far = TRAIN[:20] + 40 * RNG.normal(size=(1, 12)).astype(np.float32)
    near, strange = (SCORES[name](Seen(0 * rows[:, :4] + 1, rows, learned)) for rows in (TRAIN[20:40], far))
    # Logits are the same for all here: what is left to tell them apart are the features.
    by_logits = name in ("max-softmax", "max-logit", "energy", "entropy")
    assert np.allclose(near, strange) if by_logits else strange.mean() > near.mean()


def test_blocks_change_nothing(monkeypatch):
    whole = novelty.neighbor_distance(ITEMS, TRAIN, 3)
    monkeypatch.setattr(novelty, "BLOCK_ITEMS", 7)
    assert novelty.neighbor_distance(ITEMS, TRAIN, 3) == pytest.approx(whole, abs=1e-6)


def test_sharp_answers_do_not_tie_in_max_softmax():
    logits = np.array([[0, 40, 1], [0, 50, 1], [0, 60, 1]], dtype=np.float32)
    found = novelty.max_softmax(logits)
    assert (np.diff(found) < 0).all() and (found > 0).all()


def test_logits_around_zero_keep_the_probabilities_and_are_never_all_negative():
    log_probability = LOGITS + novelty.energy(LOGITS)[:, None]
    centered = novelty.around_zero(log_probability)
    assert novelty.max_softmax(centered) == pytest.approx(novelty.max_softmax(LOGITS), rel=1e-5)
    assert (centered.max(axis=1) >= 0).all()
