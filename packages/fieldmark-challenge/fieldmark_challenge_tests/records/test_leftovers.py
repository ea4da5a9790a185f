"""What killed processes leave behind is collected, and nothing else is."""

from __future__ import annotations

import datetime as dt
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from fieldmark_challenge.records.orphans import collect_orphans
from fieldmark_challenge.records.scratch import OLD_S, collect_leftovers, prefix_of, scratch
from fieldmark_challenge_tests.platform import Platform

HOLD = """
import sys, time
from fieldmark_challenge.records.scratch import scratch
with scratch("score") as folder:
    (folder / "truth.csv").write_text("secret")
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_folders_of_a_killed_process_are_removed_and_those_of_living_ones_stay(tmp_path, monkeypatch):
    command = [sys.executable, "-c", HOLD]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    doomed, living = (subprocess.Popen(command, env={**os.environ, "TMPDIR": str(tmp_path)}, **pipes) for _ in range(2))
    left, held = (Path(process.stdout.readline().strip()) for process in (doomed, living))
    assert collect_leftovers(tmp_path) == 0
    doomed.send_signal(signal.SIGKILL)
    doomed.wait()
    assert left.exists() and collect_leftovers(tmp_path) == 1
    assert not left.exists() and (held / "truth.csv").exists()
    living.stdin.close()
    living.wait()
    assert not held.exists()


def test_folders_of_other_machines_and_of_other_people_are_left_alone(tmp_path):
    elsewhere = tmp_path / "fieldmark-score-00000000-1-1-abc"
    for name in (elsewhere.name, "fieldmark-notes", "another"):
        (tmp_path / name).mkdir()
    (tmp_path / f"{prefix_of('score')}x").symlink_to(tmp_path / "another")
    assert collect_leftovers(tmp_path) == 0
    old = time.time() - OLD_S - 1
    os.utime(elsewhere, (old, old))
    assert collect_leftovers(tmp_path) == 1 and (tmp_path / "another").exists()
    with scratch("score") as folder:
        assert collect_leftovers(folder.parent) == 0 or folder.exists()


def test_stored_files_without_a_row_are_removed_once_they_are_old(platform: Platform):
    run = platform.hand_in(platform.captain("ada"))
    (platform.folder / "x").write_text("x")
    for path in ("runs/1/aaaa", "data/1/bbbb", "truth/cccc/truth.csv"):
        platform.storage.put(platform.folder / "x", path)
    assert collect_orphans(platform.database, platform.storage) == []
    assert collect_orphans(platform.database, platform.storage, young=dt.timedelta(0)) == ["data/1/bbbb", "runs/1/aaaa"]
    assert platform.storage.exists(run.path) and platform.storage.exists("truth/cccc/truth.csv")
    assert platform.storage.exists(platform.challenge.truth_path + "/truth.csv")
