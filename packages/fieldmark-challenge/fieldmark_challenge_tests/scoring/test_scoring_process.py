"""Scoring in a process of its own: limits, walls, and whose fault it was."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fieldmark.errors import MisuseError
from fieldmark.sandbox import bubblewrap
from fieldmark.scoring.score_parts import score_parts, truth_files
from fieldmark_challenge.scoring import scoring_process
from fieldmark_challenge.scoring.scoring_process import Limits, score_in_sandbox
from fieldmark_challenge_tests.platform import run_text, truth_text


def job(folder: Path, run: str) -> Path:
    (folder / "truth").mkdir(parents=True)
    (folder / "truth" / "truth.csv").write_text(truth_text())
    (folder / "run").write_text(run)
    return folder


def test_limits_end_a_scoring_process(tmp_path):
    stop = threading.Event()
    slow = score_in_sandbox(job(tmp_path / "slow", run_text()), "folder", limits=Limits(wall_s=0.05), stop=stop)
    assert slow.fault is not None and slow.fault.startswith("ended after 0.05 seconds")
    small = score_in_sandbox(job(tmp_path / "small", run_text()), "folder", limits=Limits(memory_mb=100), stop=stop)
    assert small.fault is not None and not small.cards


def test_a_run_at_fault_is_told_apart_from_a_fault_of_the_platform(tmp_path):
    outcome = score_in_sandbox(job(tmp_path / "j", "id,predicted\n"), "folder", limits=Limits(), stop=threading.Event())
    assert outcome.fault is None and outcome.total == 1
    assert "no line for 60 of 60 ids" in outcome.problems[0]["text"]


PROBE = """
import os, pathlib, socket, sys
secret, port = pathlib.Path(sys.argv[1], "run").read_text().split("\\n")
def tried(act):
    try: act(); return "possible"
    except OSError: return "refused"
print("environment", *sorted(os.environ))
print("network", tried(lambda: socket.create_connection(("127.0.0.1", int(port)), 2)))
print("files", tried(lambda: open(secret).read()))
packages = next(one for one in sys.path if "site-packages" in one)
print("installation", tried(lambda: open(os.path.join(packages, "evil"), "w")))
print("processes", len([name for name in os.listdir("/proc") if name.isdigit()]))
"""


def test_the_wall_hides_network_files_processes_and_secrets(tmp_path, monkeypatch):
    if bubblewrap.bubblewrap() is None:
        pytest.skip("bubblewrap is not installed, or not allowed here")
    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2")
    # A job that looks around in place of the one that scores; what it prints is in the report about the fault.
    monkeypatch.setattr(scoring_process, "SCORING_JOB", "probe")
    secret = tmp_path / "labels.csv"
    secret.write_text("zebra")
    with socket.create_server(("127.0.0.1", 0)) as server:
        folder = job(tmp_path / "job", f"{secret}\n{server.getsockname()[1]}")
        (folder / "probe.py").write_text(PROBE)
        outcome = score_in_sandbox(folder, "folder", limits=Limits(), stop=threading.Event())
    assert outcome.fault is not None and outcome.fault.startswith("the scoring process wrote nothing")
    said = dict(line.split(" ", 1) for line in outcome.fault.splitlines()[1:])
    assert "PATH" in said["environment"] and "DATABASE_PASSWORD" not in said["environment"]
    assert (said["network"], said["files"], said["installation"]) == ("refused", "refused", "refused")
    assert int(said["processes"]) <= 3


def test_a_stopped_worker_ends_the_process_of_its_run(tmp_path):
    stop = threading.Event()
    stop.set()
    outcome = score_in_sandbox(job(tmp_path / "j", run_text()), "folder", limits=Limits(), stop=stop)
    assert outcome.fault is not None and not outcome.cards and not (tmp_path / "j" / "out" / "public.json").exists()


def test_a_run_and_its_truth_come_back_as_scorecards(tmp_path):
    outcome = score_in_sandbox(
        job(tmp_path / "j", run_text(right=30)), "folder", limits=Limits(), stop=threading.Event()
    )
    assert outcome.fault is None and outcome.problems is None
    expected = score_parts("folder", tmp_path / "j" / "run", truth_files(tmp_path / "j" / "truth"))
    assert {part: card.metrics for part, card in outcome.cards.items()} == {
        part: card.metrics for part, card in expected.items()
    }


def test_walls_never_show_the_working_directory_or_what_is_above_it(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    for entry in (tmp_path, tmp_path / "work", "."):
        monkeypatch.syspath_prepend(str(entry))
    shown = [*bubblewrap.python_places(), *(path.resolve() for path in bubblewrap.python_places())]
    assert shown and not any((tmp_path / "work").is_relative_to(path) for path in shown)
    assert all(path.is_absolute() for path in shown)
    if bubblewrap.bubblewrap() is None:
        pytest.skip("bubblewrap is not installed, or not allowed here")
    (tmp_path / "work" / "truth.csv").write_text("zebra")
    look = [sys.executable, "-c", f"import os; print(os.path.exists({str(tmp_path / 'work')!r}))"]
    command = [*bubblewrap.wall(bubblewrap.bubblewrap(), None), *look]
    said = subprocess.run(command, env=bubblewrap.environment(Path("/")), capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


def test_bubblewrap_that_is_installed_or_mended_later_is_found(tmp_path, monkeypatch):
    real = shutil.which("bwrap")
    if real is None:
        pytest.skip("bubblewrap is not installed")
    monkeypatch.setattr(bubblewrap, "WORKING", set())
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bubblewrap.why_no_walls() == "it is not installed"
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho no namespaces here >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    with pytest.raises(MisuseError, match=r"it does not work here \(no namespaces here\)"):
        bubblewrap.require_walls(None)
    (tmp_path / "bwrap").unlink()
    (tmp_path / "bwrap").symlink_to(real)
    assert bubblewrap.why_no_walls() == "" and bubblewrap.require_walls(None)


def test_walls_can_be_required(tmp_path, monkeypatch):
    monkeypatch.setattr(bubblewrap, "bubblewrap", lambda: None)
    monkeypatch.setattr(scoring_process, "bubblewrap", lambda: None)
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda _: None)
    assert bubblewrap.require_walls(None) is False and bubblewrap.require_walls(False) is False
    with pytest.raises(MisuseError, match="not installed"):
        bubblewrap.require_walls(True)
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda _: "/nowhere/bwrap")
    with pytest.raises(MisuseError, match="--no-require-sandbox"):  # it is there, and does not work
        bubblewrap.require_walls(None)
    outcome = score_in_sandbox(
        job(tmp_path / "j", run_text()), "folder", limits=Limits(), stop=threading.Event(), walled=True
    )
    assert "within bubblewrap only" in outcome.fault and not (tmp_path / "j" / "out").exists()
