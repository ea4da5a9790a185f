from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Ridge as SkRidge
from sklearn.neighbors import KNeighborsClassifier

from fieldmark.errors import MisuseError
from fieldmark.labels import Labels
from fieldmark.methods import METHODS
from fieldmark.methods.base import Need, features_of
from fieldmark.methods.centroid import Centroid
from fieldmark.methods.frequent import Frequent
from fieldmark.methods.knn import NearestNeighbors
from fieldmark.methods.lda import Discriminant
from fieldmark.methods.linear import Linear
from fieldmark.methods.ridge import Ridge
from fieldmark.taxonomy import Taxonomy
from fieldmark.views import Part, View
from tests.lessons import part_of

# Methods that look at photos or hear recordings themselves have tests of their own.
OWN_TESTS = ("birdnet", "cnn", "finetune", "published")
ON_FEATURES = [name for name in METHODS if name not in OWN_TESTS]
LABELS = Labels(("a", "b", "c", "never seen"))


def make_part(rng: np.random.Generator, n: int, dimensions: int, centers: np.ndarray) -> Part:
    truth = rng.integers(0, 3, n).astype(np.int32)
    features = (centers[truth] + rng.normal(0, 1.5, (n, dimensions))).astype(np.float32)
    return part_of([f"{n}-{row}" for row in range(n)], truth, features)


def unit(part: Part) -> np.ndarray:
    """Features scaled to length one."""
    return features_of(part) / np.linalg.norm(features_of(part), axis=1, keepdims=True)


@pytest.fixture(params=[(60, 10), (30, 50)], ids=["more items than features", "more features than items"])
def view(request) -> View:
    n, dimensions = request.param
    rng = np.random.default_rng(3)
    centers = rng.normal(size=(3, dimensions)) + 1
    train, val, test = (make_part(rng, size, dimensions, centers) for size in (n, 41, 42))
    taxonomy = Taxonomy.of(LABELS, pl.DataFrame({"label": LABELS.names}))
    return View(LABELS, taxonomy, train, val, None, test)


@pytest.mark.parametrize("name", ON_FEATURES)
def test_every_method_here_needs_features_of_the_media_or_nothing(name):
    assert METHODS[name]().needs in ((), (Need("features"),))


@pytest.mark.parametrize("name", ON_FEATURES)
def test_every_method_scores_every_label_of_every_item_and_again_from_its_arrays(name, view):
    fitted = METHODS[name]().fit(view)
    predictions = fitted.predict(view.test, LABELS)
    assert predictions.scores.shape == (42, 4) and np.isfinite(predictions.scores).all()
    again = fitted.method.scores({key: np.array(value) for key, value in fitted.arrays.items()}, view.test)
    assert (again == predictions.scores).all()


@pytest.mark.parametrize("name", ["centroid", "knn", "ridge", "lda", "linear"])
def test_methods_that_look_beat_the_one_that_does_not(name, view):
    def accuracy(method) -> float:
        return float((method.fit(view).predict(view.test, LABELS).top(1)[:, 0] == view.test.truth).mean())

    assert accuracy(METHODS[name]()) > accuracy(Frequent())


@pytest.mark.parametrize("name", ON_FEATURES)
def test_a_class_never_seen_is_never_the_first_answer(name, view):
    assert (METHODS[name]().fit(view).predict(view.test, LABELS).top(1) != 3).all()


def test_frequent_answers_with_the_smoothed_training_frequencies(view):
    scores = Frequent().fit(view).predict(view.test, LABELS).scores
    counts = np.bincount(view.train.truth, minlength=4) + 1
    assert np.exp(scores[0]) == pytest.approx(counts / counts.sum(), rel=1e-5)


def test_linear_finds_the_minimum_that_scikit_learn_finds(view):
    l2 = 0.1
    fitted = Linear(l2=l2, iterations=2000).fit(view)
    train, test = features_of(view.train), features_of(view.test)
    mean, spread = train.mean(axis=0), train.std(axis=0)
    reference = LogisticRegression(C=1 / (l2 * len(train)), max_iter=5000, tol=1e-8)
    reference.fit((train - mean) / spread, view.train.truth)
    logits = fitted.predict(view.test, LABELS).scores[:, :3]
    ours = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert ours == pytest.approx(reference.predict_proba((test - mean) / spread), abs=0.02)


def test_linear_takes_its_regularizer_from_val_and_keeps_it(view):
    fitted = Linear().fit(view)
    assert fitted.method.l2 > 0
    assert fitted.method.fit(view.with_val_in_train()).method.l2 == fitted.method.l2
    with pytest.raises(MisuseError, match="chooses l2 on val"):
        Linear().fit(view.with_val_in_train())


def test_ridge_finds_the_weights_that_scikit_learn_finds(view):
    fitted = Ridge(l2=0.1).fit(view)
    train, test = unit(view.train), unit(view.test)
    reference = SkRidge(alpha=0.1 * len(train)).fit(train, np.eye(4)[view.train.truth])
    assert fitted.predict(view.test, LABELS).scores == pytest.approx(reference.predict(test), abs=1e-4)


def test_lda_scores_are_those_of_the_formula_with_the_covariance_inverted(view):
    shrinkage = 0.3
    train, test = (unit(part).astype(np.float64) for part in (view.train, view.test))
    means = np.stack([train[view.train.truth == code].mean(axis=0) for code in range(3)])
    deviations = train - means[view.train.truth]
    within = deviations.T @ deviations / (len(train) - 3)
    size = len(within)
    covariance = (1 - shrinkage) * within + shrinkage * np.trace(within) / size * np.eye(size)
    weights = np.linalg.solve(covariance, means.T)
    expected = test @ weights - 0.5 * (means.T * weights).sum(axis=0)
    ours = Discriminant(shrinkage=shrinkage).fit(view).predict(view.test, LABELS).scores[:, :3]
    assert ours == pytest.approx(expected, rel=1e-3, abs=1e-3 * np.abs(expected).max())


def test_one_photo_per_class_is_enough_for_centroids_ridge_and_lda():
    features = np.eye(3, 8, dtype=np.float32) + 0.01
    train = part_of(["a", "b", "c"], np.arange(3), features)
    taxonomy = Taxonomy.of(LABELS, pl.DataFrame({"label": LABELS.names}))
    view = View(LABELS, taxonomy, train, train, None, None)
    for method in (Centroid(), NearestNeighbors(k=1), Ridge(l2=0.1), Discriminant(shrinkage=0.5)):
        answers = method.fit(view).predict(train, LABELS)
        assert answers.top(1)[:, 0].tolist() == [0, 1, 2] and np.isfinite(answers.scores).all()


def test_identical_features_are_answered_without_an_error():
    same = np.ones((6, 5), dtype=np.float32)
    train = part_of("abcdef", np.array([0, 0, 1, 1, 2, 2]), same)
    taxonomy = Taxonomy.of(LABELS, pl.DataFrame({"label": LABELS.names}))
    for name in ON_FEATURES:
        answers = METHODS[name]().fit(View(LABELS, taxonomy, train, train, None, None)).predict(train, LABELS)
        assert np.isfinite(answers.scores).all() and (answers.top(1) != 3).all()


def test_knn_votes_for_the_class_scikit_learn_votes_for(view):
    reference = KNeighborsClassifier(1, metric="cosine").fit(features_of(view.train), view.train.truth)
    ours = NearestNeighbors(k=1).fit(view).predict(view.test, LABELS).top(1)[:, 0]
    assert (ours == reference.predict(features_of(view.test))).all()


def test_centroid_scores_are_cosines_to_the_class_means(view):
    fitted = Centroid().fit(view)
    scores = fitted.predict(view.test, LABELS).scores
    mean = unit(view.train)[view.train.truth == 1].mean(axis=0)
    one = features_of(view.test)[0]
    assert scores[0, 1] == pytest.approx(one @ mean / np.linalg.norm(one) / np.linalg.norm(mean), abs=1e-5)
    assert (scores[:, 3] == -1).all()


@pytest.mark.parametrize("wrong", [{"k": 0}, {"temperature": 0.0}, {"floor": 1.0}])
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(MisuseError, match="knn needs"):
        NearestNeighbors(**wrong)
