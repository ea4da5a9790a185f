"""A backup holds everything, and is restored on either database."""

from __future__ import annotations

import zipfile

import pytest

from fieldmark.errors import InputError, MisuseError
from fieldmark_challenge.records import backup
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Base, PartScore
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.scoring import queue
from fieldmark_challenge_tests.conftest import administer
from fieldmark_challenge_tests.hosting import cards
from fieldmark_challenge_tests.platform import Platform, run_text


def furnish(platform: Platform) -> None:
    """One of everything."""
    ada = platform.captain("ada")
    platform.hand_in(ada, title="Ünïcode")
    queue.finish(platform.database, queue.claim(platform.database, "w"), cards(0.25))
    platform.hand_in(ada, run_text(right=5))


@pytest.mark.parametrize("target", ["sqlite", "postgresql"])
def test_a_backup_is_restored_on_either_database(platform: Platform, target, tmp_path, request):
    furnish(platform)
    counts = backup.backup(platform.database, platform.storage, tmp_path / "all.zip")
    assert counts["submissions"] == 2 and counts["files"] == len(platform.storage.everything())
    url = f"sqlite:///{tmp_path / 'restored.sqlite'}"
    if target == "postgresql":
        server = request.getfixturevalue("postgresql")
        name = f"restored{request.node.callspec.params['database_url']}"
        administer(server, f"CREATE DATABASE {name}")
        url = f"{server}/{name}"
    restored, store = Database(url), Storage(tmp_path / "restored-files")
    backup.restore(restored, store, tmp_path / "all.zip")
    with platform.database.read() as before, restored.read() as after:
        for table in Base.metadata.sorted_tables:
            if table.name not in backup.LEFT_OUT:
                key = list(table.primary_key.columns)
                rows = [session.execute(table.select().order_by(*key)).all() for session in (before, after)]
                assert rows[0] == rows[1], table.name
        assert after.query(PartScore).count() == 2
    for path in platform.storage.everything():
        assert b"".join(store.chunks(path)) == b"".join(platform.storage.chunks(path))
    # Life goes on: new rows get new numbers, and what waited is scored.
    again = Platform(restored, store, tmp_path, platform.admin, platform.challenge, dict(platform.people))
    assert again.hand_in(again.people["ada"]).id > 2
    assert queue.claim(restored, "w").submission_id == 2
    with pytest.raises(MisuseError, match="restore into an empty one"):
        backup.restore(restored, store, tmp_path / "all.zip")
    restored.close()


def test_only_a_backup_is_restored(small_platform: Platform, tmp_path):
    (tmp_path / "no.zip").write_text("no")
    with pytest.raises(InputError, match="expected a backup"):
        backup.restore(small_platform.database, small_platform.storage, tmp_path / "no.zip")
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("manifest.json", '{"tables": "0001", "counts": {}}')
        for table in Base.metadata.sorted_tables:
            archive.writestr(f"tables/{table.name}.jsonl", "")
        archive.writestr("files/../../evil", "x")
    fresh = Database(f"sqlite:///{tmp_path / 'fresh.sqlite'}")
    with pytest.raises(ValueError, match="not a path of the store"):
        backup.restore(fresh, Storage(tmp_path / "fresh"), tmp_path / "evil.zip")
    fresh.close()
