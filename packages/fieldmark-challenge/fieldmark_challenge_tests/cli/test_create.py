"""`fieldmark challenge create`: what it asks and prints."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from fieldmark.cli.main import app
from fieldmark_challenge.cli import create
from fieldmark_challenge_tests.platform import truth_text


def test_create_prints_a_warning_of_ids_that_sort_by_class_and_keeps_its_json_apart(tmp_path):
    rows = [f"photo{number},class {number // 20}" for number in range(100)]
    (tmp_path / "truth.csv").write_text("\n".join(["id,label", *rows, ""]))
    words = ["challenge", "create", "leaking", "--benchmark", "folder", "--truth", str(tmp_path / "truth.csv")]
    done = CliRunner().invoke(app, [*words, "--folder", str(tmp_path / "platform"), "--json"])
    assert done.exit_code == 0 and "warning: The order of the ids tells labels" in done.stderr
    assert '"warnings": [' in done.stdout and "warning:" not in done.stdout
    again = CliRunner().invoke(app, ["challenge", "data", "leaking", "--renew", "--folder", str(tmp_path / "platform")])
    assert again.exit_code == 0 and "items.csv" in again.stdout


@pytest.fixture
def words(tmp_path) -> list[str]:
    (tmp_path / "truth.csv").write_text(truth_text())
    place = ["--truth", str(tmp_path / "truth.csv"), "--folder", str(tmp_path / "platform")]
    return ["challenge", "create", "birds", "--benchmark", "folder", *place]


def test_a_new_challenge_is_a_draft_and_says_what_participants_would_miss(words, tmp_path):
    made = CliRunner().invoke(app, words)
    assert made.exit_code == 0 and "until `fieldmark challenge publish birds`" in made.stdout
    for lack in ("no title of its own", "no description", "offers no data"):
        assert f"{lack}" in made.stderr
    place = ["--folder", str(tmp_path / "platform")]
    shown = json.loads(CliRunner().invoke(app, ["challenge", "show", "birds", "--json", *place]).stdout)
    assert shown["published_at"] is None and shown["title"] == "birds"
    refused = CliRunner().invoke(app, ["challenge", "publish", "birds", *place])
    assert refused.exit_code == 1 and "--without-data" in str(refused.exception)
    assert json.loads(CliRunner().invoke(app, ["challenge", "show", "birds", "--json", *place]).stdout) == shown
    published = CliRunner().invoke(app, ["challenge", "publish", "birds", "--without-data", *place])
    assert "public" in published.stdout and "warning: It has no description" in published.stderr
    hidden = CliRunner().invoke(app, ["challenge", "publish", "birds", "--undo", *place])
    assert hidden.exit_code == 0 and "its organizers only" in hidden.stdout


def test_a_challenge_without_data_is_not_published_unless_that_is_meant(words, tmp_path):
    refused = CliRunner().invoke(app, [*words, "--publish"])
    assert refused.exit_code == 1 and "offers no data" in str(refused.exception)
    assert not (tmp_path / "platform").exists()
    made = CliRunner().invoke(app, [*words, "--publish", "--without-data"])
    assert made.exit_code == 0 and "it is public: everybody sees it from now on" in made.stdout


def test_a_private_challenge_is_not_called_public(words):
    made = CliRunner().invoke(app, [*words, "--publish", "--without-data", "--access", "private"])
    assert made.exit_code == 0 and "those whom you admit see it" in made.stdout and "everybody" not in made.stdout


def test_a_challenge_with_texts_and_data_has_nothing_to_warn_of(words, tmp_path):
    (tmp_path / "about.md").write_text("Birds of the valley.\n")
    (tmp_path / "photos.zip").write_bytes(b"PK")
    given = ["--title", "Birds at dawn", "--description", str(tmp_path / "about.md")]
    made = CliRunner().invoke(app, [*words, *given, "--offer", str(tmp_path / "photos.zip"), "--publish", "--json"])
    assert made.exit_code == 0 and json.loads(made.stdout)["warnings"] == []
    show = ["challenge", "show", "birds", "--json", "--folder", str(tmp_path / "platform")]
    shown = json.loads(CliRunner().invoke(app, show).stdout)
    assert (shown["title"], shown["description"]) == ("Birds at dawn", "Birds of the valley.")
    assert shown["published_at"] and "photos.zip" in {file["name"] for file in shown["files"]}


def test_at_a_terminal_the_title_and_the_description_are_asked_for(words, monkeypatch):
    monkeypatch.setattr(create, "at_terminal", lambda: True)
    made = CliRunner().invoke(app, [*words, "--json"], input="Birds at dawn\nSee https://example.org/birds.\n")
    assert made.exit_code == 0 and "Title [birds]" in made.stderr and "What is it about" in made.stderr
    told = made.stdout[made.stdout.index("{") :]  # after what was typed
    assert json.loads(told)["warnings"] == []
