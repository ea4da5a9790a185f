"""Workers that run programs as they really run: killed in the midst, told to stop, on inputs that tell nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import polars as pl
import pytest

from fieldmark.errors import MisuseError
from fieldmark.web.refusals import ConflictError, RefusalError
from fieldmark_challenge.challenges import code_tasks
from fieldmark_challenge.operations import heartbeats
from fieldmark_challenge.operations.shutdown import Stopping
from fieldmark_challenge.programs import cgroups, tasks
from fieldmark_challenge.programs.inputs import ID, pack, read_items, unpack_inputs
from fieldmark_challenge.programs.program_worker import ProgramWorker, start_program_workers
from fieldmark_challenge.programs.runners import CodeJob, CodeLimits, CodeOutcome, PodmanRunner
from fieldmark_challenge.programs.self_test import WALLS
from fieldmark_challenge.programs.tasks import CodeInputs
from fieldmark_challenge.records.code_schema import CodeHost
from fieldmark_challenge.records.schema import AuditEvent, PartScore
from fieldmark_challenge.records.scratch import collect_leftovers, prefix_of
from fieldmark_challenge.scoring.worker import Worker
from fieldmark_challenge_tests.platform import Platform
from fieldmark_challenge_tests.programs.hosted import LOOKUP, RULES, Hosted, host_snakes
from fieldmark_challenge_tests.programs.programs import archive_of
from fieldmark_challenge_tests.unprivileged import (
    account_runner,
    as_account,
    delegated_groups,
    environment,
    hand_over,
    require_sandbox,
)

MAIN = [sys.executable, "-c", "from fieldmark.cli.main import main; main()"]
# Hangs for as long as the inputs say so.
PATIENT = """
import csv, os, time
if "hang" in open(os.environ["AICROWD_TEST_METADATA_PATH"]).readline():
    time.sleep(600)
"""


@pytest.fixture
def hosted(small_platform: Platform, snake_world) -> Hosted:
    return host_snakes(small_platform, snake_world)


def set_inputs(hosted: Hosted, folder: Path, **columns: str) -> list[str]:
    """Other inputs for the same items, with further columns."""
    rows = pl.read_csv(folder / "metadata.csv", infer_schema=False)
    rows.with_columns(**{name: pl.lit(value) for name, value in columns.items()}).write_csv(folder / "metadata.csv")
    platform = hosted.platform
    with platform.database.read() as session:
        phases = code_tasks.code_phases(session, hosted.challenge)
    where = (platform.database, platform.storage, platform.admin, hosted.challenge)
    return tasks.set_code(*where, RULES, phases, CodeInputs(folder), most_archive_mb=64)


def until(act, what: str, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not act():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def processes_with(marker: str) -> int:
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return sum(marker in line for line in listed.splitlines())


def test_a_killed_worker_takes_its_program_along_and_another_runs_it_again(hosted: Hosted, tmp_path):
    platform = hosted.platform
    inputs = platform.folder / "snakes" / "inputs"
    set_inputs(hosted, inputs, hang="yes")
    marker = "lookup_of_the_killed.py"
    known = hosted.known(right=24)
    archive = archive_of(PATIENT + LOOKUP, name=marker, **{"known.json": known})
    program = hosted.hand_in(platform.captain("ada", hosted.challenge), archive)
    command = [*MAIN, "worker", "--lane", "code", "--lease", "2", "--files", str(platform.storage.root)]
    url = platform.database.url.render_as_string(hide_password=False)
    hand_over(tmp_path)
    with delegated_groups() as delegated:
        command = as_account([*command, "--database", url], delegated, [tmp_path])
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        doomed = subprocess.Popen(command, env=environment(), cwd="/", **quiet)
        try:
            until(lambda: processes_with(f"/{marker}") or processes_with(marker), "the program never ran")
            doomed.send_signal(signal.SIGKILL)
            doomed.wait()
        finally:
            doomed.kill()
        groups = f"fieldmark-group-*-{doomed.pid}-*"
        if delegated:  # where the system has groups, they are left
            assert list(cgroups.ROOT.rglob(groups))
            cgroups.collect_groups()
            assert not list(cgroups.ROOT.rglob(groups))
    until(lambda: not processes_with(marker), "the program outlived its worker")
    assert hosted.program(program.id).state == "running"  # nobody has noticed yet
    left = list(Path(tempfile.gettempdir()).glob(f"fieldmark-*-{doomed.pid}-*"))
    assert left, "there is something to collect"
    collect_leftovers()
    assert not [path for path in left if path.exists()]
    rows = pl.read_csv(inputs / "metadata.csv", infer_schema=False).drop("hang")
    rows.write_csv(inputs / "metadata.csv")
    set_inputs(hosted, inputs)
    heir = ProgramWorker(platform.database, platform.storage, runner=account_runner(), name="heir")
    until(heir.run_one, "the lease never ran out")
    heir.inputs.close()
    assert not heir.run_one()
    scorer = Worker(platform.database, platform.storage)
    assert scorer.run_one() and not scorer.run_one()
    done = hosted.program(program.id)
    assert (done.state, done.attempts, done.worker) == ("done", 2, "heir"), done.detail
    scored = platform.submission(program.submission_id)
    assert scored.state == "scored" and scored.counted
    with platform.database.read() as session:
        assert session.query(PartScore).filter_by(submission_id=scored.id).count() == 2
        assert session.query(AuditEvent).filter_by(action="submission.rescored").count() == 0


def test_a_worker_that_is_told_to_stop_hands_its_program_back(hosted: Hosted):
    platform = hosted.platform
    set_inputs(hosted, platform.folder / "snakes" / "inputs", hang="yes")
    archive = archive_of(PATIENT, name="handed_back.py")
    program = hosted.hand_in(platform.captain("ada", hosted.challenge), archive)
    worker = ProgramWorker(platform.database, platform.storage, runner=account_runner(), lease_s=0.5)
    stop = threading.Event()
    thread = threading.Thread(target=worker.run, args=(stop,))
    thread.start()
    until(lambda: processes_with("handed_back.py"), "the program never ran")
    first = hosted.program(program.id).lease_until
    until(lambda: hosted.program(program.id).lease_until > first, "the lease was not renewed")
    assert heartbeats.alive(platform.database, "code") == [worker.name] and heartbeats.alive(platform.database) == []
    stop.set()
    thread.join(60)
    worker.inputs.close()
    assert heartbeats.alive(platform.database, "code") == []
    found = hosted.program(program.id)
    assert not thread.is_alive() and (found.state, found.attempts) == ("queued", 0)
    assert not processes_with("handed_back.py")


class LeakyRunner:
    """A runner whose walls have a hole: its programs see the network."""

    name = "leaky"

    def run(self, job: CodeJob, limits: CodeLimits, stop: threading.Event) -> CodeOutcome:
        job.predictions.write_text(json.dumps({name: [] for name in WALLS} | {"network": ["a network"]}))
        return CodeOutcome("", "")


def test_a_machine_whose_walls_do_not_hold_runs_nothing_and_opens_no_phase(small_platform: Platform):
    platform, challenge = small_platform, small_platform.challenge
    with pytest.raises(MisuseError, match="a program would find a network"):
        start_program_workers(platform.database, platform.storage, Stopping(), runner=LeakyRunner())
    where = (platform.database, platform.storage, platform.admin, challenge)
    with pytest.raises(ConflictError, match=r"\(leaky\), a program would find a network"):
        tasks.set_code(*where, RULES, [platform.phase().id], most_archive_mb=64)
    with platform.database.write() as session:
        session.query(CodeHost).delete()
    with pytest.raises(ConflictError, match="fieldmark worker --lane code"):
        tasks.set_code(*where, RULES, [platform.phase().id], most_archive_mb=64)
    with platform.database.write() as session:
        session.add(CodeHost(name="old", runner="bubblewrap"))  # as a version noted it that tried less
    with pytest.raises(ConflictError, match="on old, the walls were tried by another version"):
        tasks.set_code(*where, RULES, [platform.phase().id], most_archive_mb=64)


def test_a_platform_that_lies_where_programs_look_is_not_safe(small_platform: Platform, tmp_path):
    """Such as one in a folder that Python imports from, which every program sees."""
    require_sandbox()
    small_platform.database.close()
    command = [*MAIN, "challenge", "doctor", "--json", "--files", str(small_platform.storage.root)]
    command += ["--database", f"sqlite:///{tmp_path}/platform.sqlite"]
    command = as_account(command, places=[hand_over(tmp_path)])
    around = environment()
    around["PYTHONPATH"] += f":{tmp_path}"
    done = subprocess.run(command, env=around, cwd="/", capture_output=True, text=True, check=False)
    said = json.loads(done.stdout)
    assert done.returncode == 1 and said["failure"] == "a program would find files of the platform", done.stderr
    assert said["why_not"].startswith("No worker that runs programs")


def test_inputs_come_in_a_secret_order_and_with_one_time(hosted: Hosted, tmp_path):
    folder = hosted.platform.folder / "snakes" / "inputs"
    rows = read_items(folder)
    first, again, other = (tmp_path / f"{number}.zip" for number in range(3))
    assert pack(folder, rows, first, b"key") == pack(folder, rows.reverse(), again, b"key")
    assert pack(folder, rows, other, b"other key") != pack(folder, rows, first, b"key")
    unpacked = unpack_inputs(first, tmp_path / "unpacked")
    assert len({path.stat().st_mtime for path in unpacked.rglob("*")}) == 1
    assert read_items(unpacked)[ID].to_list() != sorted(rows[ID]) and set(read_items(unpacked)[ID]) == set(rows[ID])


def test_inputs_with_labels_or_about_other_items_are_refused(hosted: Hosted):
    folder = hosted.platform.folder / "snakes" / "inputs"
    kept = (folder / "metadata.csv").read_text()
    rows = pl.read_csv(folder / "metadata.csv", infer_schema=False)
    labels = [hosted.truth[item] for item in rows[ID]]
    rows.with_columns(pl.Series("hint", labels)).write_csv(folder / "metadata.csv")
    with pytest.raises(RefusalError, match="'hint' holds the labels"):
        set_inputs(hosted, folder)
    rows.head(20).write_csv(folder / "metadata.csv")
    with pytest.raises(RefusalError, match="4 of 24 items are missing"):
        set_inputs(hosted, folder)
    (folder / "metadata.csv").write_text(kept)
    platform = hosted.platform
    where = (platform.database, platform.storage, platform.admin, hosted.challenge)
    with pytest.raises(RefusalError, match="The sample holds hidden items"):
        tasks.set_code(*where, RULES, [platform.phase().id], CodeInputs(None, folder), most_archive_mb=64)


def test_podman_is_told_to_remove_what_it_ran_and_what_others_left(tmp_path, monkeypatch):
    """Without Podman: a program in its place writes down what it is told, and runs what it should."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    said, dead = tmp_path / "said", prefix_of("pod").replace(f"-{prefix_of('pod').split('-')[3]}-", "-4194303-") + "ab"
    stand_in = tmp_path / "podman"
    stand_in.write_text(
        f'#!/bin/bash\necho "$*" >> {said}\n'
        f'case "$1" in run) echo up >&4; echo id,predicted >&3;; ps) echo {dead} {prefix_of("pod")}cd;; esac\n'
    )
    stand_in.chmod(0o755)
    runner = PodmanRunner("python:3.11", program=str(stand_in))
    job = CodeJob(tmp_path, tmp_path, tmp_path / "predictions")
    outcome = runner.run(job, CodeLimits(seconds=30), threading.Event())
    assert outcome.problem == "" and job.predictions.read_text() == "id,predicted\n", outcome.log
    ran, removed = said.read_text().splitlines()
    name = next(part for part in ran.split() if part.startswith("--name=")).removeprefix("--name=")
    assert removed == f"rm --force --ignore --time 0 {name}" and "--preserve-fds=2" in ran
    assert runner.collect_leftovers() == 1 and said.read_text().splitlines()[-1].endswith(dead)
