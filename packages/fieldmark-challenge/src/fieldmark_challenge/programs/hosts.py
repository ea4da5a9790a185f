"""The machines that run programs: each tries its walls when it starts and says what it found; the platform listens."""

from __future__ import annotations

import socket
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from fieldmark.web.refusals import ConflictError
from fieldmark_challenge.programs.runners import CodeRunner
from fieldmark_challenge.programs.self_test import EDITION, failure_of
from fieldmark_challenge.records.code_schema import CodeHost
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import utc_now
from fieldmark_challenge.records.storage import Storage

START = "Start one with `fieldmark worker --lane code`, or `fieldmark serve --code-workers 1`."


def try_walls(database: Database, storage: Storage, runner: CodeRunner) -> str:
    """Tries the walls of this machine and notes what was found; empty where they hold."""
    failure = failure_of(runner, hidden_from_programs(database, storage))
    with database.write() as session:
        name = f"{socket.gethostname()} ({runner.name})"[:100]
        host = session.get(CodeHost, name) or CodeHost(name=name)
        host.runner, host.failure, host.tried_at = tried_with(runner), failure[:2000], utc_now()
        session.add(host)
    return failure


def tried_with(runner: CodeRunner) -> str:
    """What is noted of a runner: its name, and how thoroughly its walls were tried."""
    return f"{runner.name}, self-test {EDITION}"


def hidden_from_programs(database: Database, storage: Storage) -> list[Path]:
    """Where the truth and the accounts of the platform lie, if on this machine."""
    places = [Path(storage.root) / name for name in ("truth", "runs", "code")] if storage.is_local else []
    if database.is_sqlite and database.url.database:
        places.append(Path(database.url.database))
    return [place.resolve() for place in places]


def hosts(session: Session) -> list[CodeHost]:
    """The machines that have said something, by name."""
    return list(session.scalars(select(CodeHost).order_by(CodeHost.name)))


def why_not(session: Session) -> str:
    """Why no program can be run; empty where a machine has walls that hold."""
    known = hosts(session)
    if not known:
        return f"No worker that runs programs has tried its walls yet. {START}"
    failures = [f"on {host.name}, {why}" for host in known if (why := _failure(host))]
    return "" if len(failures) < len(known) else f"Programs cannot be run safely: {'; '.join(failures)}."


def _failure(host: CodeHost) -> str:
    """Why a machine runs no programs; one that was tried by an earlier version has to be tried again."""
    if not host.runner.endswith(f", self-test {EDITION}"):
        return "the walls were tried by another version: start its worker again"
    return host.failure


def need_walls(session: Session) -> None:
    """Refuses to go on where no program can be run.

    Raises:
        ConflictError: Says why.
    """
    if reason := why_not(session):
        raise ConflictError(reason)
