"""Checked answers that a method learns from as well, and those it must not learn from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.cli.submit import declared_external
from fieldmark.errors import InputError
from fieldmark.fitting import fit
from fieldmark.fitting.additions import with_added
from fieldmark.runs.provenance import Run
from fieldmark.views.open_benchmark import open_benchmark, open_release
from fieldmark_tests.fixtures import COLORS, save_photo


@pytest.fixture
def release(make_release) -> Path:
    return make_release()


def table(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(["file,label,observation,drawn", *rows]) + "\n")
    return path


def opened_on(root: Path):
    benchmark = BENCHMARKS["folder"]
    return open_benchmark(benchmark, open_release(benchmark, root))


def test_new_photos_are_learned_from_and_random_ones_are_not(release, tmp_path):
    for number in range(4):
        save_photo(tmp_path / "new" / f"{number}.jpg", (60, 200, 60), 700 + number)
    checked = table(
        tmp_path / "new" / "checked.csv",
        *("0.jpg,Viridis nova,a,uncertain", "1.jpg,Viridis nova,a,uncertain"),
        *("2.jpg,Rubra vera,b,uncertain", "3.jpg,Rubra vera,c,random"),
    )
    before = opened_on(release)
    added = with_added(before, checked)
    train = added.opened.view.train
    assert len(train) == len(before.view.train) + 3
    assert added.opened.view.labels.names == (*before.view.labels.names, "Viridis nova")
    assert added.opened.view.labels.decode(train.truth[-3:]) == ["Viridis nova", "Viridis nova", "Rubra vera"]
    assert train.items["observation_id"].to_list()[-3:] == ["a", "a", "b"]
    assert train.media.read(train.item_ids[-1]) == (tmp_path / "new" / "2.jpg").read_bytes()
    assert train.media.read(train.item_ids[0]) == before.view.train.media.read(train.item_ids[0])
    assert "1 that were drawn at random were left out" in " ".join(added.remarks)


def test_labels_of_train_are_corrected_and_those_of_val_and_test_are_not(release, tmp_path):
    wrong = next(iter(sorted((release / "train" / "Alba alba").iterdir())))
    val = next((release / "val" / "Alba nigra").iterdir())
    test = next((release / "test" / "Alba nigra").iterdir())
    copy = tmp_path / "copy.jpg"
    shutil.copyfile(test, copy)
    checked = table(
        tmp_path / "checked.csv",
        *(f"{path},Rubra vera,{number},uncertain" for number, path in enumerate([wrong, val, test, copy])),
    )
    before = opened_on(release)
    added = with_added(before, checked)
    assert len(added.opened.view.train) == len(before.view.train)
    changed = np.flatnonzero(added.opened.view.train.truth != before.view.train.truth)
    assert [before.view.train.items["media_ids"][int(row)][0] for row in changed] == [wrong.name]
    assert added.opened.truth["test"] == before.truth["test"]
    assert "3 lie in val or test" in " ".join(added.remarks)


def test_a_fit_says_what_was_added(release, tmp_path):
    for number in range(3):
        save_photo(tmp_path / f"{number}.jpg", (60, 200, 60), 700 + number)
    checked = table(tmp_path / "checked.csv", *(f"{number}.jpg,Viridis nova,{number},uncertain" for number in range(3)))
    result = fit("folder", release, "centroid", tmp_path / "run", settings={"size": 32}, add=checked)
    assert "Viridis nova" in result.model.labels.names
    record = json.loads((tmp_path / "run" / "model" / "model.json").read_text())["trained"]["added"]
    assert record["items"] == 3 and record["corrected"] == 0
    for said in (Run.read(tmp_path / "run").external_data, result.scorecard.provenance["external_data"]):
        assert any("3 photos that are not in the release, added from checked.csv" in one for one in said)
    assert "not in the release, added from checked.csv" in declared_external(tmp_path / "run" / "run.csv", "")
    assert "3 checked photos were added" in " ".join(result.run.remarks)
    save_photo(tmp_path / "asked.jpg", (60, 200, 60), 1)
    save_photo(tmp_path / "other.jpg", COLORS["Alba nigra"], 1)
    best = result.model.predict_photos([tmp_path / "asked.jpg", tmp_path / "other.jpg"]).top(1)[:, 0]
    assert result.model.labels.decode(best) == ["Viridis nova", "Alba nigra"]


def test_photos_that_are_not_in_the_release_are_external_data_by_name_and_digest(release, tmp_path):
    save_photo(tmp_path / "new.jpg", (60, 200, 60), 700)
    shutil.copyfile(sorted((release / "train" / "Alba alba").iterdir())[0], tmp_path / "copy.jpg")
    checked = table(tmp_path / "checked.csv", "new.jpg,Rubra vera,a,", "copy.jpg,Alba alba,b,")
    added = with_added(opened_on(release), checked)
    (sentence,) = added.external_data
    assert sentence.startswith("1 photos that are not in the release, added from checked.csv (SHA-256 of all of them ")
    again = with_added(opened_on(release), checked).external_data
    save_photo(tmp_path / "new.jpg", (60, 200, 60), 701)
    assert again == (sentence,) and with_added(opened_on(release), checked).external_data != (sentence,)
    (tmp_path / "new.jpg").unlink()
    inside = with_added(opened_on(release), table(tmp_path / "checked.csv", "copy.jpg,Alba alba,b,"))
    assert inside.external_data == ()


@pytest.mark.parametrize(
    ("row", "words"),
    [("gone.jpg,a,,", "line 2.*not there"), ("checked.csv,a,,", "line 2.*a photo"), ("x.jpg,,,", "line 2.*no label")],
)
def test_a_table_at_fault_is_refused_with_its_line(release, tmp_path, row, words):
    with pytest.raises(InputError, match=words):
        with_added(opened_on(release), table(tmp_path / "checked.csv", row))


def test_two_labels_for_one_file_are_refused(release, tmp_path):
    save_photo(tmp_path / "0.jpg", (60, 200, 60), 7)
    with pytest.raises(InputError, match="two labels"):
        with_added(opened_on(release), table(tmp_path / "checked.csv", "0.jpg,a,,", "0.jpg,b,,"))
