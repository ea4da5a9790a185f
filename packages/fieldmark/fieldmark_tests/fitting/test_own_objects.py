"""Methods and backbones of one's own: fitted like others, recorded honestly, and loaded with what they need."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.methods.base import Fitted, OnFeatures, features_of, truth_of
from fieldmark.methods.centroid import Centroid
from fieldmark.runs.provenance import Run


class Colors:
    """An encoder of one's own."""

    def encode(self, images):
        return np.array([np.asarray(image, dtype=np.float32).mean(axis=(0, 1)) for image in images])


@dataclass(frozen=True)
class Nearest(OnFeatures):
    """A method of one's own: the nearest mean."""

    power: float = 2.0
    scale: ClassVar[str] = "score"

    def fit(self, view):
        features, truth = features_of(view.train), truth_of(view.train)
        means = [features[truth == code].mean(axis=0) for code in range(len(view.labels))]
        return Fitted(self, {"means": np.stack(means)})

    def scores(self, arrays, part):
        apart = np.abs(features_of(part)[:, None] - arrays["means"][None]) ** self.power
        return -apart.sum(axis=2)


def test_a_pipeline_scores_as_scikit_learn_says_with_an_interval(make_release, tmp_path):
    root = make_release(per_class=16)
    for estimator in (make_pipeline(StandardScaler(), LogisticRegression()), RandomForestClassifier(7, random_state=0)):
        fitted = fieldmark.fit("folder", root, estimator, tmp_path / "run", backbone=Colors(), overwrite=True)
        answers = fitted.model.predict(_test_part(root), unit_of=None)
        truth = _labels(root, answers.items)
        predicted = [answers.labels.names[code] for code in answers.top(1)[:, 0]]
        card = fitted.scorecard
        assert card.metrics["top_1"].value == accuracy_score(truth, predicted)
        assert card.metrics["macro_f1_union"].value == pytest.approx(f1_score(truth, predicted, average="macro"))
        assert card.metrics["top_1"].low < card.metrics["top_1"].value
        learned = fitted.model.fitted.method.learned
        features = fitted.model.supply.supply(_test_part(root)).features["photo"]
        assert predicted == [answers.labels.names[code] for code in learned.predict(features)]
    assert not hasattr(estimator, "classes_")  # the object of the caller is left as it was


def _test_part(root):
    from fieldmark.views.open_benchmark import open_benchmark, open_release

    declared = fieldmark.benchmark("folder")
    return open_benchmark(declared, open_release(declared, root)).view.test.unlabeled()


def _labels(root, items):
    from fieldmark.views.open_benchmark import open_benchmark, open_release

    declared = fieldmark.benchmark("folder")
    table = open_benchmark(declared, open_release(declared, root)).items["test"]
    label_of = dict(table.select("item_id", "label").iter_rows())
    return [label_of[item] for item in items]


def test_a_model_of_own_objects_says_what_it_needs_and_answers_with_it(make_release, tmp_path):
    root = make_release()
    fitted = fieldmark.fit("folder", root, LogisticRegression(), tmp_path / "run", backbone=Colors())
    assert fitted.run.method == "LogisticRegression" and fitted.run.options["parameters"]["max_iter"] == 100
    own = json.loads((tmp_path / "run" / "model" / "model.json").read_text())["own"]
    assert own["backbone"]["name"] == "own:Colors" and "trust_code=True" in own["to_load"]
    with pytest.raises(InputError, match=r"pickled estimator, which can run any code .* trust_code=True"):
        fieldmark.load_model(tmp_path / "run")
    with pytest.raises(InputError, match=r"features of own:Colors .*, a backbone that was given as an object"):
        fieldmark.load_model(tmp_path / "run", trust_code=True)
    part = _test_part(root)
    expected = fitted.model.predict(part)
    estimator = fitted.model.fitted.method.learned
    for how in ({"trust_code": True}, {"method": estimator}):
        again = fieldmark.load_model(tmp_path / "run", backbone=Colors(), **how)
        assert (again.predict(part).scores == expected.scores).all()


def test_external_data_of_own_objects_are_unknown_until_declared(make_release, tmp_path):
    root = make_release()
    for said, recorded, words in (((), None, "unknown"), (["none"], [], "none"), (["my photos"], ["my photos"], "my")):
        how = {"backbone": Colors(), "external_data": said, "overwrite": True}
        fitted = fieldmark.fit("folder", root, "centroid", tmp_path / "run", **how)
        assert Run.read(tmp_path / "run").external_data == recorded
        assert words in fitted.run.external_data_in_words and words in fitted.model._repr_html_()
        assert ("External data: unknown" in fitted.model.card()) == (recorded is None)
    plain = fieldmark.fit("folder", root, LogisticRegression(), tmp_path / "plain", settings={"size": 32})
    assert plain.run.external_data == ["ImageNet, by the pre-trained weights of efficientnet_lite0"]


def test_a_method_is_given_by_its_name_or_as_an_object(make_release, tmp_path):
    root = make_release()
    named = fieldmark.fit("folder", root, "centroid", tmp_path / "a", backbone=Colors())
    given = fieldmark.fit("folder", root, Centroid(), tmp_path / "b", backbone=Colors())
    assert given.run.method == "centroid" and given.scorecard.metrics == named.scorecard.metrics
    own = fieldmark.fit("folder", root, Nearest(power=1.0), tmp_path / "c", backbone=Colors())
    assert own.run.method == "Nearest" and own.run.options == {"power": 1.0}
    with pytest.raises(
        InputError, match=r"Nearest, which is not part of Fieldmark.*load_model\(path, method=Nearest\)"
    ):
        fieldmark.load_model(tmp_path / "c", backbone=Colors())
    again = fieldmark.load_model(tmp_path / "c", method=Nearest, backbone=Colors())
    assert again.fitted.method == Nearest(1.0)
    with pytest.raises(MisuseError, match=r"There is no setting called 'power' here"):
        fieldmark.fit("folder", root, Nearest(), tmp_path / "d", settings={"power": 1})


def test_the_folder_of_a_run_has_a_name_where_none_is_given(make_release, tmp_path, monkeypatch):
    root = make_release()
    monkeypatch.chdir(tmp_path)
    assert str(fieldmark.fit("folder", root, "frequent").folder) == "runs/folder-frequent"


def test_what_is_no_method_is_refused(make_release, tmp_path):
    root = make_release()
    with pytest.raises(MisuseError, match=r"LinearSVC has no predict_proba .CalibratedClassifierCV gives it one"):
        fieldmark.fit("folder", root, LinearSVC(), tmp_path / "run")
    with pytest.raises(MisuseError, match="int is neither"):
        fieldmark.fit("folder", root, 3, tmp_path / "run")
    with pytest.raises(MisuseError, match="--search takes methods and backbones by name"):
        search = fieldmark.fitting.Search({"k": ("1", "3")})
        fieldmark.fit("folder", root, "knn", tmp_path / "run", backbone=Colors(), search=search)
    assert not (tmp_path / "run").exists()


def test_an_estimator_that_saw_only_some_labels_never_answers_the_others(make_release, tmp_path):
    class OneColumnTooMany(LogisticRegression):
        def predict_proba(self, X):
            chances = super().predict_proba(X)
            return np.column_stack([chances, chances[:, 0]])

    with pytest.raises(MisuseError, match="expected a probability for each"):
        fieldmark.fit("folder", make_release(), OneColumnTooMany(), tmp_path / "run", backbone=Colors())


def test_features_of_own_code_are_not_left_in_the_store(make_release, tmp_path):
    store = tmp_path / "store"
    fitted = fieldmark.fit("folder", make_release(), "centroid", tmp_path / "run", backbone=Colors(), store=store)
    assert not store.exists() or not list(store.glob("own-*"))
    assert any("were not stored" in remark for remark in fitted.run.remarks)
    assert pl.read_csv(tmp_path / "run" / "run.csv").height
