"""Escapes tried by programs of participants, each of which must fail, and leave nothing behind."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fieldmark_challenge.programs.runners import CodeJob, CodeLimits, CodeOutcome, PodmanRunner
from fieldmark_challenge.submissions.archives import unpack
from fieldmark_challenge_tests.programs.programs import HONEST, archive_of, inputs_in
from fieldmark_challenge_tests.unprivileged import account_runner, require_sandbox

LIMITS = CodeLimits(seconds=60, memory_mb=1024, processes=24, disk_mb=16, output_mb=1)
SAY = "import os, sys, socket, subprocess, ctypes, time, fcntl\n"
TRIED = """
def tried(act):
    try:
        return f"possible {act()!r}"
    except BaseException as error:
        return f"refused {type(error).__name__}"
"""
ANSWER = 'open(os.environ["AICROWD_PREDICTIONS_OUTPUT_PATH"], "w").write("id,predicted\\n")\n'


@pytest.fixture(scope="module", autouse=True)
def _walls() -> None:
    require_sandbox()


@pytest.fixture
def run(tmp_path: Path):
    def run(program: str, limits: CodeLimits = LIMITS, **files: str) -> tuple[CodeOutcome, Path]:
        (tmp_path / "archive").write_bytes(archive_of(program, **files))
        (tmp_path / "code").mkdir()
        home = unpack(tmp_path / "archive", tmp_path / "code")
        inputs = inputs_in(tmp_path / "inputs", ["i1", "i2"], ["a", "b"])
        job = CodeJob(home, inputs, tmp_path / "predictions.csv")
        return account_runner().run(job, limits, threading.Event()), job.predictions

    return run


def test_an_honest_program_answers(run):
    outcome, predictions = run(HONEST)
    assert outcome.problem == "" and predictions.read_text() == "id,predicted\ni1,a\ni2,b\n"


def test_network_and_names(run):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        outcome, _ = run(
            SAY
            + TRIED
            + f"""
print("tcp", tried(lambda: socket.create_connection(("127.0.0.1", {port}), 2)))
print("udp", tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("8.8.8.8", 53))))
print("names", tried(lambda: socket.getaddrinfo("example.org", 80)))
print("raw", tried(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)))
print("local", tried(lambda: len(socket.socketpair())))
"""
            + ANSWER
        )
    said = dict(line.split(" ", 1) for line in outcome.log.splitlines())
    assert {name for name, text in said.items() if text.startswith("possible")} == {"local"}, outcome.log


def test_processes_environment_and_files_of_the_server(run, tmp_path, monkeypatch):
    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2")
    (tmp_path / "truth.csv").write_text("zebra")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "run.csv").write_text("of another team")
    outcome, _ = run(
        SAY
        + TRIED
        + f"""
print("environment", sorted(os.environ))
print("processes", len([name for name in os.listdir("/proc") if name.isdigit()]))
for n in os.listdir("/proc"):
    if n.isdigit() and os.access(f"/proc/{{n}}/environ", os.R_OK):
        print("parent", repr(open(f"/proc/{{n}}/environ").read()))
print("labels", tried(lambda: open({str(tmp_path / "truth.csv")!r}).read()))
print("others", tried(lambda: os.listdir({str(tmp_path / "other")!r})))
print("shadow", tried(lambda: open("/etc/shadow").read()))
print("inputs", tried(lambda: open("/submission/inputs/metadata.csv", "w")))
print("code", tried(lambda: open("/submission/code/run.sh", "w")))
print("root", tried(lambda: open("/evil", "w")))
print("installation", tried(lambda: open(os.path.join(sys.prefix, "lib", "evil"), "w")))
print("who", os.getuid())
"""
        + ANSWER
    )
    said = dict(line.split(" ", 1) for line in outcome.log.splitlines())
    assert "hunter2" not in outcome.log and "DATABASE_PASSWORD" not in outcome.log
    assert int(said["processes"]) <= 5 and said["who"] == "65534"
    for name in ("labels", "others", "shadow", "inputs", "code", "root", "installation"):
        assert said[name].startswith("refused"), (name, said[name])


def test_no_file_of_the_worker_is_reached_through_the_channels_of_other_processes(run):
    """The shell that copies the answers out held them open, a file on the disk of the worker, to write to and chmod."""
    outcome, predictions = run(
        SAY
        + """
import stat
for number in os.listdir("/proc"):
    for channel in os.listdir(f"/proc/{number}/fd") if number.isdigit() and number != str(os.getpid()) else ():
        path = f"/proc/{number}/fd/{channel}"
        try:
            if stat.S_ISREG(os.stat(path).st_mode):
                open(path, "ab").close()
                print("reached", os.readlink(path))
                os.chmod(path, 0)
        except OSError as error:
            print("refused", path, error)
"""
        + ANSWER
    )
    assert "reached" not in outcome.log and outcome.problem == "", outcome
    assert predictions.read_text() == "id,predicted\n"


def test_calls_that_no_program_needs(run):
    outcome, _ = run(
        SAY
        + """
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *given):
    result = libc.syscall(number, *given)
    return "possible" if result >= 0 else f"refused {ctypes.get_errno()}"
print("unshare", call(272, 0x10000000))
print("namespace", call(56, 0x10000000 | 17, 0, 0, 0, 0))
print("mount", call(165, b"none", b"/tmp", b"tmpfs", 0, 0))
print("trace", call(101, 16, 1, 0, 0))
print("keys", call(248, b"user", b"x", b"y", 1, -3))
print("uring", call(425, 8, 0))
print("bpf", call(321, 0, 0, 0))
print("memory", call(310, 1, 0, 0, 0, 0, 0))
print("typing", call(16, 0, 0x5412, b"x"))
print("who", call(39))
"""
        + ANSWER
    )
    said = dict(line.split(" ", 1) for line in outcome.log.splitlines())
    assert {name for name, text in said.items() if text == "possible"} == {"who"}, outcome.log


def test_a_fork_bomb_stays_small_and_ends(run):
    outcome, _ = run(
        SAY
        + """
made = 0
try:
    for _ in range(500):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        made += 1
except OSError as error:
    print("stopped after", made, flush=True)
os._exit(3)
"""
    )
    assert "stopped after" in outcome.log and int(outcome.log.split()[-1]) <= LIMITS.processes
    assert outcome.problem == "The program ended with exit status 3."


def test_ten_gigabytes_do_not_reach_the_disk(run, tmp_path):
    outcome, predictions = run(
        SAY
        + """
wrote = 0
try:
    for number in range(40):
        with open(f"/tmp/{number}", "wb") as sink:
            for _ in range(256):
                wrote += sink.write(b"0" * (1 << 20))
                sink.flush()
except OSError as error:
    print("stopped after", wrote >> 20)
    sys.exit(4)
"""
    )
    assert int(outcome.log.split()[-1]) <= LIMITS.disk_mb and outcome.problem.endswith("status 4.")
    assert not predictions.exists() and sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()) < 1e6


def test_too_much_memory(run):
    outcome, _ = run("held = []\nwhile True:\n    held.append(bytearray(1 << 24))\n", replace(LIMITS, memory_mb=256))
    assert outcome.problem.startswith("The program ended with exit status")


def leaving_behind(marker: str) -> str:
    """A program that forks twice, so that a process called by the marker has no parent left."""
    return (
        SAY
        + f"""
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv({os.fspath(Path("/bin/sleep"))!r}, [{marker!r}, "600"])
    os._exit(0)
os.wait()
"""
    )


def test_overtime_ends_with_everything_that_was_started(run, tmp_path):
    marker = f"survivor-{os.getpid()}-{time.time_ns()}"
    program = leaving_behind(marker) + "time.sleep(600)\n"
    outcome, _ = run(program, CodeLimits(seconds=3, memory_mb=1024, processes=24, disk_mb=16))
    assert outcome.problem == "The program did not end within 3 seconds."
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert marker not in listed


def test_a_survivor_of_a_program_that_ended_is_ended_too(run):
    marker = f"survivor-{os.getpid()}-{time.time_ns()}"
    program = leaving_behind(marker) + ANSWER
    outcome, _ = run(program)
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert outcome.problem == "" and marker not in listed


@pytest.mark.parametrize("target", ["/etc/shadow", "/proc/self/environ", "/submission/inputs/metadata.csv"])
def test_a_link_as_output_shows_nothing_that_the_program_does_not_see(run, tmp_path, target):
    (tmp_path / "truth.csv").write_text("zebra")
    _, predictions = run(SAY + f'os.symlink({target!r}, os.environ["AICROWD_PREDICTIONS_OUTPUT_PATH"])')
    shown = predictions.read_text() if predictions.exists() else ""
    assert "zebra" not in shown and "root:" not in shown and "PASSWORD" not in shown


def test_a_forged_score_is_no_score(run, tmp_path):
    forged = '{"public": {"metrics": {"macro_f1_all": {"value": 1.0}}}}'
    outcome, predictions = run(
        SAY
        + f"""
for name in ("scores.json", "public.json", "refused.json"):
    for folder in ("/submission/out", "/tmp", "/submission/code", "."):
        try:
            open(os.path.join(folder, name), "w").write({forged!r})
        except OSError:
            pass
"""
        + ANSWER
    )
    assert outcome.problem == "" and predictions.read_text() == "id,predicted\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive", "code", "inputs", "predictions.csv"]


def test_predictions_that_are_too_large_are_not_taken(run):
    outcome, predictions = run(SAY + 'open(os.environ["AICROWD_PREDICTIONS_OUTPUT_PATH"], "w").write("x" * (2 << 20))')
    assert outcome.problem == "The predictions are larger than 1 MiB." and not predictions.exists()


def test_podman_is_told_the_same(tmp_path):
    command = PodmanRunner("python:3.11").command(CodeJob(tmp_path, tmp_path, tmp_path / "p"), LIMITS)
    for wanted in ("--network=none", "--read-only", "--cap-drop=all", "--pids-limit=24", "--memory=1024m"):
        assert wanted in command
    assert not [part for part in command if "source=" in part and not part.endswith("ro=true")]
    outcome = PodmanRunner("python:3.11", program="no-podman-here").run(
        CodeJob(tmp_path, tmp_path, tmp_path / "p"), LIMITS, threading.Event()
    )
    assert outcome.log == "Podman is not installed"
