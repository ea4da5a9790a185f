"""A lane of its own for uploads: they may be slow, and pages never wait behind them."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from starlette.requests import Request

from fieldmark.challenge.refusals import BusyError
from fieldmark.challenge.submitting.checkers import BUSY

T = TypeVar("T")
AT_ONCE, WAITING = 4, 8


class UploadLane:
    """So many uploads are worked on at once, so many more wait, and the next one is told to come again.

    Args:
        at_once: How many are worked on.
        waiting: How many wait.
    """

    def __init__(self, at_once: int = AT_ONCE, waiting: int = WAITING) -> None:
        self._most, self._inside = at_once + waiting, 0
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="upload")

    async def run(self, act: Callable[..., T], *given: Any) -> T:
        """Does something that takes a while.

        Raises:
            BusyError: When too many others wait already.
        """
        with self._lock:
            if self._inside >= self._most:
                raise BusyError(BUSY)
            self._inside += 1
        context = contextvars.copy_context()  # lines of the log carry the number of the request
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, partial(context.run, act, *given))
        finally:
            with self._lock:
                self._inside -= 1

    @property
    def inside(self) -> int:
        """How many are worked on or wait."""
        return self._inside

    def close(self) -> None:
        """Takes nothing more; what is being worked on comes to its end."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def lane_of(request: Request) -> UploadLane:
    """The lane of the application."""
    lane: UploadLane = request.app.state.uploads
    return lane
