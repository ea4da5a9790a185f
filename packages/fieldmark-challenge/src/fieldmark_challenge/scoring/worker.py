"""A worker: claims submissions, has them scored, writes the scores, and keeps its claims alive meanwhile."""

from __future__ import annotations

import logging
import math
import threading
import time
import traceback
from pathlib import Path

from fieldmark.storage.files import sha256_of
from fieldmark_challenge.operations.lease_queue import LEASE_S, RUNS, StaleClaimError
from fieldmark_challenge.operations.leases import LeasedWorker, start_threads, worker_name
from fieldmark_challenge.operations.log_lines import fields
from fieldmark_challenge.operations.shutdown import Stopping
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.scratch import scratch
from fieldmark_challenge.records.storage import Storage, digest_folder
from fieldmark_challenge.scoring import queue
from fieldmark_challenge.scoring.queue import Claim
from fieldmark_challenge.scoring.scoring_process import Limits, Outcome, score_in_sandbox
from fieldmark_challenge.scoring.stored_scores import deciding_value

log = logging.getLogger(__name__)

NOT_A_NUMBER = "The score of this run is not a number, so that it cannot be ranked; it does not count."


class Worker(LeasedWorker[Claim]):
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
        super().__init__(database, storage, name=name or worker_name(), lane="score", queue=RUNS, lease_s=lease_s)
        self.limits, self.walled = limits or Limits(), walled

    def run_one(self, stop: threading.Event | None = None) -> bool:
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
            with self.holding(claimed, stop) as end:
                try:
                    outcome = self._outcome(claimed, folder, end)
                except Exception as error:  # a fault of ours, whatever it is: noted for organizers, never charged
                    outcome = Outcome(fault="".join(traceback.format_exception(error)))
            if end.lost.is_set():
                raise StaleClaimError(claimed.called)
            return outcome

    def _outcome(self, claimed: Claim, folder: Path, end: threading.Event) -> Outcome:
        truth = self.storage.fetch_folder(claimed.truth_path, folder / "truth")
        if digest_folder(truth) != claimed.truth_sha256:
            return Outcome(fault="the stored truth is not the one of the challenge (its SHA-256 is another)")
        run = self.storage.fetch(claimed.path, folder / "run")
        if sha256_of(run) != claimed.sha256:
            return Outcome(fault="the stored run is not the one that was submitted (its SHA-256 is another)")
        return score_in_sandbox(folder, claimed.benchmark, limits=self.limits, stop=end, walled=self.walled)

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


def _note_end(claimed: Claim, outcome: Outcome, seconds: float) -> None:
    ended = "failed" if outcome.fault is not None else "refused" if outcome.problems is not None else "scored"
    about = fields(submission=claimed.submission_id, outcome=ended, seconds=round(seconds, 3), **outcome.used)
    log.info("submission %d: %s after %.1f s", claimed.submission_id, ended, seconds, extra=about)


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
    workers = (
        Worker(database, storage, name=worker_name(f"/{number}"), lease_s=lease_s, limits=limits, walled=walled)
        for number in range(1, jobs + 1)
    )
    return start_threads(workers, stopping, until_idle=until_idle)
