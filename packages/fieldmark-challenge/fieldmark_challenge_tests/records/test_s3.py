"""The platform with its files on S3: an S3 server of our own (moto), the usual environment, nothing replaced."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from fieldmark.errors import InputError
from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.operations.shutdown import Stopping
from fieldmark_challenge.people import accounts
from fieldmark_challenge.records import backup
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.orphans import collect_orphans
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.scoring.worker import Worker
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge.site.health import Readiness
from fieldmark_challenge_tests.platform import PASSWORD, open_platform, run_text

moto = pytest.importorskip("moto.server", reason="moto is the S3 server")
s3fs = pytest.importorskip("s3fs", reason="s3fs reads and writes there")


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """An empty bucket; who it belongs to is in the environment, as S3 has it."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_ACCESS_KEY_ID", "fieldmark")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "not a secret")
        for name in [name for name in os.environ if name.startswith("AWS_") and "PROFILE" in name]:
            patch.delenv(name)
        s3fs.S3FileSystem(skip_instance_cache=True).mkdir("challenge")
        yield "s3://challenge"
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


def test_a_challenge_lives_on_s3_from_the_upload_to_the_restored_backup(
    bucket: str, empty_sqlite: Path, tmp_path: Path
):
    shutil.copyfile(empty_sqlite, tmp_path / "platform.sqlite")
    database = Database(f"sqlite:///{tmp_path / 'platform.sqlite'}")
    platform = open_platform(database, Storage(f"{bucket}/one"), tmp_path)
    run = platform.hand_in(platform.captain("ada"), run_text(right=45))
    assert run.path in platform.storage.everything() and not (tmp_path / "files").exists()
    # A worker elsewhere reads run and truth through a connection of its own.
    assert Worker(database, Storage(f"{bucket}/one")).run_one()
    scored = platform.submission(run.id)
    assert scored.state == "scored" and {row.part for row in scored.scores} == {"public", "private"}
    client = TestClient(create_app(database, platform.storage))
    client.cookies.set(SESSION_COOKIE, accounts.sign_in(database, "ada", PASSWORD)[1])
    assert client.get(f"/c/tiny/submissions/{run.id}/file").text == run_text(right=45)
    assert Readiness(database, platform.storage, Stopping(), wait_s=60).ask()["storage"] == "ok"
    counts = backup.backup(database, platform.storage, tmp_path / "all.zip")
    assert counts["files"] == len(platform.storage.everything()) > 3
    restored, store = Database(f"sqlite:///{tmp_path / 'again.sqlite'}"), Storage(f"{bucket}/two")
    backup.restore(restored, store, tmp_path / "all.zip")
    assert store.everything() == platform.storage.everything()
    assert b"".join(store.chunks(run.path)) == run_text(right=45).encode()
    assert collect_orphans(restored, store) == []
    restored.close()
    database.close()


def test_what_another_process_stored_a_moment_ago_is_seen(bucket: str, tmp_path: Path):
    here, elsewhere = Storage(f"{bucket}/seen"), s3fs.S3FileSystem(skip_instance_cache=True)
    (tmp_path / "run").write_bytes(b"one")
    here.put(tmp_path / "run", "runs/1/a")
    assert here.names("runs/1") == ["a"] and not here.exists("runs/1/b")
    elsewhere.pipe_file("challenge/seen/runs/1/b", b"two")
    assert here.names("runs/1") == ["a", "b"] and here.exists("runs/1/b")
    elsewhere.rm_file("challenge/seen/runs/1/a")
    assert here.everything() == ["runs/1/b"] and not here.exists("runs/1/a")
    with pytest.raises(InputError, match="no such file"), here.open("runs/1/a"):
        pass
