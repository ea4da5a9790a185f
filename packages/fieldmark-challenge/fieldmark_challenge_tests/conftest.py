"""Platforms for the tests: real databases of both kinds, a real file store, a small challenge."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from anyio.from_thread import start_blocking_portal
from argon2 import PasswordHasher
from sqlalchemy import text
from starlette.testclient import TestClient

from fieldmark_challenge.people import accounts
from fieldmark_challenge.records import database as records
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge_tests.own_postgres import OwnPostgres, postgres_binaries
from fieldmark_challenge_tests.platform import Platform, open_platform
from fieldmark_tests.system_programs import absent

KINDS = ("sqlite", "postgresql")


@pytest.fixture(autouse=True, scope="session")
def quick_passwords() -> Iterator[None]:
    """The strength of argon2 is not under test, and takes time."""
    accounts.HASHER, kept = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1), accounts.HASHER
    yield
    accounts.HASHER = kept


@pytest.fixture(autouse=True, scope="session")
def quick_disk() -> Iterator[None]:
    """Nobody pulls the plug on a test, and waiting for the disk takes time; PostgreSQL does not wait either, below."""
    records.LASTING, kept = "OFF", records.LASTING
    yield
    records.LASTING = kept


@pytest.fixture(autouse=True, scope="session")
def one_event_loop() -> Iterator[None]:
    """Clients share a thread with an event loop, as the requests to a server do; else each request starts its own."""
    with start_blocking_portal() as portal:
        TestClient.portal = portal
        yield
        TestClient.portal = None


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of a PostgreSQL server of our own, with the name of the database left out."""
    if postgres_binaries() is None:
        absent("there is no PostgreSQL under /usr/lib/postgresql")
    server = OwnPostgres(durable=False)
    yield server.url
    server.close()


@pytest.fixture(scope="session")
def empty_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file, to be copied."""
    path = tmp_path_factory.mktemp("empty") / "empty.sqlite"
    database = Database(f"sqlite:///{path}")
    database.migrate()
    with database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return path


@pytest.fixture(scope="session")
def empty_postgresql(postgresql: str) -> str:
    """The name of a migrated database on the server, to be copied."""
    administer(postgresql, "CREATE DATABASE empty")
    database = Database(f"{postgresql}/empty")
    database.migrate()
    database.close()
    return "empty"


def administer(server: str, statement: str) -> None:
    database = Database(f"{server}/postgres")
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(statement))
    database.close()


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty platform's database, of each kind in turn."""
    if request.param == "sqlite":
        shutil.copyfile(request.getfixturevalue("empty_sqlite"), tmp_path / "platform.sqlite")
        yield f"sqlite:///{tmp_path / 'platform.sqlite'}"
        return
    server = request.getfixturevalue("postgresql")
    template = request.getfixturevalue("empty_postgresql")
    name = f"t{os.urandom(6).hex()}"
    administer(server, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield f"{server}/{name}"
    administer(server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def platform(database_url: str, tmp_path: Path) -> Iterator[Platform]:
    """A platform with a small challenge, on each database in turn."""
    database = Database(database_url)
    yield open_platform(database, Storage(tmp_path / "files"), tmp_path)
    database.close()


@pytest.fixture
def small_platform(empty_sqlite: Path, tmp_path: Path) -> Iterator[Platform]:
    """The same on SQLite only, for promises that have nothing to do with the database."""
    shutil.copyfile(empty_sqlite, tmp_path / "platform.sqlite")
    database = Database(f"sqlite:///{tmp_path / 'platform.sqlite'}")
    yield open_platform(database, Storage(tmp_path / "files"), tmp_path)
    database.close()
