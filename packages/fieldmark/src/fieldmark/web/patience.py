"""How long the server waits for those who send slowly: long enough for a bad line, and never without end."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_S = 20.0
# Between two pieces of a body; and a body as a whole comes at least this fast, after the first minute.
PIECE_S, LEAST_BYTES_PER_S, FIRST_S = 30.0, 4096, 60.0
TOO_SLOW = "The request was too slow and timed out; send it again."


class PatientProtocol(H11Protocol):
    """Hangs up on connections over which no whole request comes."""

    _watch: asyncio.TimerHandle | None = None
    _quiet = False

    def connection_made(self, transport: Any) -> None:
        """Starts the clock."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops it."""
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._watch = self.loop.call_later(HEADERS_S / 2, self._look)

    def _look(self) -> None:
        """Hangs up when nothing is being answered, and nothing was when it looked before."""
        waiting = self.cycle is None or self.cycle.response_complete
        if waiting and self._quiet:
            self.transport.close()
            return
        self._quiet = waiting
        self._wait()


def too_slow(received: int, seconds: float) -> bool:
    """Whether a body comes so slowly that it is given up.

    >>> too_slow(0, 59), too_slow(0, 61), too_slow(1 << 20, 61)
    (False, True, False)
    """
    return seconds > FIRST_S + received / LEAST_BYTES_PER_S
