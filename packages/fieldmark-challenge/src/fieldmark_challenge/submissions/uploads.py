"""Uploaded files on their way in: capped, hashed, and checked against the challenge before anything is counted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import IO

from fieldmark.scoring.score_parts import read_truth, truth_files
from fieldmark.web.refusals import TooLargeError
from fieldmark_challenge.people.names import clean_filename
from fieldmark_challenge.records.schema import Challenge
from fieldmark_challenge.records.scratch import scratch
from fieldmark_challenge.records.storage import CHUNK, Storage
from fieldmark_challenge.scoring.scoring_process import Limits
from fieldmark_challenge.submissions.checkers import Checklist, ExhaustedError, RunCheckers
from fieldmark_challenge.submissions.run_files import MIB, RunRefusedError
from fieldmark_challenge.web.dependencies import too_large

SERVER_MB = 512  # the largest upload that any challenge may allow, if the server is not told otherwise
CHECK_LIMITS = Limits(memory_mb=4096, cpu_s=300, output_mb=16, wall_s=300.0)  # the most that any check may take
# What a check may take: something for any file, and more for each MiB that somebody took the trouble to send.
CPU_S, CPU_S_PER_MIB = 20, 4
MEMORY_MB, MEMORY_MB_PER_MIB = 2048, 32
CHECKERS = RunCheckers(at_once=2, wait_s=120.0)


@dataclass(frozen=True)
class Upload:
    """A file that has arrived in full."""

    path: Path
    filename: str
    size: int
    sha256: str


@contextmanager
def received(source: IO[bytes], filename: str, *, limit_mb: int) -> Iterator[Upload]:
    """Copies an upload to a temporary file piece by piece and removes it afterwards.

    Raises:
        TooLargeError: As soon as it is over the limit.
    """
    with scratch("upload") as folder:
        path, size, sha = folder / "run", 0, hashlib.sha256()
        with path.open("wb") as sink:
            while piece := source.read(CHUNK):
                size += len(piece)
                if size > limit_mb * MIB:
                    raise TooLargeError(too_large(limit_mb))
                sha.update(piece)
                sink.write(piece)
        yield Upload(path, clean_filename(filename), size, sha.hexdigest())


@lru_cache(maxsize=16)
def _read_checklist(storage: Storage, benchmark: str, truth_sha256: str, truth_path: str) -> Checklist:
    with scratch("truth") as folder:
        files = truth_files(storage.fetch_folder(truth_path, folder))
        truth, labels, *_ = read_truth(benchmark, files)
    # By name: a message about what is missing must not tell in which order the truth lists it.
    return Checklist(benchmark, tuple(sorted(truth.items)), labels, "classes" in files)


def checklist(storage: Storage, challenge: Challenge) -> Checklist:
    """What runs of a challenge are checked against; read once per truth."""
    return _read_checklist(storage, challenge.versioned_benchmark, challenge.truth_sha256, challenge.truth_path)


def check_limits(size: int) -> Limits:
    """What the check of a file of so many bytes may take.

    A small file that takes long was made to, whatever it expands to. Processor time tells; how long the clock ran
    tells how busy the machine is.

    >>> check_limits(255_000).cpu_s, check_limits(32 << 20).cpu_s, check_limits(512 << 20).cpu_s
    (20, 148, 300)
    """
    mib, most = size >> 20, CHECK_LIMITS
    cpu_s = min(CPU_S + CPU_S_PER_MIB * mib, most.cpu_s)
    memory_mb = min(MEMORY_MB + MEMORY_MB_PER_MIB * mib, most.memory_mb)
    return replace(most, memory_mb=memory_mb, cpu_s=cpu_s)


def check_run(wanted: Checklist, upload: Upload, *, limit_mb: int) -> None:
    """Has a run read exactly as the scorer will, in a process of its own with limits, a few at a time.

    Raises:
        RunRefusedError: Lists the problems with their lines.
        BusyError: When too many runs arrive at once.
    """
    limits = check_limits(upload.size)
    try:
        outcome = CHECKERS.check(upload.path, {"benchmark": wanted.benchmark, "limit_mb": limit_mb}, limits, wanted)
    except ExhaustedError as error:
        most = f"{limits.memory_mb} MiB of memory or {limits.cpu_s} seconds"
        text = (
            f"found a run of {upload.size:,} bytes that takes more than {most} to read, expected fewer lines or fewer "
            "labels per item; a run that is not compressed is given more time"
        )
        raise RunRefusedError([{"line": None, "text": text}], 1) from error
    if outcome.fault is not None:
        raise RuntimeError(f"a run could not be checked: {outcome.fault}")
    if outcome.problems is not None:
        raise RunRefusedError(outcome.problems, outcome.total)
