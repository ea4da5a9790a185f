"""A lane of its own for uploads: they may be slow, and pages never wait behind them.

It is shared by people, not by requests: each has one upload worked on at a time, and whoever was served longest ago is
next. So nobody waits for more than one upload of anybody else, however many they send. Nor does anybody's take the room
of others while they arrive: more than can wait are turned away before they are read.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from starlette.requests import Request

from fieldmark.web.refusals import BusyError

T = TypeVar("T")
BUSY = "Many runs are being checked now. Try again in a minute; nothing was counted."
AT_ONCE, WAITING, WAITING_EACH = 4, 64, 10
ARRIVING_EACH = WAITING_EACH + 1  # one is worked on
REMEMBERED = 10_000  # of how many people it is known when they were served


@dataclass(eq=False)
class _QueuedCall:
    """Something that waits for its turn, and whose it is."""

    person: object
    act: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)


class UploadLane:
    """So many uploads are worked on at once, so many more wait, and the next one is told to come again.

    Args:
        at_once: How many are worked on.
        waiting: How many wait.
        each: How many of one person wait.
    """

    def __init__(self, at_once: int = AT_ONCE, waiting: int = WAITING, each: int = WAITING_EACH) -> None:
        self._at_once, self._most, self._each = at_once, waiting, each
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="upload")
        self._waiting: list[_QueuedCall] = []
        self._at_work: set[object] = set()
        self._served: dict[object, int] = {}
        self._turns = 0
        self._arriving: Counter[object] = Counter()

    def arriving(self, person: object) -> Callable[[], None]:
        """Notes that an upload of somebody begins to arrive; what comes back is called when its request is over.

        Raises:
            BusyError: When too many of theirs are on their way already.
        """
        with self._lock:
            if self._arriving[person] >= ARRIVING_EACH:
                raise BusyError(BUSY)
            self._arriving[person] += 1

        def over() -> None:
            with self._lock:
                self._arriving[person] -= 1
                if not self._arriving[person]:
                    del self._arriving[person]

        return over

    async def run(self, person: object, act: Callable[..., T], *given: Any) -> T:
        """Does something that takes a while, when it is somebody's turn.

        Args:
            person: Whose upload it is.
            act: What to do.
            given: With what.

        Raises:
            BusyError: When too many others wait already, or too many of theirs.
        """
        context = contextvars.copy_context()  # lines of the log carry the number of the request
        job = _QueuedCall(person, partial(context.run, act, *given))
        with self._lock:
            self._waiting = [one for one in self._waiting if not one.future.cancelled()]  # they have hung up
            theirs = sum(one.person == person for one in self._waiting)
            if len(self._waiting) >= self._most or theirs >= self._each:
                raise BusyError(BUSY)
            self._waiting.append(job)
            self._start()
        done: T = await asyncio.wrap_future(job.future)
        return done

    def _start(self) -> None:
        """Starts what can be; whoever calls holds the lock."""
        while len(self._at_work) < self._at_once:
            ready = [one for one in self._waiting if one.person not in self._at_work]
            if not ready:
                return
            job = min(ready, key=lambda one: self._served.get(one.person, 0))  # of two alike, the one that came first
            self._waiting.remove(job)
            if not job.future.set_running_or_notify_cancel():  # nobody waits for it any more
                continue
            if len(self._served) > REMEMBERED:
                self._served.clear()
            self._turns += 1
            self._served[job.person] = self._turns
            self._at_work.add(job.person)
            self._threads.submit(self._work, job)

    def _work(self, job: _QueuedCall) -> None:
        try:
            outcome, error = job.act(), None
        except BaseException as raised:
            outcome, error = None, raised
        with self._lock:
            self._at_work.discard(job.person)
            self._start()
        if error is None:
            job.future.set_result(outcome)
        else:
            job.future.set_exception(error)

    @property
    def inside(self) -> int:
        """How many are worked on or wait."""
        return len(self._waiting) + len(self._at_work)

    def close(self) -> None:
        """Takes nothing more; what is being worked on comes to its end."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for job in waiting:
            job.future.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)


def lane_of(request: Request) -> UploadLane:
    """The lane of the application."""
    lane: UploadLane = request.app.state.uploads
    return lane
