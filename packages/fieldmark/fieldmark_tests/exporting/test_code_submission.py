"""The code submission: a folder whose run.sh answers as the model does, with nothing in the environment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import polars as pl
import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.exporting.code_submission import IMAGES, METADATA, OUTPUT, answer_submission, export_submission, main

LINEAR = {"size": 64, "weights": "random", "l2": 0.1}


@pytest.fixture(scope="module")
def frequent(snake_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the country alone, which reads no photo: quick to start in a process of its own."""
    out = tmp_path_factory.mktemp("frequent") / "run"
    fieldmark.fit("snakeclef-2020", snake_world, "frequent", out, steps=["country-prior"])
    return out


def test_run_sh_gives_the_same_predictions_in_an_empty_environment(snake_world, frequent, tmp_path, run_main):
    code, out, _ = run_main("export", "snakeclef-2020", "--model", frequent, tmp_path / "submission", "--json")
    assert code == 0 and json.loads(out)["classes"] == 8
    asked = {
        IMAGES: snake_world / "test_images",
        METADATA: snake_world / "test_metadata.csv",
        OUTPUT: tmp_path / "answers" / "predictions.csv",
    }
    variables = [f"{name}={value}" for name, value in asked.items()]
    done = subprocess.run(
        ["env", "-i", *variables, "/bin/bash", str(tmp_path / "submission" / "run.sh")],
        check=False, capture_output=True, text=True, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    theirs, ours = (pl.read_csv(path).sort("hashed_id") for path in (asked[OUTPUT], frequent / "run.csv"))
    assert theirs.columns == ours.columns and theirs.equals(ours)
    assert json.loads((tmp_path / "submission" / "aicrowd.json").read_text())["debug"] is False
    pinned = (tmp_path / "submission" / "requirements.txt").read_text()
    assert "polars==" in pinned and "torch==" not in pinned  # no photo is looked at


def test_photos_are_answered_as_the_run_answered_them(snake_world, tmp_path):
    fieldmark.fit("snakeclef-2020", snake_world, "linear", tmp_path / "run", settings=LINEAR, steps=["country-prior"])
    export_submission(tmp_path / "run", tmp_path / "submission")
    assert "torch==" in (tmp_path / "submission" / "requirements.txt").read_text()
    metadata, output = snake_world / "test_metadata.csv", tmp_path / "predictions.csv"
    assert answer_submission(tmp_path / "submission" / "model", snake_world / "test_images", metadata, output) == 24
    theirs, ours = (pl.read_csv(path).sort("hashed_id") for path in (output, tmp_path / "run" / "run.csv"))
    numbers = theirs.drop("hashed_id").to_numpy() - ours.drop("hashed_id").to_numpy()
    assert abs(numbers).max() < 1e-6


def test_a_person_may_tell_the_country_of_a_photo(snake_world, frequent, run_main):
    photo = next((snake_world / "test_images").iterdir())
    country = pl.read_csv(snake_world / "train_labels.csv").filter(pl.col("country") != "UNKNOWN")["country"][0]
    answers = []
    for more in ((), ("--country", country), ("--country", "Atlantis")):
        code, out, _ = run_main("identify", photo, "--model", frequent, "--json", *more)
        assert code == 0
        answers.append(json.loads(out)["names"])
    assert answers[0] == answers[2] != answers[1]


def test_what_is_missing_is_said(snake_world, frequent, tmp_path, capsys):
    assert main(frequent, {}) == 2
    assert f"found no {IMAGES}" in capsys.readouterr().err
    (tmp_path / "broken.csv").write_text('a,b\n"x')  # another file of that folder is none of our business
    (tmp_path / "meta.csv").write_text("hashed_id,country\nnobody,Kenya\n")
    asked = {IMAGES: str(snake_world / "test_images"), METADATA: str(tmp_path / "meta.csv"), OUTPUT: "x.csv"}
    assert main(frequent, asked) == 1
    assert "line 2: found the id 'nobody', expected a photo" in capsys.readouterr().err
    (tmp_path / "meta.csv").write_text("photo,country\nnobody,Kenya\n")
    assert main(frequent, asked) == 1
    assert "found no column 'hashed_id'" in capsys.readouterr().err
    with pytest.raises(InputError, match="no such file"):
        answer_submission(frequent, snake_world / "test_images", tmp_path / "none.csv", tmp_path / "x.csv")


def test_a_model_that_cannot_be_submitted_is_refused(snake_world, tmp_path, make_release):
    settings = {"finder": "boxes", "classifier": "centroid", "size": 64, "weights": "random"}
    fieldmark.fit("snakeclef-2020", snake_world, "detect", tmp_path / "boxed", settings=settings)
    with pytest.raises(MisuseError, match="crops by boxes, and the photos of the test come without any"):
        export_submission(tmp_path / "boxed", tmp_path / "out")
    fieldmark.fit("folder", make_release(), "frequent", tmp_path / "other")
    with pytest.raises(MisuseError, match="answers folder, and the submission is one of snakeclef-2020"):
        export_submission(tmp_path / "other", tmp_path / "out")
    assert not (tmp_path / "out").exists()
