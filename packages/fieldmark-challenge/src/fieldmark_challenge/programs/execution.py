"""From an archive to a run file: unpacked, run within walls that were tried before, and copied out."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from fieldmark.errors import InputError, MisuseError
from fieldmark.storage.files import appearing_file
from fieldmark_challenge.programs.runners import CodeJob, CodeLimits, CodeRunner
from fieldmark_challenge.programs.self_test import failure_of
from fieldmark_challenge.records.scratch import scratch
from fieldmark_challenge.submissions.archives import ArchiveRefusedError, unpack


def run_archive(archive: Path, inputs: Path, out: Path, *, runner: CodeRunner, limits: CodeLimits) -> int:
    """Runs the program of an archive on inputs, and keeps its predictions.

    Args:
        archive: A zip or tar archive with `run.sh`.
        inputs: A folder with `images/` and `metadata.csv`.
        out: The run file to write; it appears when the program has ended well.
        runner: What runs it; its walls are tried first.
        limits: What it may use.

    Returns:
        The size of the predictions in bytes.

    Raises:
        InputError: When the archive, the inputs or the program are at fault.
        MisuseError: When the walls do not hold.
    """
    if not archive.is_file():
        raise InputError(archive, found="no such file", expected="a zip or tar archive with run.sh")
    if not ((inputs / "images").is_dir() and (inputs / "metadata.csv").is_file()):
        raise InputError(inputs, found="no images/ or no metadata.csv", expected="a folder with both")
    if said := failure_of(runner):
        raise MisuseError(f"Programs cannot be run safely with {runner.name} here: {said}.")
    with scratch("code") as folder:
        (folder / "code").mkdir()
        try:
            home = unpack(archive, folder / "code")
        except ArchiveRefusedError as error:
            raise InputError(archive, found=str(error).rstrip("."), expected="an archive with run.sh") from error
        job = CodeJob(home, inputs.resolve(), folder / "predictions.csv")
        outcome = runner.run(job, limits, threading.Event())
        if outcome.problem:
            last = outcome.log.strip().splitlines()[-5:]
            hint = "It said last: " + " / ".join(last) if last else "It said nothing."
            raise InputError(archive, found=outcome.problem.rstrip("."), expected="a program that answers", hint=hint)
        with appearing_file(out) as partial:
            shutil.copyfile(job.predictions, partial)
        return job.predictions.stat().st_size
