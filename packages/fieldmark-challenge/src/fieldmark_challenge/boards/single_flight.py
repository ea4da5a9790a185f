"""What is computed once and kept: for many readers at the same time, and until something changes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from fieldmark.web.refusals import BusyError

T = TypeVar("T")
WAIT_S = 20.0
BUSY = "The board is being computed. Load it again in a moment."


@dataclass
class _Flight:
    """A computation that is under way, for which others wait."""

    done: threading.Event = field(default_factory=threading.Event)
    made: Any = None
    failed: BaseException | None = None


class Kept(Generic[T]):
    """What was asked for last. Who asks for what is being made waits for it, and does not make it a second time.

    Args:
        most: How many are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: OrderedDict[Hashable, T] = OrderedDict()
        self._flights: dict[Hashable, _Flight] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """What belongs to a key, made if it is not there.

        Raises:
            BusyError: When somebody else makes it, and that takes long.
        """
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key]
            flight = self._flights.get(key)
            mine = flight is None
            if flight is None:
                flight = self._flights[key] = _Flight()
        return self._make(key, flight, make) if mine else _wait_for(flight)

    def peek(self, key: Hashable) -> T | None:
        """What belongs to a key, if it is there."""
        with self._lock:
            return self._made.get(key)

    def put(self, key: Hashable, made: T) -> None:
        """Keeps what was made elsewhere."""
        with self._lock:
            self._made[key] = made
            self._made.move_to_end(key)
            while len(self._made) > self._most:
                self._made.popitem(last=False)

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._made.clear()

    def _make(self, key: Hashable, flight: _Flight, make: Callable[[], T]) -> T:
        try:
            made = flight.made = make()
            self.put(key, made)
            return made
        except BaseException as error:
            flight.failed = error
            raise
        finally:
            with self._lock:
                del self._flights[key]
            flight.done.set()


def _wait_for(flight: _Flight) -> Any:
    if not flight.done.wait(WAIT_S):
        raise BusyError(BUSY, retry_after_s=5)
    if flight.failed is not None:
        raise flight.failed
    return flight.made
