from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from fieldmark.errors import MisuseError
from fieldmark.work import ray_cluster
from fieldmark.work.engines import working_on


@pytest.fixture
def closed_port() -> int:
    """A port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port at which somebody listens and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


def refusal(address: str) -> str:
    with pytest.raises(MisuseError) as caught, working_on("ray", address):
        pass
    return str(caught.value)


def test_an_address_where_nobody_listens_is_refused_with_the_reason(closed_port):
    sentence = refusal(f"127.0.0.1:{closed_port}")
    assert sentence.startswith(f"There is no Ray cluster at address=127.0.0.1:{closed_port} that can be joined (")
    assert "refused" in sentence and sentence.endswith("leave out the address to use this machine alone.")


def test_the_cluster_of_this_machine_is_asked_too_before_it_is_joined(closed_port, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{closed_port}")
    assert "refused" in refusal("auto")


def test_an_address_where_something_else_listens_is_refused_within_seconds(silent_port, monkeypatch):
    monkeypatch.setattr(ray_cluster, "ANSWER_S", 1.0)
    assert "(what answers there is no head node of Ray)" in refusal(f"127.0.0.1:{silent_port}")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("nonsense", "nonsense"),
        ("ray://127.0.0.1:10001", "expected the HOST:PORT that `ray start` prints"),
    ],
)
def test_what_is_no_address_is_refused(address, words):
    assert words in refusal(address)


# The head of a cluster that was started here is a process beside this one. Ray would end a process without its head
# after a minute, so that this is one of its own.
HEAD_LOST = """
import os, signal, subprocess, sys, time
from pathlib import Path

import ray

from fieldmark.work import ray_blocks
from fieldmark.work.engines import cluster, working_on
from fieldmark.work.blocks import map_blocks
from fieldmark_tests.ray_clusters import children

ray_blocks.LOOK_S, ray_blocks.GONE_S = 0.2, 1.0
try:
    with working_on("ray:cpus=0.25"):
        read, unread = (map_blocks(time.sleep, [0, 600], cluster()) for _ in range(2))
        next(read), next(unread)
        address = ray.get_runtime_context().gcs_address
        join = [sys.executable, "-c", f"from fieldmark.work.ray_cluster import connect; connect({address!r})"]
        no_token = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN": ""}
        said = subprocess.run(join, env=no_token, capture_output=True, text=True).stderr.splitlines()[-1]
        head = next(one for one in children(os.getpid()) if Path(f"/proc/{one}/comm").read_text() == "gcs_server\\n")
        os.kill(head, signal.SIGKILL)
        next(read)
except ray_blocks.ClusterError as error:
    print(said, error, sep=os.linesep)
unread.close()
print("joined" if ray.is_initialized() else "left")
"""


def test_a_token_that_is_asked_for_and_a_head_that_is_lost_are_told_and_no_other_cluster_is_started():
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}  # newer versions make one by themselves
    command = [sys.executable, "-c", HEAD_LOST]
    done = subprocess.run(
        command, env={**os.environ, **token}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    no_token, sentence, left = done.stdout.splitlines()
    assert "asks for its token: set RAY_AUTH_MODE=token" in no_token
    assert sentence.startswith("The Ray cluster is gone: its head ") and "does not answer (for 1 s)" in sentence
    assert sentence.endswith("Finished work is kept: run the same command again to continue.") and left == "left"
