from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from fieldmark.errors import MisuseError
from fieldmark.labels import Labels
from fieldmark.methods import METHODS
from fieldmark.methods.centroid import Centroid
from fieldmark.methods.frequent import Frequent
from fieldmark.methods.knn import NearestNeighbors
from fieldmark.methods.linear import Linear
from fieldmark.taxonomy import Taxonomy
from fieldmark.views import Part, View

LABELS = Labels(("a", "b", "c", "never seen"))


def make_part(rng: np.random.Generator, n: int, dimensions: int, centers: np.ndarray) -> Part:
    truth = rng.integers(0, 3, n).astype(np.int32)
    features = (centers[truth] + rng.normal(0, 1.5, (n, dimensions))).astype(np.float32)
    items = pl.DataFrame({"item_id": [f"{n}-{row}" for row in range(n)]})
    return Part(items, truth, features=features)


@pytest.fixture(params=[(60, 10), (30, 50)], ids=["more items than features", "more features than items"])
def view(request) -> View:
    n, dimensions = request.param
    rng = np.random.default_rng(3)
    centers = rng.normal(size=(3, dimensions)) + 1
    train, val, test = (make_part(rng, size, dimensions, centers) for size in (n, 41, 42))
    taxonomy = Taxonomy.of(LABELS, pl.DataFrame({"label": LABELS.names}))
    return View(LABELS, taxonomy, train, val, None, test)


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_scores_every_label_of_every_item_and_again_from_its_arrays(name, view):
    fitted = METHODS[name]().fit(view)
    predictions = fitted.predict(view.test, LABELS)
    assert predictions.scores.shape == (42, 4) and np.isfinite(predictions.scores).all()
    again = fitted.method.scores({key: np.array(value) for key, value in fitted.arrays.items()}, view.test)
    assert (again == predictions.scores).all()


@pytest.mark.parametrize("name", ["centroid", "knn", "linear"])
def test_methods_that_look_beat_the_one_that_does_not(name, view):
    def accuracy(method) -> float:
        return float((method.fit(view).predict(view.test, LABELS).top(1)[:, 0] == view.test.truth).mean())

    assert accuracy(METHODS[name]()) > accuracy(Frequent())


@pytest.mark.parametrize("name", list(METHODS))
def test_a_class_never_seen_is_never_the_first_answer(name, view):
    assert (METHODS[name]().fit(view).predict(view.test, LABELS).top(1) != 3).all()


def test_frequent_answers_with_the_smoothed_training_frequencies(view):
    scores = Frequent().fit(view).predict(view.test, LABELS).scores
    counts = np.bincount(view.train.truth, minlength=4) + 1
    assert np.exp(scores[0]) == pytest.approx(counts / counts.sum(), rel=1e-5)


def test_linear_finds_the_minimum_that_scikit_learn_finds(view):
    l2 = 0.1
    fitted = Linear(l2=l2, iterations=2000).fit(view)
    train, test = view.train.features, view.test.features
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


def test_knn_votes_for_the_class_scikit_learn_votes_for(view):
    reference = KNeighborsClassifier(1, metric="cosine").fit(view.train.features, view.train.truth)
    ours = NearestNeighbors(k=1).fit(view).predict(view.test, LABELS).top(1)[:, 0]
    assert (ours == reference.predict(view.test.features)).all()


def test_centroid_scores_are_cosines_to_the_class_means(view):
    fitted = Centroid().fit(view)
    scores = fitted.predict(view.test, LABELS).scores
    unit = view.train.features / np.linalg.norm(view.train.features, axis=1, keepdims=True)
    mean = unit[view.train.truth == 1].mean(axis=0)
    one = view.test.features[0]
    assert scores[0, 1] == pytest.approx(one @ mean / np.linalg.norm(one) / np.linalg.norm(mean), abs=1e-5)
    assert (scores[:, 3] == -1).all()


@pytest.mark.parametrize("wrong", [{"k": 0}, {"temperature": 0.0}, {"floor": 1.0}])
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(MisuseError, match="knn needs"):
        NearestNeighbors(**wrong)
