"""The PostgreSQL server that tests and studies start."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fieldmark_challenge_tests.own_postgres import postgres_binaries
from fieldmark_tests.system_programs import absent

STARTED = """
import time
from fieldmark_challenge_tests.own_postgres import OwnPostgres

server = OwnPostgres(durable=False)
print(server.port, server.folder, flush=True)
time.sleep(600)
"""


def answers(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(5)
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.postgres
def test_a_server_ends_when_the_process_that_started_it_is_killed():
    if postgres_binaries() is None:
        absent("there is no PostgreSQL under /usr/lib/postgresql")
    root = Path(__file__).resolve().parents[1]  # from where the server below is imported
    with subprocess.Popen([sys.executable, "-c", STARTED], stdout=subprocess.PIPE, text=True, cwd=root) as starter:
        assert starter.stdout is not None
        port, folder = starter.stdout.readline().split()
        assert answers(int(port))
        starter.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while (answers(int(port)) or Path(folder).exists()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not answers(int(port))
    assert not Path(folder).exists()
