"""Processes that check runs for the one that serves pages, which reads none itself.

A checker is walled in like a scorer, stays, and makes one check at a time (see `check_job`). It is told once what the
runs of a challenge are checked against, and keeps that by its digest. One that takes too long is ended with everything
it started, and another takes its place.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fieldmark.sandbox.bubblewrap import bubblewrap, environment, wall
from fieldmark.tables.labels import Labels
from fieldmark.web.refusals import BusyError
from fieldmark_challenge.records.scratch import prefix_of
from fieldmark_challenge.scoring.scoring_process import TAIL, Limits, Outcome
from fieldmark_challenge.web.lanes import BUSY

log = logging.getLogger(__name__)

CHECKING_JOB = "fieldmark_challenge.submissions.check_job"
START_S = 120.0  # on a busy machine it takes a while to import everything
KEPT_NAMES = 500_000  # of items and labels that a checker keeps, for all challenges together
CHECKS_EACH = 500  # then another process takes over, so that nothing adds up
# A walled-in process ends with the thread that started it: checkers are started by one that stays.
_STARTER = ThreadPoolExecutor(1, thread_name_prefix="checkers")
SLOW = "The server is too busy to check the file now. Try again in a minute; nothing was counted."


@dataclass(frozen=True)
class Checklist:
    """What a run is checked against: the items to answer and the labels there are, but no truth."""

    benchmark: str
    items: tuple[str, ...]
    labels: Labels
    closed: bool

    def to_json(self) -> str:
        """What a checker is told of it."""
        return json.dumps({"items": self.items, "labels": self.labels.names, "closed": self.closed})

    @cached_property
    def digest(self) -> str:
        """By which a checker knows it again; computed once per truth."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @property
    def size(self) -> int:
        """How many names are in it."""
        return len(self.items) + len(self.labels)


class ExhaustedError(Exception):
    """A check reached one of its limits."""


class CheckerGoneError(Exception):
    """A checker ended, which is a fault of ours."""


class RunChecker:
    """One process that checks runs, and the folder it shares with us."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=prefix_of("check"))).resolve()
        self.checks = 0
        self._kept: dict[str, int] = {}  # the checklists that the process knows, by digest, with their sizes
        command = [sys.executable, "-W", "ignore", "-m", CHECKING_JOB, str(self.folder)]
        program = bubblewrap()
        if program:
            command = [*wall(program, self.folder), *command]
        self.process = _STARTER.submit(self._start, command).result()
        try:
            self._answer(START_S)
        except (BusyError, CheckerGoneError):
            self.close()
            raise

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("wb") as sink:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                env=environment(self.folder),
                cwd=self.folder,
                start_new_session=True,
            )

    def check(self, run: Path, job: Mapping[str, Any], limits: Limits, wanted: Checklist | None = None) -> Outcome:
        """Checks one run: it has problems, or none.

        Args:
            run: The file.
            job: What `check_job` is asked, but for the limits.
            limits: What the check may use.
            wanted: What the run is checked against; None for a program.

        Raises:
            ExhaustedError: When a limit ends the check.
            BusyError: When it takes longer than its processor time allows for, which is not the fault of the run.
            CheckerGoneError: When the process is no more.
        """
        self.checks += 1
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        shutil.copyfile(run, self.folder / "run")
        given = {key: value for key, value in asdict(limits).items() if key != "wall_s"}
        (self.folder / "log").open("wb").close()
        try:
            self._ask({**job, **self._told(wanted), "limits": given})
            ended = int(self._answer(limits.wall_s))
            if ended < 0 or (out / "exhausted").exists():
                raise ExhaustedError(f"ended by signal {-ended}" if ended < 0 else "out of memory")
            if ended != 0:
                said = (self.folder / "log").read_bytes()[-TAIL:].decode("utf-8", "replace")
                return Outcome(fault=f"a check ended with exit status {ended}\n{said}".strip())
            if (out / "refused.json").exists():
                refused = json.loads((out / "refused.json").read_text(encoding="utf-8"))
                return Outcome(problems=refused["problems"], total=refused["total"])
            if (out / "weights.json").exists():
                return Outcome(weights=tuple(json.loads((out / "weights.json").read_text(encoding="utf-8"))))
            return Outcome()
        finally:
            for name in ("run", "checklist.json"):
                (self.folder / name).unlink(missing_ok=True)

    def _told(self, wanted: Checklist | None) -> dict[str, Any]:
        """Which checklist to use and which to drop; one that the process does not know yet is put into its folder."""
        if wanted is None:
            return {}
        dropped = []
        if wanted.digest not in self._kept:
            (self.folder / "checklist.json").write_text(wanted.to_json(), encoding="utf-8")
            while self._kept and sum(self._kept.values()) + wanted.size > KEPT_NAMES:
                dropped.append(next(iter(self._kept)))
                del self._kept[dropped[-1]]
        self._kept[wanted.digest] = self._kept.pop(wanted.digest, wanted.size)  # used last, dropped last
        return {"checklist": wanted.digest, "dropped": dropped}

    def close(self) -> None:
        """Ends the process and removes its folder."""
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _ask(self, what: Mapping[str, Any]) -> None:
        try:
            os.write(_number_of(self.process.stdin), json.dumps(what).encode() + b"\n")
        except OSError as error:
            raise CheckerGoneError("a checker takes no more questions") from error

    def _answer(self, wait_s: float) -> str:
        """One line from the process, within so many seconds.

        What takes too much processor time is ended by its own limit. Whoever has not answered by then was given too
        little of it.
        """
        deadline, line = time.monotonic() + wait_s, b""
        number = _number_of(self.process.stdout)
        with selectors.DefaultSelector() as selector:
            selector.register(number, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self.close()
                    log.warning("a checker has not answered within %g seconds", wait_s)
                    raise BusyError(SLOW)
                piece = os.read(number, 64)
                if not piece:
                    raise CheckerGoneError(f"a checker ended with {self.process.wait()}")
                line += piece
        return line.decode().strip()


class RunCheckers:
    """A few checkers, started when they are first needed.

    Args:
        at_once: How many runs are checked at the same time.
        wait_s: How long a run waits for its turn.
    """

    def __init__(self, at_once: int, wait_s: float) -> None:
        self.at_once, self.wait_s = at_once, wait_s
        self._places = threading.BoundedSemaphore(at_once)
        self._idle: list[RunChecker] = []
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self.busy = 0
        atexit.register(self.close)

    def check(self, run: Path, job: Mapping[str, Any], limits: Limits, wanted: Checklist | None = None) -> Outcome:
        """Checks one run as soon as it is its turn.

        Raises:
            BusyError: When its turn does not come, or the machine is too busy.
            ExhaustedError: When a limit ends the check.
        """
        try:
            with self._checker() as checker:
                return checker.check(run, job, limits, wanted)
        except CheckerGoneError as error:  # ended by somebody or something else: another one may live longer
            log.warning("%s; the run is checked again", error)
        self.close()  # what ended one may have ended the others: the second try is made by a new one
        with self._checker() as checker:
            return checker.check(run, job, limits, wanted)

    def warm_up(self) -> None:
        """Starts a checker before anybody waits for it."""
        with self._checker():
            pass

    def ready(self) -> None:
        """Returns when a checker is there that works, or is at work.

        Raises:
            CheckerGoneError: When none can be started.
            BusyError: When none is ready in time.
        """
        with self._lock:
            if self.busy or any(checker.process.poll() is None for checker in self._idle):
                return
        self.warm_up()

    def close(self) -> None:
        """Ends all checkers that are idle."""
        if os.getpid() != self._owner:  # a copy of us, which has no checkers
            return
        with self._lock:
            idle, self._idle = self._idle, []
        for checker in idle:
            checker.close()

    @contextmanager
    def _checker(self) -> Iterator[RunChecker]:
        if not self._places.acquire(timeout=self.wait_s):
            raise BusyError(BUSY)
        try:
            with self._lock:
                checker = self._idle.pop() if self._idle else None
                self.busy += 1
            checker = checker or RunChecker()
            try:
                yield checker
            except BaseException:
                checker.close()
                raise
            if checker.checks >= CHECKS_EACH:
                checker.close()
            else:
                with self._lock:
                    self._idle.append(checker)
        finally:
            with self._lock:
                self.busy -= 1
            self._places.release()


def _number_of(pipe: Any) -> int:
    number: int = pipe.fileno()
    return number
