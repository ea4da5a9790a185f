from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from fieldmark.cli.main import app
from fieldmark.errors import InputError
from fieldmark.scoring import receipts, scorer_digest
from fieldmark.scoring.score_parts import score_parts, truth_files
from fieldmark_tests.parted_truths import write_run, write_truth

WHOSE = {"challenge": "fungi", "submission": "17", "team": "spores", "accepted": datetime(2026, 3, 1, 12, tzinfo=UTC)}


@pytest.fixture
def folder(tmp_path):
    """A receipt with all it speaks of beside it."""
    truth = write_truth(tmp_path / "receipt")
    run = write_run(truth / "run.csv", truth, skill=0.7)
    card = score_parts("folder", run, truth_files(truth))["public"]
    receipt = receipts.make_receipt(card, **WHOSE)
    (truth / "receipt.json").write_text(json.dumps(receipt))
    return truth


def change(folder, **values):
    receipt = json.loads((folder / "receipt.json").read_text())
    (folder / "receipt.json").write_text(json.dumps(receipt | values))


def test_a_receipt_reproduces_its_scores_offline(folder):
    found = receipts.verify(folder / "receipt.json")
    said = json.loads((folder / "receipt.json").read_text())
    assert found.card.split == "public" and found.card.units == said["units"]
    assert {name: score.value for name, score in found.card.metrics.items()} == {
        name: score["value"] for name, score in said["scores"].items()
    }
    assert found.signed_by is None and found.remark == "the receipt is unsigned"


def test_the_receipt_gives_away_no_label(folder):
    text = (folder / "receipt.json").read_text()
    assert "Amanita" not in text and "p001" not in text and "o001" not in text


def test_what_differs_is_said_in_one_sentence(folder):
    def sentence():
        with pytest.raises(InputError) as caught:
            receipts.verify(folder / "receipt.json")
        return str(caught.value)

    whole = folder.with_name("whole")
    shutil.copytree(folder, whole)
    write_run(folder / "run.csv", folder, skill=0.8)
    assert "run.csv: found another file (SHA-256 " in sentence() and "expected the run that was scored" in sentence()
    shutil.copy(whole / "run.csv", folder)
    (folder / "parts.csv").write_text((whole / "parts.csv").read_text().replace("private", "public", 1))
    assert "expected the parts the run was scored against" in sentence()
    (folder / "parts.csv").unlink()
    assert "found no parts" in sentence() and "Give it with --parts" in sentence()
    shutil.copy(whole / "parts.csv", folder)
    change(folder, benchmark={"name": "folder", "version": "0"})
    assert "expected folder version 0" in sentence()
    change(folder, benchmark={"name": "folder", "version": "2"})
    scores = json.loads((folder / "receipt.json").read_text())["scores"]
    change(folder, scores=scores | {"top_1": {**scores["top_1"], "value": 0.99}})
    assert "found top_1 0." in sentence() and "expected 0.99, as the receipt says." in sentence()
    change(folder, scores=scores, format="something")
    assert "expected fieldmark-receipt-1" in sentence()


def test_another_build_of_the_scorer_is_mentioned_and_blamed_only_for_other_numbers(folder):
    change(folder, scorer={"version": "0.0.9", "sha256": "0" * 64})
    assert "another build (0.0.9)" in receipts.verify(folder / "receipt.json").remark
    scores = json.loads((folder / "receipt.json").read_text())["scores"]
    change(folder, scores=scores | {"top_1": {**scores["top_1"], "low": 0.0}})
    with pytest.raises(InputError, match=r"low end .* It was scored by Fieldmark 0.0.9, another build."):
        receipts.verify(folder / "receipt.json")


def test_the_command_line_verifies_and_says_so(folder, tmp_path):
    done = CliRunner().invoke(app, ["score", "--verify", str(folder / "receipt.json")])
    assert done.exit_code == 0 and "verified: every score and interval" in done.stdout
    elsewhere = tmp_path / "r.json"
    shutil.copy(folder / "receipt.json", elsewhere)
    files = [f"--{name}={folder / f'{name}.csv'}" for name in ("truth", "classes", "parts")]
    done = CliRunner().invoke(app, ["score", str(folder / "run.csv"), *files, "--verify", str(elsewhere), "--json"])
    assert done.exit_code == 0 and json.loads(done.stdout)["verified"] is True
    assert CliRunner().invoke(app, ["score"]).exception.exit_code == 2


def test_a_signature_holds_until_a_word_is_changed(folder):
    pytest.importorskip("cryptography", reason="signatures need the optional package cryptography")
    key = receipts.new_key()
    receipt = json.loads((folder / "receipt.json").read_text())
    (folder / "receipt.json").write_text(json.dumps(receipts.sign(receipt, key)))
    signer = receipts.public_fingerprint(key)
    assert receipts.verify(folder / "receipt.json", signer=signer).signed_by == signer
    other = receipts.public_fingerprint(receipts.new_key())
    with pytest.raises(InputError, match=f"found the signature of ed25519:.*, expected that of {other[:9]}"):
        receipts.verify(folder / "receipt.json", signer=other)
    change(folder, team="someone else")
    with pytest.raises(InputError, match="a signature that does not fit"):
        receipts.verify(folder / "receipt.json")


def test_a_signature_can_be_checked_while_the_labels_are_secret(folder):
    pytest.importorskip("cryptography", reason="signatures need the optional package cryptography")
    key = receipts.new_key()
    command = ["score", "--verify", str(folder / "receipt.json"), "--signature-only"]
    assert "found no signature" in str(CliRunner().invoke(app, command).exception)
    receipt = receipts.sign(json.loads((folder / "receipt.json").read_text()), key)
    (folder / "receipt.json").write_text(json.dumps(receipt))
    for name in ("truth", "classes", "parts"):
        (folder / f"{name}.csv").unlink()
    signer = receipts.public_fingerprint(key)
    done = CliRunner().invoke(app, [*command, "--signer", signer])
    assert done.exit_code == 0 and signer in done.stdout and "no score was recomputed" in done.stdout
    assert receipts.verify_signature(folder / "receipt.json", run=folder / "run.csv") == signer
    (folder / "run.csv").write_text("id,predicted\n")
    with pytest.raises(InputError, match="expected the run that was scored"):
        receipts.verify_signature(folder / "receipt.json", run=folder / "run.csv")
    change(folder, team="someone else")
    with pytest.raises(InputError, match="a signature that does not fit"):
        receipts.verify_signature(folder / "receipt.json")


def test_an_unsigned_receipt_does_not_pass_where_a_signer_is_asked_for(folder):
    with pytest.raises(InputError, match="found the signature of nobody"):
        receipts.verify(folder / "receipt.json", signer="ed25519:abc")


def test_a_worker_finds_the_sources_of_the_scorer_once_and_again_when_one_has_changed(tmp_path, monkeypatch):
    names = scorer_digest.ScorerSources().names()
    assert scorer_digest.digest_of(names) == scorer_digest.scorer_digest()
    assert {"metrics/ranking.py", "scoring/score_parts.py"} <= set(names) and "cli/main.py" not in names
    assert not [name for name in names if name.startswith("releases/")]  # what to cite must not change a digest
    package = tmp_path / "fieldmark"
    entrance, ranks = package / "scoring/score_parts.py", package / "metrics/ranking.py"
    for file, content in ((entrance, "import fieldmark.metrics\n"), (ranks, "")):
        file.parent.mkdir(parents=True)
        file.write_text(content)
        for folder in file.relative_to(tmp_path).parents[:-1]:
            (tmp_path / folder / "__init__.py").touch()
    monkeypatch.setattr(scorer_digest.resources, "files", lambda _: package)
    copied = scorer_digest.ScorerSources()
    assert copied.names() is copied.names() and "metrics/ranking.py" not in copied.names()
    entrance.write_text("from fieldmark.metrics import ranking\n")
    assert "metrics/ranking.py" in copied.names()
    entrance.write_text("")
    ranks.unlink()
    assert "metrics/ranking.py" not in copied.names()
    entrance.unlink()
    with pytest.raises(RuntimeError, match="a digest of nothing"):
        copied.names()
