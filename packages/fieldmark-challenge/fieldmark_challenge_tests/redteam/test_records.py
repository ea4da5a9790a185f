"""Attacks on what is kept: processes that start at once, power failures, files that vanish, and upgrades."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import MetaData, Table, insert, inspect, select, text
from sqlalchemy.engine import Connection

from fieldmark_challenge.challenges import admissions
from fieldmark_challenge.people import rates
from fieldmark_challenge.records import backup, database
from fieldmark_challenge.records.database import MIGRATIONS, Database
from fieldmark_challenge.records.schema import Base, Submission, utc_now
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.records.upload_schema import PartialUpload, UploadPart
from fieldmark_challenge.scoring import queue
from fieldmark_challenge_tests.conftest import KINDS, administer
from fieldmark_challenge_tests.hosting import cards
from fieldmark_challenge_tests.platform import Platform
from fieldmark_challenge_tests.programs.test_program_queue import ask_for_programs, debug, hand_in

BEFORE = "0010"


def new_database(request: pytest.FixtureRequest, kind: str, folder: Path) -> str:
    """The address of a database without any tables."""
    if kind == "sqlite":
        return f"sqlite:///{folder / 'new.sqlite'}"
    server, name = request.getfixturevalue("postgresql"), f"t{os.urandom(6).hex()}"
    administer(server, f"CREATE DATABASE {name}")
    return f"{server}/{name}"


def _open(url: str, together: Any, said: Any) -> None:
    together.wait()
    try:
        found = Database(url)
        found.migrate()
        found.setting("secret", lambda: b"x")
        found.close()
        said.put("")
    except BaseException as error:
        said.put(f"{type(error).__name__}: {error}")


@pytest.mark.parametrize("kind", KINDS)
def test_processes_that_open_an_empty_platform_at_once_all_get_it(request: pytest.FixtureRequest, tmp_path, kind: str):
    url = new_database(request, kind, tmp_path)
    forked = multiprocessing.get_context("fork")
    together, said = forked.Barrier(4), forked.Queue()
    processes = [forked.Process(target=_open, args=(url, together, said)) for _ in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # they do nothing but open a database
        for process in processes:
            process.start()
    assert [said.get(timeout=120) for _ in processes] == [""] * 4
    for process in processes:
        process.join()


def test_what_is_acknowledged_is_on_the_disk_and_counts_of_tries_do_not_wait_for_it(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(database, "LASTING", "FULL")  # as it is everywhere but in tests
    kept = Database(f"sqlite:///{tmp_path / 'platform.sqlite'}")
    kept.migrate()
    with kept.write() as session:
        assert session.execute(text("PRAGMA synchronous")).scalar_one() == 2
        assert session.execute(text("PRAGMA journal_mode")).scalar_one() == "wal"
    with kept.write(lasting=False) as session:
        assert session.execute(text("PRAGMA synchronous")).scalar_one() == 1
    rates.count(kept, rates.UPLOAD, "7")
    with kept.write() as session:
        assert session.execute(text("PRAGMA synchronous")).scalar_one() == 2
    kept.close()


class Vanishing(Storage):
    """A store of which a file is removed between the list and the reading."""

    def everything(self) -> list[str]:
        found = super().everything()
        self.delete(next(path for path in found if path.startswith("runs/")))
        return found


def test_a_backup_is_made_though_a_file_vanishes_meanwhile(attacked: Platform, tmp_path: Path):
    shutil.copytree(attacked.storage.root, tmp_path / "files")
    (tmp_path / "run").write_text("x")
    Storage(tmp_path / "files").put(tmp_path / "run", "runs/0/refused-meanwhile")
    whole = len(Storage(tmp_path / "files").everything())
    counts = backup.backup(attacked.database, Vanishing(tmp_path / "files"), tmp_path / "backup.zip")
    assert counts["files"] == whole - 1
    back = Database(f"sqlite:///{tmp_path / 'back.sqlite'}")
    assert backup.restore(back, Storage(tmp_path / "back"), tmp_path / "backup.zip") == counts
    back.close()


@pytest.fixture
def old(platform: Platform, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database with the tables of the version before, of the same kind as that of the platform."""
    kind = "sqlite" if platform.database.is_sqlite else "postgresql"
    made, config = Database(new_database(request, kind, tmp_path)), Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with made.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, BEFORE)
        connection.commit()
    yield made
    made.close()


def rows_of(connection: Connection, table: Table) -> list[dict[str, Any]]:
    names = [column.name for column in table.columns]
    return [
        dict(zip(names, row, strict=True)) for row in connection.execute(select(table).order_by(*table.primary_key))
    ]


def tables_in(connection: Connection) -> list[Table]:
    there = MetaData()
    there.reflect(connection)
    return [table for table in there.sorted_tables if table.name != "alembic_version"]


def test_a_platform_of_the_version_before_loses_nothing(platform: Platform, old: Database):
    busy(platform)
    with platform.database.engine.connect() as source, old.engine.connect() as target:
        before = {}
        for table in tables_in(target):
            before[table.name] = rows_of(source, table)
            if before[table.name]:
                target.execute(insert(table), before[table.name])
        target.commit()
        sequences(target, old)
    assert {name for name, rows in before.items() if rows} >= {
        "users", "teams", "memberships", "submissions", "scores", "programs", "partial_uploads", "upload_parts",
        "admissions", "audit_events", "challenges", "phases", "data_files", "code_tasks",
    }  # fmt: skip
    old.migrate()
    with old.engine.connect() as connection:
        after = {table.name: rows_of(connection, table) for table in tables_in(connection)}
        ran = [row.pop("ran_at") for row in after["programs"]]
        assert {row.pop("external_found") for row in after["submissions"]} == {""}
        assert after == before
        assert [moment is not None for moment in ran] == [False, True, False]
        found = {index["name"] for table in Base.metadata.tables for index in inspect(connection).get_indexes(table)}
        assert found == {index.name for table in Base.metadata.tables.values() for index in table.indexes} | {
            index for index in found if index.startswith("uq_")
        }
    last = max(row["id"] for row in before["submissions"])
    there = Platform(old, platform.storage, platform.folder, platform.admin, platform.challenge, platform.people)
    assert hand_in(there, platform.people["ben"]) == last + 1
    with old.write() as session:
        session.execute(text("DELETE FROM programs WHERE submission_id = :last"), {"last": last + 1})
        session.execute(text("DELETE FROM submissions WHERE id = :last"), {"last": last + 1})
    assert hand_in(there, platform.people["ben"]) == last + 2


def busy(platform: Platform) -> None:
    """Has something of everything happen on a platform."""
    ada, ben = platform.captain("ada"), platform.captain("ben")
    platform.hand_in(ada)
    queue.finish(platform.database, queue.claim(platform.database, "w"), cards())
    platform.hand_in(ada)
    private = platform.make("closed", access="approval")
    admissions.ask(platform.database, ben, private, "please")
    with platform.database.write() as session:
        number = session.query(Submission.id).order_by(Submission.id).first()[0]
        about = {"user_id": ada.id, "challenge_id": platform.challenge.id, "filename": "run.csv", "sha256": "x"}
        session.add(PartialUpload(id="u" * 32, size=10, received=4, expires_at=utc_now(), **about))
        session.add(PartialUpload(id="v" * 32, size=4, received=4, expires_at=utc_now(), submission_id=number, **about))
        session.flush()
        session.add(UploadPart(upload_id="u" * 32, start=0, size=4, path="parts/u/0"))
    ask_for_programs(platform)
    hand_in(platform, ben)
    hand_in(platform, ben)
    debug(platform, ben)
    with platform.database.write() as session:
        session.execute(text("UPDATE programs SET started_at = accepted_at WHERE id = 2"))
        session.execute(text("UPDATE submissions SET fence = 3"))  # they were counted then


def sequences(connection: Connection, old: Database) -> None:
    """PostgreSQL counts on from the rows that are there."""
    if old.is_sqlite:
        return
    for table in tables_in(connection):
        if [column.name for column in table.primary_key] == ["id"] and table.name != "partial_uploads":
            highest = f"(SELECT COALESCE(MAX(id), 0) + 1 FROM {table.name})"
            connection.execute(text(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), {highest}, false)"))
    connection.commit()
