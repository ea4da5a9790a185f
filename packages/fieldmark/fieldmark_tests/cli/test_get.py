"""Promises about `fieldmark get` on the command line."""

from __future__ import annotations

import hashlib
import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from fieldmark.cli import get as verb
from fieldmark.releases.download.manifests import fgvcx_fungi_2018
from fieldmark_tests.releases.download.server import serving

app = typer.Typer(rich_markup_mode="markdown")
verb.add_to(app)


@app.callback()
def _verbs() -> None:
    pass


def run(*words: object) -> Any:
    return CliRunner().invoke(app, ["get", *map(str, words)])


def test_the_help_shows_an_example() -> None:
    assert "fieldmark get fungitastic" in run("--help").output


def test_the_list_shows_sizes_tags_checksums_and_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "train.json").write_text("{}")
    result = run("fgvcx-fungi-2018", tmp_path, "--list")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    (annotations,) = [line for line in lines if line.startswith("train_val_annotations.tgz")]
    assert "about 2.9 MB" in annotations
    assert "annotations, train, val" in annotations
    assert "md5" in annotations
    assert annotations.rstrip().endswith("in place")
    (photos,) = [line for line in lines if line.startswith("fungi_test.tgz")]
    assert photos.rstrip().endswith("to download")


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("plantclef-2020", "lifeclef-2020-plant"),
        ("birdclef-2020", "lifeclef-2020-bird-monophone"),
        ("geolifeclef-2020", "lifeclef-2020-geo"),
        ("snakeclef-2020", "snake-species-identification-challenge"),
    ],
)
def test_what_needs_an_account_says_where_to_register_and_how_it_must_lie(name: str, page: str, tmp_path: Path) -> None:
    listed = run(name, "--list").stdout
    assert f"https://www.aicrowd.com/challenges/{page}" in listed and "ROOT/" in listed
    assert "none published" in listed and f"fieldmark check {name}" in listed
    missing = run(name, tmp_path)
    assert missing.exit_code == 1 and page in missing.stderr and str(tmp_path) in missing.stderr
    assert "It must lie on disk as" in missing.stdout


def test_a_release_that_was_put_there_by_hand_is_in_place(tmp_path: Path) -> None:
    for path in ("round4_classes.csv", "train_labels.csv", "train_images/a.jpg"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("x")
    result = run("snakeclef-2020", tmp_path)
    assert result.exit_code == 0, result.output
    assert "3 of 3 files" in result.stdout and f"fieldmark check snakeclef-2020 {tmp_path}" in result.stdout


def test_license_and_homepage_come_before_the_download(tmp_path: Path) -> None:
    result = run("semi-inat-2021", tmp_path, "--list", "--json")
    assert "license: non-commercial" in result.stderr
    assert "https://github.com/cvl-umass/semi-inat-2021" in result.stderr
    assert len(json.loads(result.stdout)) == 12


@pytest.fixture
def copy_of_annotations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for one archive of the release, which then knows the checksum of the stand-in."""
    (tmp_path / "train.json").write_text("{}")
    archive = tmp_path / "downloads" / "train_val_annotations.tgz"
    archive.parent.mkdir()
    with tarfile.open(archive, "w:gz") as opened:
        opened.add(tmp_path / "train.json", "train.json")
    (annotations, *others) = fgvcx_fungi_2018.FGVCX_FUNGI_2018.files
    digest = hashlib.md5(archive.read_bytes()).hexdigest()
    changed = replace(fgvcx_fungi_2018.FGVCX_FUNGI_2018, files=(replace(annotations, md5=digest), *others))
    monkeypatch.setattr(fgvcx_fungi_2018, "FGVCX_FUNGI_2018", changed)
    return archive


def test_a_copy_from_a_colleague_is_enough(copy_of_annotations: Path, tmp_path: Path) -> None:
    words = ("--only", "annotations,train", "--found", copy_of_annotations.parent, "--json")
    result = run("fgvcx-fungi-2018", tmp_path / "root", *words)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["files"][0]["outcome"] == "found"
    assert (tmp_path / "root" / "train.json").exists()


def test_a_mirror_can_be_given(copy_of_annotations: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with serving() as site:
        site.put("copies/train_val_annotations.tgz", copy_of_annotations.read_bytes())
        words = ("--only", "train_val_annotations.tgz", "--mirror", f"{site.url}/copies", "--keep-archives")
        result = run("fgvcx-fungi-2018", tmp_path / "root", *words)
    assert "1 of 1 files of fgvcx-fungi-2018" in result.output
    assert (tmp_path / "root" / "train_val_annotations.tgz").exists()


def test_what_cannot_be_had_ends_with_exit_code_1_and_says_what_to_do(tmp_path: Path) -> None:
    result = run("fungitastic", tmp_path, "--only", "captions")
    assert result.exit_code == 1
    assert "0 of 1 files" in result.stdout
    assert "kaggle.com" in result.stderr
