"""A worker that runs programs: claims them, runs them within walls, and hands on the runs that they write.

It scores nothing, and sees no truth: what a program is run on holds no labels, and what it answered is read by a
process of its own. Ended by force, it takes the program along; what it leaves behind is removed by the next one.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import socket
import threading
import traceback
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DBAPIError

from fieldmark.challenge.coding import program_queue
from fieldmark.challenge.coding.hosts import try_walls
from fieldmark.challenge.coding.inputs import UnpackedInputs
from fieldmark.challenge.coding.program_queue import ProgramClaim, WrittenRun
from fieldmark.challenge.coding.runners import BubblewrapRunner, CodeJob, CodeRunner, PodmanRunner
from fieldmark.challenge.operating.stopping import Stopping
from fieldmark.challenge.records.database import Database
from fieldmark.challenge.records.scratch import scratch
from fieldmark.challenge.records.storage import Storage, new_name
from fieldmark.challenge.scoring import signs
from fieldmark.challenge.scoring.queue import LEASE_S, StaleClaimError
from fieldmark.challenge.scoring.sandbox import Limits, how_it_ended, run_walled
from fieldmark.challenge.scoring.signs import LifeSign
from fieldmark.challenge.scoring.worker import AFTER_ERROR_S, IDLE_S, EitherEvent
from fieldmark.challenge.submitting.run_files import RunRefusedError
from fieldmark.challenge.submitting.uploads import Upload, check_run, checklist
from fieldmark.errors import MisuseError
from fieldmark.foundation.files import sha256_of

log = logging.getLogger(__name__)

UNPACKING_JOB = "fieldmark.challenge.coding.unpacking_job"
UNPACKING = Limits(memory_mb=2048, cpu_s=600, output_mb=4096, wall_s=900.0)
# What is said about a program that failed on hidden inputs: nothing that it could have put into words itself.
FAILED = "The program failed on the hidden items. A debug run shows what it says."
NO_ANSWERS = "The program's answers for the hidden items do not pass the check. A debug run shows what is wrong."
LATE = "The program did not end within {:g} seconds."


@dataclass(frozen=True)
class ProgramOutcome:
    """What came of running a program.

    Args:
        run: The run that it wrote, checked; None for a debug run.
        reason: What its team is told; empty where all is well.
        log: The last that it said.
        problems: What is wrong with its answers, for debug runs.
        detail: What organizers are told.
        fault: What went wrong on our side; None where nothing did.
    """

    run: WrittenRun | None = None
    reason: str = ""
    log: str = ""
    problems: list[dict[str, Any]] = field(default_factory=list)
    detail: str = ""
    fault: str | None = None


class ProgramWorker:
    """Runs programs, one at a time.

    Args:
        database: What it shares with the server and with other workers.
        storage: Where archives, inputs and runs are.
        runner: What runs programs; bubblewrap if not given.
        name: How it appears to organizers.
        lease_s: How long a claim lasts without a sign of life.
        inputs: Inputs that are unpacked already; its own if not given.
    """

    def __init__(
        self,
        database: Database,
        storage: Storage,
        *,
        runner: CodeRunner | None = None,
        name: str | None = None,
        lease_s: float = LEASE_S,
        inputs: UnpackedInputs | None = None,
    ) -> None:
        self.database, self.storage, self.lease_s = database, storage, lease_s
        self.runner: CodeRunner = runner or BubblewrapRunner()
        self.name = name or f"{socket.gethostname()}:{os.getpid()}/code"
        self.inputs = inputs or UnpackedInputs()
        self._sign = LifeSign(database, self.name, "code")

    def run(self, stop: threading.Event, *, until_idle: bool = False, cut_short: threading.Event | None = None) -> None:
        """Works until it is told to stop, or until there is nothing to do.

        Args:
            stop: Takes no further program.
            until_idle: Whether to end when none waits.
            cut_short: Ends the program that runs, which another worker then starts again; if not given, `stop` does.
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
            except Exception:  # whatever it is, the next program must not wait for a worker that is no more
                log.exception("the worker stumbled; it goes on in %g seconds", AFTER_ERROR_S)
                stop.wait(AFTER_ERROR_S)
                continue
            if not worked:
                if until_idle and not program_queue.any_waits(self.database):
                    return
                stop.wait(IDLE_S)

    def run_one(self, stop: threading.Event | None = None) -> bool:
        """Runs the next program; False where there is none."""
        claimed = program_queue.claim(self.database, self.name, lease_s=self.lease_s)
        if claimed is None:
            return False
        stop = stop or threading.Event()
        try:
            outcome = self._attempt(claimed, stop)
            if stop.is_set() and outcome.run is None:
                program_queue.release(self.database, claimed)
            else:
                self._settle(claimed, outcome)
        except StaleClaimError as error:
            log.warning("%s was taken over by another worker; nothing of this attempt is kept", error)
        return True

    def _attempt(self, claimed: ProgramClaim, stop: threading.Event) -> ProgramOutcome:
        log.info("program %d: attempt %d by %s", claimed.program_id, claimed.attempt, self.name)
        lost, done = threading.Event(), threading.Event()
        beating = threading.Thread(target=self._beat, args=(claimed, done, lost), daemon=True)
        beating.start()
        with scratch("program") as folder:
            try:
                outcome = self._outcome(claimed, folder, EitherEvent(stop, lost))
            except Exception as error:  # a fault of ours, whatever it is: noted for organizers, never charged
                outcome = ProgramOutcome(fault="".join(traceback.format_exception(error)))
            finally:
                done.set()
                beating.join()
        if lost.is_set():
            if outcome.run is not None:
                self.storage.delete(outcome.run.path)
            raise StaleClaimError(f"program {claimed.program_id}")
        return outcome

    def _outcome(self, claimed: ProgramClaim, folder: Path, ended: threading.Event) -> ProgramOutcome:
        archive = self.storage.fetch(claimed.path, folder / "archive")
        if sha256_of(archive) != claimed.sha256:
            return ProgramOutcome(fault="the stored archive is not the one that was handed in (its SHA-256 is another)")
        status, said = run_walled(folder, UNPACKING_JOB, {}, UNPACKING, ended)
        if status != 0:
            return ProgramOutcome(fault=f"unpacking {how_it_ended(status, UNPACKING)}\n{said}".strip())
        out = folder / "out"
        if (out / "refused.json").exists():
            return ProgramOutcome(reason=str(json.loads((out / "refused.json").read_text(encoding="utf-8"))))
        inputs = self.inputs.folder(self.storage, claimed.inputs_path, claimed.inputs_sha256)
        home = out / (out / "home").read_text(encoding="utf-8")
        job = CodeJob(home, inputs, folder / "predictions.csv")
        ran = self.runner.run(job, claimed.limits, ended)
        said = ran.log.replace("\0", "\N{REPLACEMENT CHARACTER}")
        if ran.fault:
            return ProgramOutcome(fault=f"{ran.problem} {said}")
        if ran.problem:
            late = LATE.format(claimed.limits.seconds)
            told = ran.problem if claimed.debug or ran.problem == late else FAILED
            return ProgramOutcome(reason=told, log=said, detail=ran.problem)
        return replace(self._checked(claimed, job.predictions), log=said)

    def _checked(self, claimed: ProgramClaim, predictions: Path) -> ProgramOutcome:
        """Has the answers read by the process that reads runs, which runs none of the program."""
        upload = Upload(predictions, predictions.name, predictions.stat().st_size, sha256_of(predictions))
        wanted = checklist(self.storage, claimed.challenge)
        if claimed.debug:
            wanted = replace(wanted, items=claimed.sample_items)
        try:
            check_run(wanted, upload, limit_mb=int(claimed.limits.output_mb))
        except RunRefusedError as error:
            first = "; ".join(one["text"] for one in error.problems[:3])
            if not claimed.debug:  # an answer may quote what the program saw
                return ProgramOutcome(reason=NO_ANSWERS, detail=f"{error} {first}")
            count = "one problem" if error.total == 1 else f"{error.total} problems"
            return ProgramOutcome(reason=f"The answers have {count}.", problems=error.problems)
        if claimed.debug:
            return ProgramOutcome()
        path = f"runs/{claimed.challenge.id}/{new_name()}"
        self.storage.put(predictions, path)
        return ProgramOutcome(run=WrittenRun(path, upload.size, upload.sha256))

    def _settle(self, claimed: ProgramClaim, outcome: ProgramOutcome) -> None:
        if outcome.fault is not None:
            program_queue.give_back(self.database, claimed, outcome.fault)
        elif outcome.reason:
            about = (outcome.log, outcome.problems, outcome.detail)
            program_queue.refuse(self.database, claimed, outcome.reason, *about)
        else:
            try:
                program_queue.finish(self.database, claimed, outcome.log, outcome.run)
            except StaleClaimError:
                if outcome.run is not None:
                    self.storage.delete(outcome.run.path)
                raise

    def _beat(self, claimed: ProgramClaim, done: threading.Event, lost: threading.Event) -> None:
        """Renews the lease until the program has ended; notes when it was lost."""
        while not done.wait(min(self.lease_s / 3, signs.SIGN_S)):
            try:
                self._sign.give()
                if not program_queue.renew(self.database, claimed, lease_s=self.lease_s):
                    lost.set()
                    return
            except DBAPIError as error:
                log.warning("could not renew the lease of program %d: %s", claimed.program_id, error)


def start_program_workers(
    database: Database,
    storage: Storage,
    stopping: Stopping,
    *,
    jobs: int = 1,
    lease_s: float = LEASE_S,
    runner: CodeRunner | None = None,
    until_idle: bool = False,
) -> list[threading.Thread]:
    """Tries the walls, and starts workers in threads of this process where they hold.

    Raises:
        MisuseError: When they do not; which is noted for organizers.
    """
    runner = runner or BubblewrapRunner()
    if failure := try_walls(database, storage, runner):
        raise MisuseError(f"Programs cannot be run safely with {runner.name} here: {failure}.")
    if isinstance(runner, PodmanRunner):
        runner.collect_leftovers()
    inputs, threads = UnpackedInputs(), []
    atexit.register(inputs.close)
    for number in range(jobs):
        name = f"{socket.gethostname()}:{os.getpid()}/code{number + 1}"
        worker = ProgramWorker(database, storage, runner=runner, name=name, lease_s=lease_s, inputs=inputs)
        how = {"until_idle": until_idle, "cut_short": stopping.cut_short}
        threads.append(threading.Thread(target=worker.run, args=(stopping.begun,), kwargs=how, name=name, daemon=True))
        threads[-1].start()
    return threads
