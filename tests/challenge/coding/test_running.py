"""Programs of participants from the shell: run within walls, scored by another process that runs none of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fieldmark.challenge.coding import running
from fieldmark.challenge.coding.runners import BubblewrapRunner, CodeLimits
from fieldmark.challenge.coding.self_test import failure_here
from fieldmark.challenge.scoring.score_parts import score_parts
from fieldmark.cli.main import app
from fieldmark.errors import InputError, MisuseError
from tests.challenge.coding.programs import HONEST, archive_of, inputs_in
from tests.challenge.platform import ITEMS, absent, label_of, truth_text


def prepare(folder: Path, program: str) -> tuple[Path, Path]:
    (folder / "team.tar.gz").write_bytes(archive_of(program))
    answers = [label_of(number) for number in range(len(ITEMS))]
    return folder / "team.tar.gz", inputs_in(folder / "secret", list(ITEMS), answers)


def test_a_program_is_run_and_its_run_is_scored_apart(tmp_path):
    if said := failure_here():
        absent(f"programs cannot be walled in here: {said}")
    archive, inputs = prepare(tmp_path, HONEST)
    command = ["challenge", "run-code", str(archive), "--inputs", str(inputs), "--out", str(tmp_path / "run.csv")]
    done = CliRunner().invoke(app, [*command, "--memory", "2048", "--json"])
    assert done.exit_code == 0, done.output
    (tmp_path / "truth.csv").write_text(truth_text())
    card = score_parts("folder", tmp_path / "run.csv", {"truth": tmp_path / "truth.csv"})["public"]
    assert card.metrics["top_1"].value == 1.0


def test_the_walls_are_tried_from_the_shell():
    """In a process of its own, whose channels have other numbers than those of a test."""
    if said := failure_here():
        absent(f"programs cannot be walled in here: {said}")
    command = [sys.executable, "-c", "from fieldmark.cli.main import main; main()", "challenge", "self-test"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "bubblewrap: the walls hold\n", done.stderr


def test_a_program_that_fails_says_why_and_leaves_no_run(tmp_path):
    if said := failure_here():
        absent(f"programs cannot be walled in here: {said}")
    archive, inputs = prepare(tmp_path, "raise SystemExit('no weights found')")
    with pytest.raises(InputError, match="no weights found"):
        running.run_archive(
            archive, inputs, tmp_path / "run.csv", runner=BubblewrapRunner(), limits=CodeLimits(60, 1024)
        )
    assert not (tmp_path / "run.csv").exists()


def test_nothing_is_run_where_the_walls_do_not_hold(tmp_path, monkeypatch):
    archive, inputs = prepare(tmp_path, HONEST)
    monkeypatch.setattr(running, "failure_of", lambda runner: "a program would find a network")
    with pytest.raises(MisuseError, match="would find a network"):
        running.run_archive(archive, inputs, tmp_path / "run.csv", runner=BubblewrapRunner(), limits=CodeLimits())
    with pytest.raises(InputError, match=r"metadata\.csv"):
        running.run_archive(archive, tmp_path, tmp_path / "run.csv", runner=BubblewrapRunner(), limits=CodeLimits())
