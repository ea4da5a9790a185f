from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import ClassVar

import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.fitting.fit_part import fit_on_train
from fieldmark.methods.frequent import Frequent
from fieldmark.registry import Registry
from fieldmark.runs.predictions import read_predictions
from fieldmark.runs.provenance import Run

LITTLE = {"backbone": "resnet10t", "weights": "random", "size": 32}


def test_the_folder_of_a_run_holds_everything_that_is_promised(make_release, tmp_path):
    result = fieldmark.fit("folder", make_release(), "frequent", tmp_path / "run")
    names = {str(path.relative_to(tmp_path / "run")) for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert names >= {
        "run.csv",
        "run.json",
        "scorecard.json",
        "scorecard-val.json",
        "predictions/val.parquet",
        "predictions/test.parquet",
        "model/model.json",
        "model/weights.safetensors",
    }
    provenance = json.loads((tmp_path / "run" / "run.json").read_text())
    assert provenance["sees"] == "item" and provenance["simulated"] is False and provenance["trained_on"] == ["train"]
    assert provenance["steps"][0]["step"] == "temperature"
    assert result.scorecard.split == "test"


def test_scoring_the_run_again_gives_the_scorecard_of_the_fit(make_release, tmp_path):
    root = make_release(flat=True)
    result = fieldmark.fit("folder", root, "knn", tmp_path / "run", settings=LITTLE, seed=4)
    for run in (tmp_path / "run", tmp_path / "run" / "run.csv"):
        assert fieldmark.score("folder", run, data=root).metrics == result.scorecard.metrics


@pytest.mark.parametrize("method", ["centroid", "knn", "prototypes", "em", "linear"])
def test_a_loaded_model_answers_as_the_fitted_one(make_release, tmp_path, method):
    root = make_release()
    fieldmark.fit("folder", root, method, tmp_path / "run", settings=LITTLE)
    stored = read_predictions(tmp_path / "run" / "predictions" / "test.parquet")
    again = fieldmark.predict(tmp_path / "run", root)
    assert again.items == stored.items
    assert again.scores == pytest.approx(stored.scores, rel=1e-4, abs=1e-4)
    if method == "em":
        return  # its answer to one photo depends on which others are asked about
    photo = fieldmark.load_model(tmp_path / "run").predict_photos([root / "test/Alba alba/0-4.jpg"])
    assert photo.scores[0] == pytest.approx(stored.select(["0-4.jpg"]).scores[0], rel=1e-4, abs=1e-4)


def test_the_same_run_twice_gives_the_same_answers(make_release, tmp_path):
    root = make_release()
    for name in ("one", "two"):
        fieldmark.fit("folder", root, "linear", tmp_path / name, settings=LITTLE)
    assert (tmp_path / "one" / "run.csv").read_bytes() == (tmp_path / "two" / "run.csv").read_bytes()


def test_val_joins_the_training_only_where_it_was_drawn(make_release, tmp_path):
    official = fieldmark.fit("folder", make_release(name="a"), "frequent", tmp_path / "official")
    drawn = fieldmark.fit("folder", make_release(flat=True, name="b"), "frequent", tmp_path / "drawn")
    assert official.run.trained_on == ["train"] and drawn.run.trained_on == ["train", "val"]


def test_without_test_labels_val_is_scored(make_release, tmp_path):
    root = make_release()
    shutil.rmtree(root / "test")
    result = fieldmark.fit("folder", root, "frequent", tmp_path / "run")
    assert result.scorecard.split == "val"
    assert not (tmp_path / "run" / "predictions" / "test.parquet").exists()


def test_the_mark_of_a_world_reaches_run_model_and_scorecard(make_release, tmp_path):
    root = make_release()
    (root / "WORLD.json").write_text('{"fieldmark_world": 1}')
    result = fieldmark.fit("folder", root, "frequent", tmp_path / "run")
    assert result.run.simulated and result.scorecard.provenance["simulated"]
    assert fieldmark.load_model(tmp_path / "run").simulated


def test_a_truncated_photo_is_refused_and_nothing_is_left_behind(make_release, tmp_path):
    root = make_release()
    photo = root / "train/Alba alba/0-1.jpg"
    photo.write_bytes(photo.read_bytes()[:400])
    with pytest.raises(InputError, match=r"train/Alba alba/0-1.jpg: found a truncated photo"):
        fieldmark.fit("folder", root, "centroid", tmp_path / "run", settings=LITTLE)
    assert not (tmp_path / "run").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]


def test_an_existing_run_is_not_overwritten_by_accident(make_release, tmp_path):
    root = make_release()
    fieldmark.fit("folder", root, "frequent", tmp_path / "run")
    with pytest.raises(MisuseError, match="already exists"):
        fieldmark.fit("folder", root, "frequent", tmp_path / "run")
    fieldmark.fit("folder", root, "frequent", tmp_path / "run", overwrite=True)


@dataclass(frozen=True)
class Peeker(Frequent):
    """Looks at everything it is given."""

    seen: ClassVar[list] = []

    def fit(self, view):
        Peeker.seen.append(view)
        return super().fit(view)


@dataclass(frozen=True)
class PastPeeker(Peeker):
    sees: ClassVar = "past"


@dataclass(frozen=True)
class LabelPeeker(Peeker):
    learns_from: ClassVar = ("train", "hidden labels")


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (PastPeeker, r"'peeker' is shown past at prediction time; the task allows item or unit or test set\."),
        (LabelPeeker, r"'peeker' learns from hidden labels; the task allows train and val and unlabeled and coarse\."),
    ],
)
def test_a_method_that_sees_more_than_the_task_allows_is_refused(tmp_path, monkeypatch, method, sentence):
    entries = {"peeker": (f"{__name__}:{method.__name__}", "")}
    monkeypatch.setattr("fieldmark.fitting.configuration.METHODS", Registry("method", entries))
    Peeker.seen.clear()
    with pytest.raises(MisuseError, match=sentence):
        fieldmark.fit("folder", tmp_path / "nowhere", "peeker", tmp_path / "run")
    assert not Peeker.seen


def test_a_method_that_sees_the_test_set_says_so_and_is_refused_where_the_task_forbids_it(make_release, tmp_path):
    result = fieldmark.fit("folder", make_release(), "em", tmp_path / "run", settings=LITTLE)
    card = json.loads((tmp_path / "run" / "scorecard.json").read_text())
    assert result.run.sees == card["provenance"]["sees"] == "test set"
    with pytest.raises(MisuseError, match=r"'em' is shown test set .* allows item or unit or past"):
        fieldmark.fit("fungitastic/temporal", tmp_path / "nowhere", "em", tmp_path / "other")


def test_what_no_method_answers_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(MisuseError, match=r"asks for masks of each photo, .* `fieldmark score`"):
        fieldmark.fit("fungitastic-mini/segmentation", tmp_path / "nowhere", "frequent", tmp_path / "run")


def test_a_method_that_answers_item_by_item_is_never_given_the_test_set(make_release):
    from fieldmark.benchmarks import BENCHMARKS
    from fieldmark.releases import open_dataset
    from fieldmark.views.open_benchmark import open_benchmark

    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", make_release()))
    Peeker.seen.clear()
    fit_on_train(Peeker(), [], opened.view, opened)
    assert opened.view.test is not None and Peeker.seen[0].test is None


def test_thresholds_and_choices_do_not_depend_on_the_labels_of_test(make_release, tmp_path):
    root = make_release()
    first = fieldmark.fit("folder", root, "linear", tmp_path / "one", settings=LITTLE)
    for label in ("Alba alba", "Rubra vera"):
        (root / "test" / label).rename(root / "test" / f"{label}.moved")
    (root / "test/Alba alba.moved").rename(root / "test/Rubra vera")
    (root / "test/Rubra vera.moved").rename(root / "test/Alba alba")
    second = fieldmark.fit("folder", root, "linear", tmp_path / "two", settings=LITTLE)
    assert first.run.steps == second.run.steps and first.run.options == second.run.options
    one, two = (read_predictions(tmp_path / name / "predictions/test.parquet") for name in ("one", "two"))
    assert two.select(one.items).scores == pytest.approx(one.scores, rel=1e-4, abs=1e-4)


def test_annotations_that_were_added_are_declared_wherever_a_run_is_told_of(make_release, tmp_path):
    boxes = "boxes around the caps of all training photos"
    result = fieldmark.fit("folder", make_release(), "frequent", tmp_path / "run", extra_annotations=[boxes])
    assert Run.read(tmp_path / "run").extra_annotations == [boxes]
    assert result.scorecard.provenance["extra_annotations"] == [boxes]
    assert f"Extra annotations: {boxes}" in (tmp_path / "run/model/README.md").read_text()
    without = fieldmark.fit("folder", make_release(name="other"), "frequent", tmp_path / "without")
    assert "extra_annotations" not in json.loads((tmp_path / "without/run.json").read_text())
    assert "extra_annotations" not in without.scorecard.provenance
