"""The end of a process: what runs comes to its end or is handed back, and a second signal does not wait."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from fieldmark_challenge.operations import heartbeats
from fieldmark_challenge.operations.shutdown import Stopping
from fieldmark_challenge.scoring.worker import start_workers
from fieldmark_challenge_tests.platform import Platform

MAIN = [sys.executable, "-c", "from fieldmark.cli.main import main; main()"]
LONG_S = 120  # for a busy machine; nothing below waits so long by itself


def until_running(platform: Platform, submission_id: int) -> None:
    deadline = time.monotonic() + LONG_S
    while platform.submission(submission_id).state != "running":
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(("grace_s", "state"), [(LONG_S, "scored"), (0, "queued")])
def test_workers_finish_their_run_within_the_grace_or_hand_it_back(small_platform: Platform, grace_s, state):
    platform = small_platform
    run = platform.hand_in(platform.captain("ada"))
    stopping = Stopping(grace_s)
    threads = start_workers(platform.database, platform.storage, stopping)
    until_running(platform, run.id)
    assert len(heartbeats.alive(platform.database)) == 1
    stopping.wait_for(threads)
    found = platform.submission(run.id)
    assert found.state == state and not any(thread.is_alive() for thread in threads)
    assert found.attempts == (1 if state == "scored" else 0)
    assert heartbeats.alive(platform.database) == []


def test_a_server_finishes_what_runs_and_a_second_signal_ends_it(tmp_path: Path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--folder", str(tmp_path / "p"), "--port", str(port), "--no-demo", "--no-identify", "--grace", "600"]
    log = tmp_path / "log"
    with log.open("wb") as sink:
        process = subprocess.Popen([*MAIN, "serve", *options, "--log-format", "json"], stdout=sink, stderr=sink)
    try:
        deadline = time.monotonic() + LONG_S
        while not _answers(port):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        slow = socket.create_connection(("127.0.0.1", port))
        slow.sendall(_begun_form(9))
        quick = socket.create_connection(("127.0.0.1", port))
        quick.sendall(_begun_form(3))
        while "fieldmark_requests_under_way 3" not in httpx.get(f"http://127.0.0.1:{port}/metrics").text:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        while _answers(port):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert process.poll() is None
        quick.sendall(b"=")  # what was begun before the signal is answered
        assert re.match(rb"HTTP/1.1 (4\d\d|303)", quick.recv(4096))
        assert process.poll() is None  # the other one still holds it
        process.send_signal(signal.SIGTERM)
        process.wait(LONG_S)
    finally:
        process.kill()
        process.wait()


def _begun_form(length: int) -> bytes:
    """The first two letters of a form."""
    kind = "application/x-www-form-urlencoded"
    return f"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\nContent-Type: {kind}\r\n\r\nab".encode()


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz").text == "ok\n"
    except httpx.TransportError:
        return False
