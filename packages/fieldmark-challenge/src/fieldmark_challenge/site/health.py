"""Is the server there, can it do its work, and what has it done: `/healthz`, `/readyz`, `/metrics`.

`/healthz` says that the process answers. `/readyz` tries what the platform needs (database, file store, checkers,
workers) and says what is missing. `/metrics` is for the machine itself and for those who know its token.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query
from sqlalchemy import select, text
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from fieldmark.web.refusals import NotThereError
from fieldmark_challenge.operations import heartbeats
from fieldmark_challenge.operations.shutdown import Stopping
from fieldmark_challenge.records.clock_guard import put_back_by, reopened_phases
from fieldmark_challenge.records.code_schema import CodePhase, Program
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, LaneName, Phase
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.site.measurements import Measurements, metric, platform_lines, process_lines
from fieldmark_challenge.submissions import uploads

log = logging.getLogger(__name__)

router = APIRouter()
OK = "ok"
WORKERS: dict[LaneName, str] = {"score": "no worker", "code": "no worker that runs programs"}
WAIT_S, KEPT_S = 5.0, 5.0
LEAST_FREE_MB = 256
# A request that came through a proxy is not one of the machine itself, whatever address it comes from.
FORWARDED = ("x-forwarded-for", "forwarded", "x-real-ip", "via")
FORMAT = "text/plain; version=0.0.4; charset=utf-8"


class Readiness:
    """What the platform needs, tried once in a few seconds however often it is asked.

    Args:
        database, storage: What is tried.
        stopping: Where the process is about to end, it is not ready either.
        wait_s: How long an answer may take.
        kept_s: How long it holds.
    """

    def __init__(
        self,
        database: Database,
        storage: Storage,
        stopping: Stopping,
        *,
        wait_s: float = WAIT_S,
        kept_s: float = KEPT_S,
    ) -> None:
        self.database, self.storage, self.stopping = database, storage, stopping
        self.wait_s, self.kept_s = wait_s, kept_s
        self._lock = threading.Lock()
        self._said: dict[str, str] = {}
        self._at = float("-inf")
        self._pending: dict[str, threading.Thread] = {}
        self._results: dict[str, str] = {}

    def ask(self) -> dict[str, str]:
        """For each part "ok", or what is wrong with it."""
        with self._lock:
            if time.monotonic() - self._at > self.kept_s:
                self._said, self._at = self._try_all(), time.monotonic()
            stopping = {"process": "it is about to end"} if self.stopping.begun.is_set() else {}
            return {**self._said, **stopping}

    def _try_all(self) -> dict[str, str]:
        parts: dict[str, Callable[[], str]] = {
            "database": self._try_database,
            "storage": self._try_storage,
            "checkers": self._try_checkers,
            "workers": lambda: self._try_workers("score"),
            "code_workers": self._try_code_workers,
            "clock": self._try_clock,
        }
        deadline = time.monotonic() + self.wait_s
        for name, check in parts.items():
            if (before := self._pending.get(name)) is None or not before.is_alive():
                self._results.pop(name, None)
                thread = threading.Thread(target=self._run, args=(name, check), daemon=True)
                self._pending[name] = thread
                thread.start()
        said = {}
        for name in parts:
            self._pending[name].join(max(0.0, deadline - time.monotonic()))
            said[name] = self._results.get(name, f"no answer within {self.wait_s:g} seconds")
        return said

    def _run(self, name: str, check: Callable[[], str]) -> None:
        try:
            self._results[name] = check()
        except SQLAlchemyError as error:
            log.warning("not ready: the database does not answer (%s)", type(error).__name__)
            self._results[name] = "the database does not answer"
        except Exception as error:  # whatever it is, it is the answer to the question
            log.warning("not ready: %s: %s", name, error)
            self._results[name] = f"it does not work ({type(error).__name__})"

    def _try_database(self) -> str:
        with self.database.read() as session:
            session.execute(text("SELECT 1"))
        return OK

    def _try_storage(self) -> str:
        self.storage.try_out()
        folders = [Path(tempfile.gettempdir()), *([Path(self.storage.root)] if self.storage.is_local else [])]
        free = min(shutil.disk_usage(folder).free for folder in folders) >> 20
        return OK if free >= LEAST_FREE_MB else f"{free} MiB are free, less than {LEAST_FREE_MB}"

    def _try_checkers(self) -> str:
        uploads.CHECKERS.ready()
        return OK

    def _try_workers(self, lane: LaneName) -> str:
        seen, which = heartbeats.seconds_since(self.database, lane), WORKERS[lane]
        if not seen:
            return f"{which} is there"
        last = min(seen.values())
        return OK if last <= heartbeats.ALIVE_S else f"{which} was heard of for {last:.0f} seconds"

    def _try_code_workers(self) -> str:
        """Somebody has to run programs where they are asked for now, or wait."""
        with self.database.read() as session:
            now = self.database.now(session)
            phases = select(CodePhase.phase_id).join(Phase, Phase.id == CodePhase.phase_id).join(Phase.challenge)
            shown = (Challenge.published_at.is_not(None), Challenge.revealed_at.is_(None))
            asked = phases.where(Phase.starts_at <= now, Phase.ends_at > now, *shown)
            waiting = select(Program.id).where(Program.state == "queued")
            needed = any(session.scalars(query.limit(1)).first() is not None for query in (asked, waiting))
        return self._try_workers("code") if needed else OK

    def _try_clock(self) -> str:
        """Nothing waits for a clock that was put back, but people have to look at phases that had ended before."""
        with self.database.read() as session:
            now = self.database.now(session)
            behind = put_back_by(session, now)
            if not behind:
                return OK
            phases = [(phase.name, phase.challenge) for phase in reopened_phases(session, now)]
        shown = [f"{name} of {c.slug}" for name, c in phases if c.published_at is not None and c.access != "private"]
        others = len(phases) - len(shown)  # anybody may ask here: the log names them
        named = ", ".join(shown + ([f"{others} of challenges that not everybody sees"] if others else []))
        if others:
            log.warning("phases that had ended before: %s", ", ".join(f"{name} of {c.slug}" for name, c in phases))
        ended = f"; these phases had ended and take no runs until their dates are saved anew: {named}" if named else ""
        return f"it lies {behind.total_seconds() / 60:.0f} minutes behind the latest moment that was seen{ended}"


@router.get("/healthz")
async def healthz() -> PlainTextResponse:
    """The process answers."""
    return PlainTextResponse("ok\n")


@router.get("/readyz")
def readyz(request: Request, without: Annotated[list[str] | None, Query(max_length=8)] = None) -> JSONResponse:
    """Whether the platform can do its work; 503 with the reasons where it cannot."""
    readiness: Readiness = request.app.state.readiness
    said = {name: reason for name, reason in readiness.ask().items() if name not in (without or ())}
    ready = all(reason == OK for reason in said.values())
    return JSONResponse({"ready": ready, "checks": said}, 200 if ready else 503)


@router.get("/metrics")
def metrics(request: Request) -> Response:
    """What the server has done, for Prometheus; only from the machine itself, or with the token."""
    if not (_is_local(request) or _has_token(request)):
        raise NotThereError
    measured: Measurements = request.app.state.measurements
    lines = process_lines() + measured.lines()
    lines += metric("fieldmark_checks_under_way", "gauge", "Runs being checked.", [({}, uploads.CHECKERS.busy)])
    lines += metric("fieldmark_uploads_inside", "gauge", "Uploads at work.", [({}, request.app.state.uploads.inside)])
    try:
        lines, up = lines + platform_lines(request.app.state.database), 1
    except SQLAlchemyError:
        up = 0
    lines += metric("fieldmark_database_up", "gauge", "Whether the database answers.", [({}, up)])
    return Response("\n".join(lines) + "\n", media_type=FORMAT)


def _is_local(request: Request) -> bool:
    if request.client is None or any(name in request.headers for name in FORWARDED):
        return False
    try:
        return ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False


def _has_token(request: Request) -> bool:
    token: str | None = request.app.state.metrics_token
    given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
    return bool(token) and hmac.compare_digest(str(token).encode(), given.encode())
