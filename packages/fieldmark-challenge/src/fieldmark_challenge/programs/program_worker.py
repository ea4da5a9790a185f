"""A worker that runs programs: claims them, runs them within walls, and hands on the runs that they write.

It scores nothing, and sees no truth: what a program is run on holds no labels, and what it answered is read by a
process of its own. Ended by force, it takes the program along; what it leaves behind is removed by the next one.
"""

from __future__ import annotations

import atexit
import json
import logging
import threading
import traceback
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fieldmark.errors import MisuseError
from fieldmark.storage.files import sha256_of
from fieldmark_challenge.operations.lease_queue import LEASE_S, PROGRAMS, StaleClaimError
from fieldmark_challenge.operations.leases import LeasedWorker, start_threads, worker_name
from fieldmark_challenge.operations.shutdown import Stopping
from fieldmark_challenge.programs import program_queue
from fieldmark_challenge.programs.hosts import try_walls
from fieldmark_challenge.programs.inputs import UnpackedInputs
from fieldmark_challenge.programs.program_queue import ProgramClaim, WrittenRun
from fieldmark_challenge.programs.runners import BubblewrapRunner, CodeJob, CodeRunner, PodmanRunner
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.scratch import scratch
from fieldmark_challenge.records.storage import Storage, new_name
from fieldmark_challenge.scoring.scoring_process import Limits, how_it_ended, run_walled
from fieldmark_challenge.submissions.run_files import RunRefusedError
from fieldmark_challenge.submissions.uploads import Upload, check_run, checklist

log = logging.getLogger(__name__)

UNPACKING_JOB = "fieldmark_challenge.programs.unpack_job"
UNPACKING = Limits(memory_mb=4096, cpu_s=600, output_mb=4096, wall_s=900.0)
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


class ProgramWorker(LeasedWorker[ProgramClaim]):
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
        super().__init__(
            database, storage, name=name or worker_name("/code"), lane="code", queue=PROGRAMS, lease_s=lease_s
        )
        self.runner: CodeRunner = runner or BubblewrapRunner()
        self.inputs = inputs or UnpackedInputs()

    def run_one(self, stop: threading.Event | None = None) -> bool:
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
        with scratch("program") as folder, self.holding(claimed, stop) as end:
            try:
                outcome = self._outcome(claimed, folder, end)
            except StaleClaimError:
                raise
            except Exception as error:  # a fault of ours, whatever it is: noted for organizers
                outcome = ProgramOutcome(fault="".join(traceback.format_exception(error)))
        if end.lost.is_set():
            if outcome.run is not None:
                self.storage.delete(outcome.run.path)
            raise StaleClaimError(claimed.called)
        return outcome

    def _outcome(self, claimed: ProgramClaim, folder: Path, ended: threading.Event) -> ProgramOutcome:
        archive = self.storage.fetch(claimed.path, folder / "archive")
        if sha256_of(archive) != claimed.sha256:
            return ProgramOutcome(fault="the stored archive is not the one that was submitted (its SHA-256 is another)")
        status, said = run_walled(folder, UNPACKING_JOB, {}, UNPACKING, ended)
        if status != 0:
            return ProgramOutcome(fault=f"unpacking {how_it_ended(status, UNPACKING)}\n{said}".strip())
        out = folder / "out"
        if (out / "refused.json").exists():
            return ProgramOutcome(reason=str(json.loads((out / "refused.json").read_text(encoding="utf-8"))))
        inputs = self.inputs.folder(self.storage, claimed.inputs_path, claimed.inputs_sha256)
        home = out / (out / "home").read_text(encoding="utf-8")
        job = CodeJob(home, inputs, folder / "predictions.csv")
        program_queue.note_run(self.database, claimed)
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
    inputs = UnpackedInputs()
    atexit.register(inputs.close)
    names = [worker_name(f"/code{number}") for number in range(1, jobs + 1)]
    workers = [
        ProgramWorker(database, storage, runner=runner, name=name, lease_s=lease_s, inputs=inputs) for name in names
    ]
    return start_threads(workers, stopping, until_idle=until_idle)
