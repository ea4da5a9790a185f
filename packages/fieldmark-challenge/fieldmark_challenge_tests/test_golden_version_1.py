"""Receipts and backups that version 0.1.0 wrote still hold: the same scores, the same boards."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fieldmark.cli.main import app
from fieldmark_tests.golden_files import VERSION_1, as_told_then, differences, read_json

RECEIPT, CHALLENGE = VERSION_1 / "receipt", VERSION_1 / "challenge"
BOARDS = [(name, part) for name in ("fungi", "birds") for part in ("public", "private")]


def fieldmark(*words: object) -> str:
    """What a command prints."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def scores_of(card: dict[str, Any]) -> dict[str, Any]:
    """The scores of a scorecard as a receipt names them."""
    return {name: {end: score[end] for end in ("value", "low", "high")} for name, score in card["metrics"].items()}


@pytest.mark.parametrize("part", ["public", "private"])
def test_a_stored_receipt_still_verifies_with_the_same_scores(part):
    pytest.importorskip("cryptography", reason="signatures need the optional package cryptography")
    path, signer = RECEIPT / f"{part}.json", (RECEIPT / "signer.txt").read_text().strip()
    verified, receipt = json.loads(fieldmark("score", "--verify", path, "--signer", signer, "--json")), read_json(path)
    assert verified["verified"] is True and verified["signed_by"] == signer == receipt["signed_by"]
    assert verified["remark"] in ("", f"scored then by another build ({receipt['scorer']['version']})")
    card = verified["scorecard"]
    assert (card["split"], card["items"], card["units"]) == (part, receipt["items"], receipt["units"])
    assert not differences(scores_of(card), receipt["scores"])


def test_a_stored_receipt_from_before_the_reveal_verifies_with_the_salt(tmp_path):
    pytest.importorskip("cryptography", reason="signatures need the optional package cryptography")
    early, salt = shutil.copy(RECEIPT / "early.json", tmp_path), read_json(RECEIPT / "public.json")["salt"]
    tables = [f"--{what}={RECEIPT / f'{what}.csv'}" for what in ("truth", "classes", "parts")]
    said = fieldmark("score", RECEIPT / "ada-2.csv", *tables, "--verify", early, "--salt", salt, "--json")
    assert json.loads(said)["verified"] is True
    assert not differences(scores_of(json.loads(said)["scorecard"]), read_json(Path(early))["scores"])


@pytest.fixture(scope="module")
def restored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a platform that a stored backup was put back into; for what changes nothing."""
    folder = tmp_path_factory.mktemp("restored") / "platform"
    counts = json.loads(fieldmark("challenge", "restore", CHALLENGE / "backup.zip", "--folder", folder, "--json"))
    assert {what: counts[what] for what in ("challenges", "submissions", "users", "files")} == {
        "challenges": 2,
        "submissions": 6,
        "users": 3,
        "files": 19,
    }
    return folder


def board(folder: Path, name: str, part: str) -> Any:
    return json.loads(fieldmark("challenge", "board", name, "--part", part, "--folder", folder, "--json"))


@pytest.mark.parametrize(("name", "part"), BOARDS)
def test_a_stored_backup_is_restored_with_the_same_boards(restored, name, part):
    stored = read_json(CHALLENGE / f"{name}-{part}.json")
    assert not differences(as_told_then(board(restored, name, part), stored), stored)


def test_a_stored_backup_keeps_challenges_accounts_and_the_log(restored):
    shown = {
        name: json.loads(fieldmark("challenge", "show", name, "--folder", restored, "--json"))
        for name in ("fungi", "birds")
    }
    assert {name: about["benchmark"] for name, about in shown.items()} == {"fungi": "folder", "birds": "birdclef-2020"}
    assert shown["birds"]["revealed_at"] and not shown["fungi"]["revealed_at"]
    people = json.loads(fieldmark("challenge", "people", "--folder", restored, "--json"))
    assert [(one["name"], one["role"]) for one in people] == [
        ("admin", "admin"),
        ("ada", "participant"),
        ("ben", "participant"),
    ]
    log = json.loads(fieldmark("challenge", "audit", "--folder", restored, "--json"))
    assert len(log) == 27 and {event["actor"] for event in log} >= {"ada", "ben"}


def test_runs_of_a_stored_backup_are_scored_anew_to_the_same_boards(restored, tmp_path):
    folder = shutil.copytree(restored, tmp_path / "platform")
    for name, count in (("fungi", 4), ("birds", 2)):
        waiting = json.loads(fieldmark("challenge", "rescore", name, "--folder", folder, "--json"))
        assert waiting == {"challenge": name, "waiting": count}
    fieldmark("worker", "--folder", folder, "--until-idle")
    assert json.loads(fieldmark("challenge", "queue", "--folder", folder, "--json")) == []
    for name, part in BOARDS:
        stored = read_json(CHALLENGE / f"{name}-{part}.json")
        assert not differences(as_told_then(board(folder, name, part), stored), stored)
