"""The database: SQLite in one file, or PostgreSQL, behind the same two kinds of transaction.

`read()` looks, `write()` changes. On SQLite a writer takes the write lock before it reads (BEGIN IMMEDIATE), so that
what it read still holds when it writes; on PostgreSQL rows that a decision rests on are locked by name.

What was written is on the disk before anybody is told of it, so that a power failure takes nothing back. Counts of
tries and signs of life are written without that wait (`lasting=False`).
"""

from __future__ import annotations

import datetime as dt
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, event, select, text
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.exc import ArgumentError, OperationalError
from sqlalchemy.orm import Session, sessionmaker

from fieldmark.errors import InputError, MisuseError
from fieldmark_challenge.records import stamps
from fieldmark_challenge.records.schema import Base, Setting, utc_now

MIGRATIONS = Path(__file__).parent / "migrations"
SQLITE_WAIT_S = 60
WRITE = "fieldmark_write"
# How SQLite waits for the disk (PRAGMA synchronous): at each commit, or only when it tidies up its log.
LASTING, PASSING = "FULL", "NORMAL"
# Any number will do as long as it stays the same: it keeps two servers from migrating at once.
MIGRATION_LOCK = 4_170_520_26


class UnknownVersionError(Exception):
    """There is no such version of the tables."""

    def __init__(self, newest: str) -> None:
        super().__init__(f"the newest version of the tables is {newest}")
        self.newest = newest


class Database:
    """A database by its address (`sqlite:///platform.sqlite`, `postgresql+psycopg://user@host/name`)."""

    def __init__(self, url: str, *, pool_size: int = 10) -> None:
        try:
            parsed = make_url(url)
        except ArgumentError as error:
            raise MisuseError(
                f"--database {url}: expected an address such as postgresql+psycopg://user@host/name."
            ) from error
        if parsed.get_backend_name() not in ("sqlite", "postgresql"):
            raise MisuseError(f"--database {parsed.get_backend_name()}: the platform runs on sqlite and postgresql.")
        self.url = parsed
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        # A thread that waits for a connection waits for a transaction to end, which on SQLite may take its turn.
        options: dict[str, Any] = {"pool_size": pool_size, "max_overflow": 30, "pool_timeout": SQLITE_WAIT_S}
        options["hide_parameters"] = True  # they hold hashes, addresses and secrets, and errors go to the log
        if self.is_sqlite:
            options["connect_args"] = {"timeout": SQLITE_WAIT_S}
        else:
            options["pool_pre_ping"] = True
        self.engine: Engine = create_engine(parsed, **options)
        if self.is_sqlite:
            _prepare_sqlite(self.engine)
        self._reading = sessionmaker(self.engine, expire_on_commit=False)
        self._writing = sessionmaker(self.engine.execution_options(**{WRITE: LASTING}), expire_on_commit=False)
        self._noting = sessionmaker(self.engine.execution_options(**{WRITE: PASSING}), expire_on_commit=False)
        stamps.watch(self._writing)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session to look; what it changes is thrown away."""
        with self._reading() as session:
            yield session

    @contextmanager
    def write(self, *, lasting: bool = True) -> Iterator[Session]:
        """A transaction: everything in it happens, or nothing does.

        Args:
            lasting: Whether it survives a power failure from its end on. SQLite may forget what is not for a moment;
                PostgreSQL keeps everything as its `synchronous_commit` says.
        """
        with (self._writing if lasting else self._noting).begin() as session:
            yield session

    def migrate(self, to: str | None = None) -> None:
        """Brings the tables to the present version; on an empty database, makes them.

        Args:
            to: Another version, for rows of that version; only for a database without rows.

        Raises:
            InputError: When the database does not answer.
            UnknownVersionError: When there is no such version.
        """
        from alembic import command
        from alembic.config import Config
        from alembic.runtime.migration import MigrationContext
        from alembic.script import ScriptDirectory

        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        scripts = ScriptDirectory.from_config(config)
        newest = str(scripts.get_current_head())
        if to is not None and to not in {script.revision for script in scripts.walk_revisions()}:
            raise UnknownVersionError(newest)
        try:
            with self.engine.connect() as connection:
                if MigrationContext.configure(connection).get_current_revision() == (to or newest):
                    return
            with self.engine.connect() as connection, self._alone(connection):
                config.attributes["connection"] = connection
                if to is None:
                    command.upgrade(config, "head")
                else:
                    command.downgrade(config, to)
        except OperationalError as error:
            found = f"no answer ({str(error.orig).strip().splitlines()[0]})"
            where = self.url.render_as_string(hide_password=True)
            raise InputError(where, found=found, expected="a database that can be written to") from error

    @contextmanager
    def _alone(self, connection: Connection) -> Iterator[None]:
        """One process at a time changes tables: the others wait, and find that it is done.

        On SQLite that is one transaction. Tables are made anew in it, and dropping the old ones must not take along
        the rows that refer to them, so that references are looked at in the end.
        """
        if self.is_sqlite:
            raw: Any = connection.connection.driver_connection  # the pragma does nothing within a transaction
            raw.execute("PRAGMA foreign_keys=OFF")
            connection.execution_options(**{WRITE: LASTING})
            try:
                with connection.begin():
                    yield
                    if broken := connection.exec_driver_sql("PRAGMA foreign_key_check").first():
                        raise RuntimeError(f"a migration has left rows of {broken[0]} that refer to nothing")
            finally:
                raw.execute("PRAGMA foreign_keys=ON")
            return
        connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": MIGRATION_LOCK})
        connection.commit()
        try:
            yield
            connection.commit()
        finally:
            connection.rollback()
            connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": MIGRATION_LOCK})
            connection.commit()

    def now(self, session: Session) -> dt.datetime:
        """The time of the database, which all workers share even where their own clocks do not agree."""
        if self.is_sqlite:
            return utc_now()
        moment: dt.datetime = session.execute(text("SELECT clock_timestamp()")).scalar_one()
        return moment.astimezone(dt.UTC)

    def lock(self, session: Session, model: type[Base], key: Any, *, shared: bool = False) -> Any:
        """Reads one row and keeps others from changing it until the transaction ends; None where there is none.

        Args:
            session: The transaction.
            model: The table.
            key: Which row.
            shared: Whether only those wait who lock it for themselves, such as a reveal for a run being accepted.
        """
        mapper = model.__mapper__
        statement = select(model).where(mapper.primary_key[0] == key).execution_options(populate_existing=True)
        if not self.is_sqlite:
            statement = statement.with_for_update(read=shared, key_share=shared)
        return session.scalars(statement).one_or_none()

    def setting(self, name: str, make: Any) -> bytes:
        """A value that is made once and then kept, such as a secret.

        Args:
            name: What it is called.
            make: The function that makes it where there is none yet.
        """
        with self.write() as session:
            kept = session.get(Setting, name)
            if kept is None:
                # Two servers may start at once: the first to insert decides, the other reads.
                session.execute(_insert_once(session, name, make()))
                kept = session.get_one(Setting, name)
            return kept.value

    def close(self) -> None:
        self.engine.dispose()


def _insert_once(session: Session, name: str, value: bytes) -> Any:
    if session.get_bind().dialect.name == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert

        return sqlite_insert(Setting).values(name=name, value=value).on_conflict_do_nothing()
    from sqlalchemy.dialects.postgresql import insert

    return insert(Setting).values(name=name, value=value).on_conflict_do_nothing()


def _prepare_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions begin where we say, not where the driver guesses
        cursor = connection.cursor()
        _log_ahead(cursor)
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(WRITE)
        if writes:
            connection.exec_driver_sql(f"PRAGMA synchronous={writes}")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _log_ahead(cursor: sqlite3.Cursor) -> None:
    """Has SQLite keep a log of its own (WAL). Of several processes that open a new file, one changes it over; SQLite
    has the others fail at once instead of waiting.
    """
    deadline = time.monotonic() + SQLITE_WAIT_S
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
