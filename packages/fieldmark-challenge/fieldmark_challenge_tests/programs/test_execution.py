"""Programs of participants from the shell: run within walls, scored by another process that runs none of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fieldmark.errors import InputError, MisuseError
from fieldmark.scoring.score_parts import score_parts
from fieldmark_challenge.programs import execution
from fieldmark_challenge.programs.runners import BubblewrapRunner, CodeLimits
from fieldmark_challenge_tests.platform import ITEMS, label_of, truth_text
from fieldmark_challenge_tests.programs.programs import HONEST, archive_of, inputs_in
from fieldmark_challenge_tests.unprivileged import (
    account_folder,
    account_runner,
    as_account,
    environment,
    hand_over,
    require_sandbox,
)


def prepare(folder: Path, program: str) -> tuple[Path, Path]:
    (folder / "team.tar.gz").write_bytes(archive_of(program))
    answers = [label_of(number) for number in range(len(ITEMS))]
    return folder / "team.tar.gz", inputs_in(folder / "secret", list(ITEMS), answers)


def in_shell(command: list[str]) -> subprocess.CompletedProcess[str]:
    """A command of ours as an unprivileged account runs it."""
    whole = as_account([sys.executable, "-c", "from fieldmark.cli.main import main; main()", *command])
    return subprocess.run(whole, env=environment(), cwd="/", capture_output=True, text=True, check=False)


def test_a_program_is_run_and_its_run_is_scored_apart(tmp_path):
    require_sandbox()
    with account_folder() as folder:
        archive, inputs = prepare(folder, HONEST)
        hand_over(folder)
        command = ["challenge", "run-code", str(archive), "--inputs", str(inputs), "--out", str(folder / "run.csv")]
        done = in_shell([*command, "--memory", "2048", "--json"])
        assert done.returncode == 0, done.stderr
        (tmp_path / "run.csv").write_bytes((folder / "run.csv").read_bytes())
    (tmp_path / "truth.csv").write_text(truth_text())
    card = score_parts("folder", tmp_path / "run.csv", {"truth": tmp_path / "truth.csv"})["public"]
    assert card.metrics["top_1"].value == 1.0


def test_the_walls_are_tried_from_the_shell():
    """In a process of its own, whose channels have other numbers than those of a test."""
    require_sandbox()
    done = in_shell(["challenge", "self-test"])
    *tried, verdict = done.stdout.splitlines()
    assert done.returncode == 0 and verdict == "bubblewrap: the walls hold", done.stdout + done.stderr
    wanted = {"namespaces", "seccomp", "uid", "proc", "network", "files", "disk", "processes", "memory", "time"}
    assert {line.split()[1] for line in tried if line.startswith("holds ")} >= wanted


def test_a_program_that_fails_says_why_and_leaves_no_run(tmp_path):
    require_sandbox()
    archive, inputs = prepare(tmp_path, "raise SystemExit('no weights found')")
    with pytest.raises(InputError, match="no weights found"):
        execution.run_archive(
            archive, inputs, tmp_path / "run.csv", runner=account_runner(), limits=CodeLimits(60, 1024)
        )
    assert not (tmp_path / "run.csv").exists()


def test_nothing_is_run_where_the_walls_do_not_hold(tmp_path, monkeypatch):
    archive, inputs = prepare(tmp_path, HONEST)
    monkeypatch.setattr(execution, "failure_of", lambda runner: "a program would find a network")
    with pytest.raises(MisuseError, match="would find a network"):
        execution.run_archive(archive, inputs, tmp_path / "run.csv", runner=BubblewrapRunner(), limits=CodeLimits())
    with pytest.raises(InputError, match=r"metadata\.csv"):
        execution.run_archive(archive, tmp_path, tmp_path / "run.csv", runner=BubblewrapRunner(), limits=CodeLimits())
