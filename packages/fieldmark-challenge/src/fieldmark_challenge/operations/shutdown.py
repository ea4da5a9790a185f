"""An orderly end: the first signal lets what runs come to its end, the second one does not."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Sequence

log = logging.getLogger(__name__)

GRACE_S = 30.0
HURRY_S = 3.0


class Stopping:
    """How far the end of a process has come.

    Args:
        grace_s: How long runs that are being scored may go on after the first signal; then they are handed back.
    """

    def __init__(self, grace_s: float = 0.0) -> None:
        self.grace_s = grace_s
        self.begun = threading.Event()  # nothing new is begun
        self.cut_short = threading.Event()  # what runs is ended

    def begin(self) -> None:
        """Takes on nothing new."""
        self.begun.set()

    def hurry(self) -> None:
        """Ends what runs, and the process within seconds, whatever still hangs."""
        self.begun.set()
        self.cut_short.set()
        timer = threading.Timer(HURRY_S, os._exit, (1,))
        timer.daemon = True
        timer.start()

    def on_signal(self, *_: object) -> None:
        """What a signal asks for: the first one the end, the next one haste."""
        if self.begun.is_set():
            self.hurry()
        else:
            self.begin()

    def listen(self) -> None:
        """Has the signals that end a process do so."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.on_signal)

    def wait_for(self, threads: Sequence[threading.Thread]) -> None:
        """Waits for workers to finish what they have begun; after the grace they hand it back."""
        self.begun.set()
        deadline = time.monotonic() + self.grace_s
        while any(thread.is_alive() for thread in threads) and not self.cut_short.is_set():
            if time.monotonic() >= deadline:
                self.cut_short.set()
            else:
                threads[0].join(0.1) if threads[0].is_alive() else self.cut_short.wait(0.1)
        for thread in threads:
            thread.join(timeout=10)
        if any(thread.is_alive() for thread in threads):
            log.warning("a worker did not come to its end; its lease will run out")
