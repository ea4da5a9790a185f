"""A worker: claims submissions, has them scored, writes the scores, and keeps its claims alive meanwhile."""

from __future__ import annotations

import logging
import math
import os
import socket
import threading
import time
import traceback
from contextlib import suppress

from sqlalchemy.exc import DBAPIError

from fieldmark.challenge.operating.log_lines import fields
from fieldmark.challenge.operating.stopping import Stopping
from fieldmark.challenge.records.database import Database
from fieldmark.challenge.records.scratch import scratch
from fieldmark.challenge.records.storage import Storage, digest_folder
from fieldmark.challenge.scoring import queue, signs
from fieldmark.challenge.scoring.queue import LEASE_S, Claim, StaleClaimError
from fieldmark.challenge.scoring.sandbox import Limits, Outcome, score_in_sandbox
from fieldmark.challenge.scoring.signs import LifeSign
from fieldmark.challenge.scoring.stored_scores import deciding_value
from fieldmark.foundation.files import sha256_of

log = logging.getLogger(__name__)

IDLE_S = 0.5
AFTER_ERROR_S = 5.0
NOT_A_NUMBER = "The score of this run is not a number, so that it cannot be ranked; it does not count."


class Worker:
    """Scores submissions, one at a time.

    Args:
        database, storage: What it shares with the server and with other workers.
        name: How it appears to organizers; the host and the process if not given.
        lease_s: How long a claim lasts without a sign of life.
        limits: What a scoring process may use.
        walled: Whether nothing may be scored without walls.
    """

    def __init__(
        self,
        database: Database,
        storage: Storage,
        *,
        name: str | None = None,
        lease_s: float = LEASE_S,
        limits: Limits | None = None,
        walled: bool = False,
    ) -> None:
        self.database, self.storage = database, storage
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self.lease_s, self.limits, self.walled = lease_s, limits or Limits(), walled
        self._sign = LifeSign(database, self.name)

    def run(self, stop: threading.Event, *, until_idle: bool = False, cut_short: threading.Event | None = None) -> None:
        """Works until it is told to stop, or until there is nothing to do.

        Args:
            stop: Takes no further run.
            until_idle: Whether to end when no run waits.
            cut_short: Hands back the run that is being scored; if not given, `stop` does.
        """
        try:
            self._work(stop, until_idle, cut_short or stop)
        finally:
            with suppress(Exception):  # it is only a courtesy: a sign of life ages by itself
                signs.sign_off(self.database, self.name)

    def _work(self, stop: threading.Event, until_idle: bool, cut_short: threading.Event) -> None:
        while not stop.is_set():
            try:
                self._sign.give()
                worked = self.run_one(cut_short)
            except Exception:  # whatever it is, the next run must not wait for a worker that is no more
                log.exception("the worker stumbled; it goes on in %g seconds", AFTER_ERROR_S)
                stop.wait(AFTER_ERROR_S)
                continue
            if not worked:
                if until_idle and not queue.any_waits(self.database):
                    return
                stop.wait(IDLE_S)

    def run_one(self, stop: threading.Event | None = None) -> bool:
        """Scores the next submission; False where there is none."""
        claimed = queue.claim(self.database, self.name, lease_s=self.lease_s)
        if claimed is None:
            return False
        stop, begun = stop or threading.Event(), time.monotonic()
        try:
            outcome = self._score(claimed, stop)
            if stop.is_set() and outcome.fault is not None:
                queue.release(self.database, claimed)
            else:
                self._settle(claimed, outcome)
                _note_end(claimed, outcome, time.monotonic() - begun)
        except StaleClaimError as error:
            log.warning("%s was taken over by another worker; nothing of this attempt is kept", error)
        return True

    def _score(self, claimed: Claim, stop: threading.Event) -> Outcome:
        about = fields(submission=claimed.submission_id, attempt=claimed.attempt, worker=self.name)
        log.info("submission %d: attempt %d by %s", claimed.submission_id, claimed.attempt, self.name, extra=about)
        with scratch("score") as folder:
            lost, done = threading.Event(), threading.Event()
            ended = EitherEvent(stop, lost)
            beating = threading.Thread(target=self._beat, args=(claimed, done, lost), daemon=True)
            beating.start()
            try:
                truth = self.storage.fetch_folder(claimed.truth_path, folder / "truth")
                if digest_folder(truth) != claimed.truth_sha256:
                    return Outcome(fault="the stored truth is not the one of the challenge (its SHA-256 is another)")
                run = self.storage.fetch(claimed.path, folder / "run")
                if sha256_of(run) != claimed.sha256:
                    return Outcome(fault="the stored run is not the one that was handed in (its SHA-256 is another)")
                outcome = score_in_sandbox(
                    folder, claimed.benchmark, limits=self.limits, stop=ended, walled=self.walled
                )
            except Exception as error:  # a fault of ours, whatever it is: noted for organizers, never charged
                outcome = Outcome(fault="".join(traceback.format_exception(error)))
            finally:
                done.set()
                beating.join()
            if lost.is_set():
                raise StaleClaimError(f"submission {claimed.submission_id}")
            return outcome

    def _settle(self, claimed: Claim, outcome: Outcome) -> None:
        if outcome.fault is not None:
            queue.give_back(self.database, claimed, outcome.fault)
        elif outcome.problems is not None:
            count = "one problem" if outcome.total == 1 else f"{outcome.total} problems"
            queue.refuse(self.database, claimed, outcome.problems, f"The run file has {count}; it does not count.")
        elif any(claimed.metric not in card.metrics for card in outcome.cards.values()):
            fault = f"this version of Fieldmark does not compute {claimed.metric}, which decides in this challenge"
            queue.give_back(self.database, claimed, fault, again=False)
        elif all(math.isfinite(deciding_value(card, claimed.metric)) for card in outcome.cards.values()):
            queue.finish(self.database, claimed, outcome.cards)
        else:
            queue.refuse(self.database, claimed, [], NOT_A_NUMBER)

    def _beat(self, claimed: Claim, done: threading.Event, lost: threading.Event) -> None:
        """Renews the lease until the work is done; notes when it was lost."""
        while not done.wait(min(self.lease_s / 3, signs.SIGN_S)):
            try:
                self._sign.give()
                if not queue.renew(self.database, claimed, lease_s=self.lease_s):
                    lost.set()
                    return
            except DBAPIError as error:
                log.warning("could not renew the lease of submission %d: %s", claimed.submission_id, error)


def _note_end(claimed: Claim, outcome: Outcome, seconds: float) -> None:
    ended = "failed" if outcome.fault is not None else "refused" if outcome.problems is not None else "scored"
    about = fields(submission=claimed.submission_id, outcome=ended, seconds=round(seconds, 3))
    log.info("submission %d: %s after %.1f s", claimed.submission_id, ended, seconds, extra=about)


class EitherEvent(threading.Event):
    """Set as soon as one of two events is."""

    def __init__(self, first: threading.Event, second: threading.Event) -> None:
        super().__init__()
        self._events = (first, second)

    def is_set(self) -> bool:
        return any(event.is_set() for event in self._events)


def start_workers(
    database: Database,
    storage: Storage,
    stopping: Stopping,
    *,
    jobs: int = 1,
    lease_s: float = LEASE_S,
    limits: Limits | None = None,
    walled: bool = False,
    until_idle: bool = False,
) -> list[threading.Thread]:
    """Starts workers in threads of this process; the scoring itself runs in processes of its own."""
    threads = []
    for number in range(jobs):
        name = f"{socket.gethostname()}:{os.getpid()}/{number + 1}"
        worker = Worker(database, storage, name=name, lease_s=lease_s, limits=limits, walled=walled)
        how = {"until_idle": until_idle, "cut_short": stopping.cut_short}
        threads.append(threading.Thread(target=worker.run, args=(stopping.begun,), kwargs=how, name=name, daemon=True))
        threads[-1].start()
    return threads
