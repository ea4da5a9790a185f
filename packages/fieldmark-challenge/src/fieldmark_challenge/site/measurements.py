"""What a server has done and what it holds, in the text format of Prometheus; counts only, and nobody's name.

Labels take few values: the pattern of an address and never the address itself.
"""

from __future__ import annotations

import datetime as dt
import os
import resource
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import get_args

from sqlalchemy import func, select

from fieldmark.version import __version__
from fieldmark_challenge.mail import outbox
from fieldmark_challenge.operations import heartbeats
from fieldmark_challenge.records.code_schema import Program, ProgramState
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import STATES, Submission

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
_STARTED = time.time()
Sample = tuple[Mapping[str, object], float]


class Measurements:
    """Counts of requests since the process started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._seconds: dict[str, float] = {}
        self._under_way = 0

    def begin(self) -> None:
        """A request has come."""
        with self._lock:
            self._under_way += 1

    def end(self, method: str, route: str, status: int, seconds: float) -> None:
        """It was answered.

        Args:
            method: Its verb.
            route: The pattern of its address.
            status: Of the answer.
            seconds: How long it took.
        """
        kind = kind_of_route(route)
        with self._lock:
            self._under_way -= 1
            self._requests[method if method in METHODS else "other", route, status] += 1
            self._seconds[kind] = self._seconds.get(kind, 0.0) + seconds
            self._buckets[kind, next((bound for bound in BOUNDS_S if seconds <= bound), float("inf"))] += 1

    def lines(self) -> list[str]:
        """What was counted."""
        with self._lock:
            requests, buckets = dict(self._requests), dict(self._buckets)
            spent, under_way = dict(self._seconds), self._under_way
        told = metric(
            "fieldmark_requests_total",
            "counter",
            "Requests that were answered.",
            [
                ({"method": method, "route": route, "status": status}, count)
                for (method, route, status), count in sorted(requests.items())
            ],
        )
        samples: list[tuple[str, Sample]] = []
        for kind in sorted(spent):
            total = 0
            for bound in (*BOUNDS_S, float("inf")):
                total += buckets.get((kind, bound), 0)
                shown = "+Inf" if bound == float("inf") else f"{bound:g}"
                samples.append(("_bucket", ({"kind": kind, "le": shown}, total)))
            samples += [("_sum", ({"kind": kind}, spent[kind])), ("_count", ({"kind": kind}, total))]
        name = "fieldmark_request_seconds"
        told += [f"# HELP {name} How long answers took.", f"# TYPE {name} histogram"]
        told += [f"{name}{ending}{_labels(labels)} {value:g}" for ending, (labels, value) in samples]
        return told + metric("fieldmark_requests_under_way", "gauge", "Requests being answered.", [({}, under_way)])


def kind_of_route(route: str) -> str:
    """Page, API, file of the site, or a question about the server itself."""
    if route in ("/healthz", "/readyz", "/metrics"):
        return "operating"
    return next((kind for kind in ("api", "static") if route.startswith(f"/{kind}")), "page")


def metric(name: str, kind: str, about: str, samples: Iterable[Sample]) -> list[str]:
    """The lines of one metric.

    >>> metric("runs", "gauge", "Runs.", [({"state": "queued"}, 3)])
    ['# HELP runs Runs.', '# TYPE runs gauge', 'runs{state="queued"} 3']
    """
    return [
        f"# HELP {name} {about}",
        f"# TYPE {name} {kind}",
        *(f"{name}{_labels(labels)} {value:.15g}" for labels, value in samples),
    ]


def platform_lines(database: Database) -> list[str]:
    """What waits, what was scored, and who scores: the same on every server of a platform."""
    with database.read() as session:
        counts = session.execute(select(Submission.state, func.count()).group_by(Submission.state))
        held: dict[str, int] = {row[0]: row[1] for row in counts}
        first = session.execute(
            select(func.min(Submission.accepted_at)).where(Submission.state == "queued", Submission.priority == 0)
        ).scalar_one()
        counts = session.execute(select(Program.state, func.count()).group_by(Program.state))
        programs: dict[str, int] = {row[0]: row[1] for row in counts}
        waiting = select(func.min(Program.accepted_at)).where(Program.state == "queued")
        first_program = session.execute(waiting).scalar_one()
        now = database.now(session)
        mails = outbox.counts(session)
    about = "How long the oldest run that waits has waited."
    program_states = get_args(ProgramState)
    return [
        *metric(
            "fieldmark_submissions",
            "gauge",
            "Submissions by state.",
            [({"state": state}, held.get(state, 0)) for state in STATES],
        ),
        *metric("fieldmark_queue_oldest_seconds", "gauge", about, [({}, _seconds(first, now))]),
        *metric(
            "fieldmark_programs",
            "gauge",
            "Programs by state, debug runs as well.",
            [({"state": state}, programs.get(state, 0)) for state in program_states],
        ),
        *metric(
            "fieldmark_programs_oldest_seconds",
            "gauge",
            "How long the oldest program that waits has waited.",
            [({}, _seconds(first_program, now))],
        ),
        *metric(
            "fieldmark_mails",
            "gauge",
            "Mails of the last two weeks by state.",
            [({"state": state}, count) for state, count in mails.items()],
        ),
        *metric(
            "fieldmark_workers", "gauge", "Workers with a recent heartbeat.", [({}, len(heartbeats.alive(database)))]
        ),
        *metric(
            "fieldmark_code_workers",
            "gauge",
            "Workers that run programs, with a recent heartbeat.",
            [({}, len(heartbeats.alive(database, "code")))],
        ),
    ]


def _seconds(since: dt.datetime | None, now: dt.datetime) -> float:
    return max(0.0, (now - since).total_seconds()) if since is not None else 0.0


def process_lines() -> list[str]:
    """What this process is and uses."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    pages = Path("/proc/self/statm")
    held = int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if pages.exists() else used.ru_maxrss * 1024
    return [
        *metric("fieldmark_info", "gauge", "The version.", [({"version": __version__}, 1)]),
        *metric("process_resident_memory_bytes", "gauge", "Memory.", [({}, held)]),
        *metric("process_cpu_seconds_total", "counter", "CPU time.", [({}, used.ru_utime + used.ru_stime)]),
        *metric("process_start_time_seconds", "gauge", "When it started.", [({}, _STARTED)]),
    ]


def _labels(labels: Mapping[str, object]) -> str:
    told = ",".join(f'{name}="{_escaped(str(value))}"' for name, value in labels.items())
    return f"{{{told}}}" if told else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
