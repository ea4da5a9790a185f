"""One server for all tests of this folder."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import fsspec
import pytest
from moto.server import ThreadedMotoServer

from fieldmark_tests.object_storage.buckets import Bucket

# The usual settings of everything that talks to S3; one try, so that a test of a lost connection need not wait.
SETTINGS = {
    "AWS_ACCESS_KEY_ID": "anybody",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_MAX_ATTEMPTS": "1",
    "MOTO_S3_DEFAULT_MAX_KEYS": "100",  # so that a listing has several pages
}


@pytest.fixture(scope="session")
def _server() -> Iterator[str]:
    # Without a level it would write every request to whatever standard error is at the first one, a test's own.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A bucket of a server on this machine, found by the settings of the environment."""
    for name, value in {**SETTINGS, "AWS_ENDPOINT_URL": _server.replace("0.0.0.0", "127.0.0.1")}.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "FIELDMARK_CACHE_GB"):
        monkeypatch.delenv(name, raising=False)
    system = fsspec.filesystem("s3")
    name = f"releases-{os.getpid()}"
    if not system.exists(name):
        system.mkdir(name)
    yield Bucket(name)
