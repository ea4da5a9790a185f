"""A fit with a split file: other parts than the benchmark's, said wherever a number stands."""

from __future__ import annotations

import json

import polars as pl
import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.splits.files import Split, read_split


@pytest.fixture
def given(make_release, tmp_path):
    """A release with its own parts, and a split that turns them around: test learns, train is asked."""
    root = make_release()
    turned = {"train": "test", "val": "val", "test": "train"}
    paths = [path.relative_to(root).as_posix() for path in sorted(root.rglob("*.jpg"))]
    table = pl.DataFrame({"id": paths, "part": [turned[path.split("/")[0]] for path in paths]})
    Split(table, {"seed": 0}).write(tmp_path / "mine.csv")
    return root, tmp_path / "mine.csv"


def test_the_parts_are_those_of_the_file_and_run_scorecard_and_page_say_so(given, tmp_path):
    root, split = given
    result = fieldmark.fit("folder", root, "frequent", tmp_path / "run", split=split)
    assert result.scorecard.items == 12 and result.run.trained_on == ["train"]
    digest = read_split(split).digest
    assert result.run.split["digest"] == digest and result.run.split["file"] == "mine.csv"
    assert json.loads((tmp_path / "run" / "scorecard.json").read_text())["provenance"]["split"]["digest"] == digest
    assert any(remark.startswith("NOT THE OFFICIAL SPLIT.") for remark in result.run.remarks)
    page = fieldmark.report([tmp_path / "run"], tmp_path / "page.html").read_text(encoding="utf-8")
    assert "NOT THE OFFICIAL SPLIT." in page
    plain = fieldmark.fit("folder", root, "frequent", tmp_path / "plain")
    assert plain.run.split is None and "split" not in json.loads((tmp_path / "plain" / "run.json").read_text())
    with pytest.raises(InputError, match="found the split of the benchmark"):
        fieldmark.report([tmp_path / "run", tmp_path / "plain"], tmp_path / "both.html")


def test_scoring_and_predicting_again_use_the_split_of_the_run(given, tmp_path):
    root, split = given
    result = fieldmark.fit("folder", root, "frequent", tmp_path / "run", split=split)
    assert fieldmark.score("folder", tmp_path / "run", data=root).metrics == result.scorecard.metrics
    assert len(fieldmark.predict(tmp_path / "run", root).items) == 12
    with pytest.raises(MisuseError, match=r"trained with the split mine.csv .* which is not beside it"):
        fieldmark.predict(fieldmark.load_model(tmp_path / "run"), root)
    (tmp_path / "run" / "split.csv").write_text("id,part\na,train\n")
    (tmp_path / "run" / "split.json").unlink()
    with pytest.raises(InputError, match="with which the run was made"):
        fieldmark.score("folder", tmp_path / "run", data=root)


def test_an_observation_on_both_sides_is_called_a_leak(given, tmp_path):
    root, split = given
    names = [path.relative_to(root).as_posix() for path in sorted(root.rglob("Alba alba/*.jpg"))]
    (root / "observations.csv").write_text("file,observation\n" + f"{names[0]},o1\n{names[1]},o1\n")
    parts = pl.read_csv(split).with_columns(
        part=pl.when(pl.col("id") == names[0]).then(pl.lit("test")).otherwise("part")
    )
    Split(parts).write(split)
    result = fieldmark.fit("folder", root, "frequent", tmp_path / "run", split=split)
    assert result.run.leaks == ["1 observation(s) lie in train and in test (o1): scores on them are too high."]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda parts: parts.head(10), "no line for 14 of 24"),
        (lambda parts: parts.with_columns(id="id" + pl.col("id")), "line 2: found 'idtest/"),
        (lambda parts: parts.with_columns(part=pl.lit("train")), "nothing for val"),
    ],
)
def test_a_split_that_does_not_fit_is_refused_and_nothing_is_written(given, tmp_path, change, sentence):
    root, split = given
    Split(change(pl.read_csv(split))).write(split)
    with pytest.raises(InputError, match=sentence):
        fieldmark.fit("folder", root, "frequent", tmp_path / "run", split=split)
    assert not (tmp_path / "run").exists()
