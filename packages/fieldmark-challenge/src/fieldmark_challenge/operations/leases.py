"""Workers with leases: they take one piece of work after the other, and keep what they took alive meanwhile."""

from __future__ import annotations

import logging
import os
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

from sqlalchemy.exc import DBAPIError

from fieldmark_challenge.operations import heartbeats
from fieldmark_challenge.operations.heartbeats import LifeSign
from fieldmark_challenge.operations.lease_queue import Lease, LeaseQueue
from fieldmark_challenge.operations.shutdown import Stopping
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import LaneName
from fieldmark_challenge.records.storage import Storage

log = logging.getLogger(__name__)

IDLE_S = 0.5
AFTER_ERROR_S = 5.0


C = TypeVar("C", bound=Lease)


class LeaseEnd(threading.Event):
    """Set as soon as work has to end: because the worker is told to stop, or because its lease was `lost`."""

    def __init__(self, stop: threading.Event) -> None:
        super().__init__()
        self.lost = threading.Event()
        self._stop = stop

    def is_set(self) -> bool:
        return self._stop.is_set() or self.lost.is_set()


class LeasedWorker(ABC, Generic[C]):
    """Takes one piece of work after the other.

    Args:
        database: What it shares with the server and with other workers.
        storage: Where the files are.
        name: How it appears to organizers.
        lane: What it does.
        queue: Where its work waits.
        lease_s: How long a claim lasts without a sign of life.
    """

    def __init__(
        self, database: Database, storage: Storage, *, name: str, lane: LaneName, queue: LeaseQueue[Any], lease_s: float
    ) -> None:
        self.database, self.storage, self.name, self.queue, self.lease_s = database, storage, name, queue, lease_s
        self._sign = LifeSign(database, name, lane)

    @abstractmethod
    def run_one(self, stop: threading.Event | None = None) -> bool:
        """Does the next piece of work; False where there is none."""

    def run(self, stop: threading.Event, *, until_idle: bool = False, cut_short: threading.Event | None = None) -> None:
        """Works until it is told to stop, or until there is nothing to do.

        Args:
            stop: Takes no further work.
            until_idle: Whether to end when none waits.
            cut_short: Ends the work that is being done, which another worker then starts again; if not given, `stop`
                does.
        """
        try:
            self._work(stop, until_idle, cut_short or stop)
        finally:
            with suppress(Exception):  # it is only a courtesy: a sign of life ages by itself
                heartbeats.sign_off(self.database, self.name)

    def _work(self, stop: threading.Event, until_idle: bool, cut_short: threading.Event) -> None:
        while not stop.is_set():
            try:
                self._sign.give()
                worked = self.run_one(cut_short)
            except Exception:  # whatever it is, what waits must not wait for a worker that is no more
                log.exception("the worker stumbled; it goes on in %g seconds", AFTER_ERROR_S)
                stop.wait(AFTER_ERROR_S)
                continue
            if not worked:
                if until_idle and not self.queue.any_waits(self.database):
                    return
                stop.wait(IDLE_S)

    @contextmanager
    def holding(self, claimed: C, stop: threading.Event) -> Iterator[LeaseEnd]:
        """Renews the lease of a piece of work while it is done; says when it has to end."""
        end, done = LeaseEnd(stop), threading.Event()
        beating = threading.Thread(target=self._beat, args=(claimed, done, end.lost), daemon=True)
        beating.start()
        try:
            yield end
        finally:
            done.set()
            beating.join()

    def _beat(self, claimed: C, done: threading.Event, lost: threading.Event) -> None:
        while not done.wait(min(self.lease_s / 3, heartbeats.SIGN_S)):
            try:
                self._sign.give()
                if not self.queue.renew(self.database, claimed, lease_s=self.lease_s):
                    lost.set()
                    return
            except DBAPIError as error:
                log.warning("could not renew the lease of %s: %s", f"{self.queue.called} {claimed.row_id}", error)


def worker_name(which: str = "") -> str:
    """How a worker of this process appears to organizers: by host, process and which of them it is."""
    return f"{socket.gethostname()}:{os.getpid()}{which}"


def start_threads(
    workers: Iterable[LeasedWorker[Any]], stopping: Stopping, *, until_idle: bool
) -> list[threading.Thread]:
    """Lets workers work in threads of this process until it comes to its end, or until none has anything to do."""
    how = {"until_idle": until_idle, "cut_short": stopping.cut_short}
    threads = [
        threading.Thread(target=one.run, args=(stopping.begun,), kwargs=how, name=one.name, daemon=True)
        for one in workers
    ]
    for thread in threads:
        thread.start()
    return threads
