"""Backup and restore: the whole platform in one zip file, from and to either database and any file store.

```
backup.zip
  manifest.json         what this is: version of the tables, when, how many rows
  tables/<name>.jsonl   one row per line, in the order in which they can be put back
  files/<path>          every file of the store
```

Sessions, counts of tries, signs of life, attempts to sign in and unfinished uploads are left out: they are of no use
elsewhere.
"""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Column, DateTime, Integer, LargeBinary, MetaData, Table, func, insert, select, text, update
from sqlalchemy.orm import Session

from fieldmark.errors import InputError, MisuseError
from fieldmark.storage.files import appearing_file
from fieldmark_challenge.records.database import Database, UnknownVersionError
from fieldmark_challenge.records.mail_schema import OutgoingMail
from fieldmark_challenge.records.schema import Base, utc_now
from fieldmark_challenge.records.scratch import scratch
from fieldmark_challenge.records.storage import CHUNK, Storage

MANIFEST = "manifest.json"
LEFT_OUT = (
    "sessions",
    "rate_counts",
    "worker_signs",
    "sign_on_attempts",
    "code_hosts",
    "partial_uploads",
    "upload_parts",
)
ROWS_AT_ONCE = 500


def backup(database: Database, storage: Storage, out: Path) -> dict[str, int]:
    """Writes everything into one file, which appears when it is complete.

    Returns:
        How many rows of each table, and how many files.
    """
    counts: dict[str, int] = {}
    with (
        appearing_file(out, mode=0o600) as partial,  # it holds the truth, and hashes of passwords
        zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive,
        database.read() as session,  # one transaction: what is in it fits together
    ):
        if not database.is_sqlite:
            session.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
        for table in _tables():
            with archive.open(f"tables/{table.name}.jsonl", "w", force_zip64=True) as raw:
                counts[table.name] = 0
                for row in session.execute(select(table)).mappings():
                    values = {name: _to_json(value) for name, value in row.items()}
                    raw.write(json.dumps(values, ensure_ascii=False).encode() + b"\n")
                    counts[table.name] += 1
        paths = [path for path in storage.everything() if not path.startswith("parts/")]
        gone = [path for path in paths if not _take(storage, path, archive)]
        counts["files"] = len(paths) - len(gone)
        about = {"fieldmark_backup": 1, "tables": _version(session), "made_at": utc_now().isoformat(), "counts": counts}
        about["removed_meanwhile"] = gone
        archive.writestr(MANIFEST, json.dumps(about, indent=2))
    return counts


def restore(database: Database, storage: Storage, source: Path) -> dict[str, int]:
    """Puts everything back into an empty database and file store.

    A backup of older tables is put into tables of its own version, which are then brought up to date.

    Raises:
        InputError: When the file is no backup, or one of a version that is not known here.
        MisuseError: When the database holds something already.
    """
    try:
        archive = zipfile.ZipFile(source)
        about = json.loads(archive.read(MANIFEST))
    except (OSError, zipfile.BadZipFile, KeyError, json.JSONDecodeError) as error:
        raise InputError(source, found=f"something else ({error})", expected="a backup of the platform") from error
    with archive:
        database.migrate()
        with database.write() as session:
            _check_empty(session)
        try:
            database.migrate(to=str(about.get("tables")))
        except UnknownVersionError as error:
            hint = "Restore it with the version of Fieldmark that made it, or a later one."
            found = f"tables of version {about.get('tables')}"
            raise InputError(source, found=found, expected=f"version {error.newest} or older", hint=hint) from error
        try:
            with database.write() as session:
                for table in _tables_there(session):
                    _refill(session, table, archive)
        finally:
            database.migrate()
        with database.write() as session:  # the platform that the backup is of has sent them, or still will
            waiting = update(OutgoingMail).where(OutgoingMail.state == "waiting")
            session.execute(waiting.values(state="dropped", settled_at=utc_now(), problem="came out of a backup"))
        for name in archive.namelist():
            if name.startswith("files/"):
                _put(storage, name.removeprefix("files/"), archive.open(name))
    counts: dict[str, int] = about["counts"]
    return counts


def _take(storage: Storage, path: str, archive: zipfile.ZipFile) -> bool:
    """Takes a file into a backup; False where it was removed since the list of files was made."""
    try:
        with storage.open(path) as source, archive.open(f"files/{path}", "w", force_zip64=True) as sink:
            while piece := source.read(CHUNK):
                sink.write(piece)
    except InputError:  # there is no such file (any more)
        return False
    return True


def _tables() -> list[Table]:
    return [table for table in Base.metadata.sorted_tables if table.name not in LEFT_OUT]


def _tables_there(session: Session) -> list[Table]:
    """The tables as the database has them, which may be those of an older version."""
    there = MetaData()
    there.reflect(session.connection())
    return [table for table in there.sorted_tables if table.name not in (*LEFT_OUT, "alembic_version")]


def _version(session: Session) -> str:
    return str(session.execute(text("SELECT version_num FROM alembic_version")).scalar_one())


def _check_empty(session: Session) -> None:
    for table in _tables():
        if table.name != "settings" and session.execute(select(func.count()).select_from(table)).scalar_one():
            raise MisuseError(f"The database holds {table.name} already: restore into an empty one.")
    session.execute(Base.metadata.tables["settings"].delete())  # made by the server when it first started


def _refill(session: Session, table: Table, archive: zipfile.ZipFile) -> None:
    with archive.open(f"tables/{table.name}.jsonl") as raw:
        for block in _blocks(io.TextIOWrapper(raw, encoding="utf-8")):
            rows = [{column.name: _from_json(column, row[column.name]) for column in table.columns} for row in block]
            session.execute(insert(table), rows)
    numbered = [column for column in table.primary_key.columns if isinstance(column.type, Integer)]
    counts_itself = len(table.primary_key.columns) == 1 and numbered and numbered[0].name == "id"
    if counts_itself and session.get_bind().dialect.name == "postgresql":
        # Rows came with their numbers; new ones go on after the last of them.
        sequence = f"pg_get_serial_sequence('{table.name}', 'id')"
        highest = f"(SELECT COALESCE(MAX(id), 0) + 1 FROM {table.name})"
        session.execute(text(f"SELECT setval({sequence}, {highest}, false)"))


def _blocks(lines: Iterator[str]) -> Iterator[list[dict[str, Any]]]:
    block: list[dict[str, Any]] = []
    for line in lines:
        block.append(json.loads(line))
        if len(block) == ROWS_AT_ONCE:
            yield block
            block = []
    if block:
        yield block


def _to_json(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def _from_json(column: Column[Any], value: Any) -> Any:
    if value is None:
        return None
    if isinstance(column.type, DateTime):
        return dt.datetime.fromisoformat(value)
    if isinstance(column.type, LargeBinary):
        return base64.b64decode(value)
    return value


def _put(storage: Storage, path: str, source: Any) -> None:
    with scratch("restore") as folder, source:
        kept = folder / "file"
        with kept.open("wb") as sink:
            while piece := source.read(CHUNK):
                sink.write(piece)
        storage.put(kept, path)
