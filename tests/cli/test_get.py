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
from fieldmark.getting.releases import fgvcx_fungi_2018
from tests.getting.server import serving

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
