"""Time order and adapted runs, from a release on disk to the folder of a run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.runs.predictions import read_predictions

LITTLE = {"backbone": "resnet10t", "weights": "random", "size": 32}
NETWORK = {"recipe": "scratch", "size": 32, "epochs": 1, "batch": 16, "workers": 1}
OPEN_STEPS = ["temperature", "max-softmax", "unknown-probability", "prior-online"]


@pytest.fixture(scope="module")
def streamed(fungi_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("temporal") / "run"
    fieldmark.fit("fungitastic/temporal", fungi_world, "centroid", out, settings=LITTLE)
    return out


def values(card) -> dict[str, float]:
    return {name: score.value for name, score in card.metrics.items()}


def test_an_observation_is_one_item_and_scores_are_shown_by_month(streamed, fungi_world):
    card = json.loads((streamed / "scorecard.json").read_text())
    observations = pl.read_csv(fungi_world / "metadata/FungiTastic/FungiTastic-OpenSet-Test.csv")["observationID"]
    assert card["items"] == card["units"] == observations.n_unique() < len(observations)
    assert set(card["groups"]["month"]) <= {f"{month:02d}" for month in range(1, 13)}
    assert card["provenance"]["sees"] == "item"


def test_a_static_method_answers_in_time_order_as_in_any_other(streamed, fungi_world):
    model = fieldmark.load_model(streamed)
    answered = fieldmark.predict(streamed, fungi_world)
    stored = read_predictions(streamed / "predictions/test.parquet")
    np.testing.assert_allclose(answered.select(stored.items).scores, stored.scores, rtol=1e-4, atol=1e-5)
    assert [step.name for step in model.steps] == ["temperature", "max-softmax"]


def test_the_order_of_the_release_within_a_day_changes_no_score(fungi_world, tmp_path):
    """The lines of every metadata file in reverse: the same days, other orders within them."""
    given = {"settings": LITTLE, "steps": OPEN_STEPS}
    first = fieldmark.fit("fungitastic/temporal", fungi_world, "centroid", tmp_path / "a", **given)
    other = tmp_path / "world"
    shutil.copytree(fungi_world, other, symlinks=True)
    for name in ("OpenSet-Val", "OpenSet-Test"):
        path = other / f"metadata/FungiTastic/FungiTastic-{name}.csv"
        head, *lines = path.read_text().splitlines()
        path.write_text("\n".join([head, *reversed(lines)]) + "\n")
    second = fieldmark.fit("fungitastic/temporal", other, "centroid", tmp_path / "b", **given)
    assert first.run.sees == "past"
    for part in ("val", "test"):
        assert values(second.scorecards[part]) == pytest.approx(values(first.scorecards[part]), abs=1e-6, nan_ok=True)


def test_without_an_open_set_of_mini_the_closed_set_is_meant(fungi_world, tmp_path):
    result = fieldmark.fit("fungitastic-mini/temporal", fungi_world, "centroid", tmp_path / "run", settings=LITTLE)
    assert result.run.benchmark == "fungitastic-mini/temporal-closed"
    assert any("has no open set for fungitastic-mini/temporal" in remark for remark in result.run.remarks)
    assert "macro_f1_all" in result.scorecard.metrics and "f1_unknown" not in result.scorecard.metrics
    again = fieldmark.score("fungitastic-mini/temporal", tmp_path / "run", data=fungi_world)
    assert values(again) == pytest.approx(values(result.scorecard), abs=1e-6)


@pytest.mark.parametrize("variant", ["day-batch", "delayed-labels"])
def test_variants_run_from_the_release_to_the_scorecard(fungi_world, tmp_path, variant):
    name = f"fungitastic/temporal-{variant}"
    result = fieldmark.fit(name, fungi_world, "frequent", tmp_path / "run", steps=OPEN_STEPS)
    assert result.scorecard.benchmark == name and result.run.sees == "past"


def test_labels_that_the_release_does_not_hold_cannot_be_told_later(fungi_world, tmp_path):
    root = tmp_path / "world"
    shutil.copytree(fungi_world, root, symlinks=True)
    path = root / "metadata/FungiTastic/FungiTastic-OpenSet-Test.csv"
    pl.read_csv(path, infer_schema=False).drop("category_id", "scientificName").write_csv(path)
    closed = root / "metadata/FungiTastic/FungiTastic-ClosedSet-Test.csv"
    pl.read_csv(closed, infer_schema=False).drop("category_id", "scientificName").write_csv(closed)
    (root / "metadata/FungiTastic/FungiTastic-DNA-Test.csv").unlink()
    with pytest.raises(InputError, match=r"no labels for test.* 14 days later"):
        fieldmark.fit("fungitastic/temporal-delayed-labels", root, "frequent", tmp_path / "run")


def test_a_run_is_adapted_from_its_stored_predictions(streamed, tmp_path, run_main):
    code, printed, errors = run_main("adapt", streamed, "--out", tmp_path / "out")
    assert code == 0, errors
    assert "sees the past" in printed and "fieldmark compare" in printed
    run = json.loads((tmp_path / "out/run.json").read_text())
    names = [step["step"] for step in run["steps"]]
    assert names == ["temperature", "max-softmax", "unknown-probability", "prior-online"]
    assert any("nothing was trained again" in remark for remark in run["remarks"])
    model = fieldmark.load_model(tmp_path / "out")
    assert [step.name for step in model.steps] == names


@pytest.mark.parametrize("step", ["prior-em", "prior-map", "prior-confusion"])
def test_a_run_in_time_order_is_not_adapted_to_the_whole_test_set(streamed, tmp_path, run_main, step):
    code, _, errors = run_main("adapt", streamed, "--step", step, "--out", tmp_path / "out")
    assert code == 2 and f"The step '{step}' is shown test set" in errors
    assert not (tmp_path / "out").exists()


def test_an_open_set_is_adapted_with_a_frequency_of_unknown_and_decides_anew(fungi_world, tmp_path):
    fieldmark.fit("fungitastic/open", fungi_world, "openset", tmp_path / "run", settings=LITTLE)
    adapted = fieldmark.adapt(tmp_path / "run", tmp_path / "out")
    names = [step.name for step in adapted.model.steps]
    assert names == ["temperature", "unknown-probability", "prior-em", "unknown-threshold"]
    table = pl.read_csv(tmp_path / "out/prior.csv", schema_overrides={"label": pl.String})
    assert table["label"].last() == "-1" and table["estimated"].sum() == pytest.approx(1)
    assert read_predictions(tmp_path / "out/predictions/test.parquet").decisions is not None
    stored = read_predictions(tmp_path / "out/predictions/test.parquet")
    again = fieldmark.predict(tmp_path / "out", fungi_world)
    np.testing.assert_allclose(again.select(stored.items).probabilities(), stored.probabilities(), atol=1e-3)


def test_normalization_follows_what_was_shown_and_a_run_of_finetune_needs_no_training_for_it(fungi_world, tmp_path):
    plain = fieldmark.fit("fungitastic-mini/temporal", fungi_world, "finetune", tmp_path / "run", settings=NETWORK)
    adapted = fieldmark.adapt(tmp_path / "run", tmp_path / "out", method="norm-online", settings={"norm_strength": 8.0})
    assert adapted.run.method == "norm-online" and adapted.run.sees == "past"
    before, after = (read_predictions(tmp_path / f"{name}/predictions/test.parquet") for name in ("run", "out"))
    dates = fieldmark.dataset("fungitastic", fungi_world, "Mini").observations.select("observation_id", "date")
    date_of = dict(dates.iter_rows())
    first = min(date_of[item] for item in before.items)
    early = [item for item in before.items if date_of[item] == first]
    temperature = plain.model.steps[0].temperature / adapted.model.steps[0].temperature
    same = before.select(early).scores * temperature
    np.testing.assert_allclose(
        np.exp(same) / np.exp(same).sum(axis=1, keepdims=True), after.select(early).probabilities(), atol=2e-3
    )
    assert np.abs(before.probabilities() - after.probabilities()).max() > 1e-3  # later days are answered differently


def test_a_network_without_statistics_and_a_run_of_another_method_are_refused(streamed, fungi_world, tmp_path):
    with pytest.raises(MisuseError, match="no batch normalization"):
        settings = NETWORK | {"network": "vit_tiny_patch16_224", "size": 224}
        fieldmark.fit("fungitastic-mini/temporal", fungi_world, "norm-online", tmp_path / "run", settings=settings)
    with pytest.raises(MisuseError, match="'norm-online' cannot answer with what the method 'centroid'"):
        fieldmark.adapt(streamed, tmp_path / "out", method="norm-online")
