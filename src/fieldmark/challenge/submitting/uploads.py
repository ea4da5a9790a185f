"""Uploaded files on their way in: capped, hashed, and checked against the challenge before anything is counted."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tempfile
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.challenge.people.names import clean_filename
from fieldmark.challenge.records.schema import Challenge
from fieldmark.challenge.records.storage import CHUNK, Storage
from fieldmark.challenge.refusals import RefusalError, TooLargeError, TooOftenError
from fieldmark.challenge.scoring.sandbox import ExhaustedError, Limits, check_in_sandbox
from fieldmark.challenge.scoring.score_parts import read_truth, truth_files
from fieldmark.challenge.submitting.plain_problems import problems_of, read_as_scored
from fieldmark.errors import InputError
from fieldmark.labels import Labels
from fieldmark.runs.formats import RunFormat

MIB = 1 << 20
SERVER_MB = 512  # the largest upload that any challenge may allow, if the server is not told otherwise
# What other files begin with that are handed in by mistake (or on purpose), and what to call them.
OTHER_KINDS = {b"PK": "a zip archive", b"PAR1": "a Parquet file", b"\x80": "a pickle", b"\x93NUMPY": "a NumPy file"}
ENDINGS = {b"PAR1": ".parquet"}
# A gzip file may hold this many times the limit on uploads, and not a byte more.
EXPANSION = 4
# Up to here a run is read where it arrives; beyond, in a process with limits, so many at a time.
SMALL_BYTES = MIB
CHECK_LIMITS = Limits(memory_mb=4096, cpu_s=300, output_mb=16, wall_s=300.0)
CHECKS_AT_ONCE, WAIT_S = 2, 120.0
_APART = threading.BoundedSemaphore(CHECKS_AT_ONCE)


@dataclass(frozen=True)
class Upload:
    """A file that has arrived in full."""

    path: Path
    filename: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Checklist:
    """What a run is checked against: the items to answer and the labels there are, but no truth."""

    benchmark: str
    items: tuple[str, ...]
    labels: Labels
    closed: bool


class RunRefusedError(RefusalError):
    """A run file with mistakes: which, and in which lines."""

    status = 422

    def __init__(self, problems: list[dict[str, Any]], total: int) -> None:
        self.problems, self.total = problems, total
        count = "one problem" if total == 1 else f"{total} problems"
        super().__init__(f"The run file has {count}; nothing was counted against your limits.")


def too_large(limit_mb: int) -> str:
    """What is said about a file over the limit."""
    return f"The file is larger than {limit_mb} MiB, the limit of this challenge."


@contextmanager
def received(source: IO[bytes], filename: str, *, limit_mb: int) -> Iterator[Upload]:
    """Copies an upload to a temporary file piece by piece and removes it afterwards.

    Raises:
        TooLargeError: As soon as it is over the limit.
    """
    with tempfile.TemporaryDirectory(prefix="fieldmark-upload-") as folder:
        path, size, sha = Path(folder) / "run", 0, hashlib.sha256()
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
    with tempfile.TemporaryDirectory(prefix="fieldmark-truth-") as folder:
        files = truth_files(storage.fetch_folder(truth_path, Path(folder)))
        truth, labels, *_ = read_truth(benchmark, files)
    # By name: a message about what is missing must not tell in which order the truth lists it.
    return Checklist(benchmark, tuple(sorted(truth.items)), labels, "classes" in files)


def checklist(storage: Storage, challenge: Challenge) -> Checklist:
    """What runs of a challenge are checked against; read once per truth."""
    return _read_checklist(storage, challenge.benchmark, challenge.truth_sha256, challenge.truth_path)


def check_run(wanted: Checklist, upload: Upload, *, limit_mb: int) -> None:
    """Reads a run exactly as the scorer will.

    A small one is read here and now. Reading takes several times the size of a run in memory, so that a large one is
    read in a process of its own with limits, a few at a time; so is one whose size says little about what it holds.

    Raises:
        RunRefusedError: Lists the problems with their lines.
        TooOftenError: When too many large runs arrive at once.
    """
    run = BENCHMARKS[wanted.benchmark].task.run
    if _unpacked_size(upload, limit_mb, run) > SMALL_BYTES or run.expands:
        _check_apart(wanted, upload)
        return
    try:
        read_as_scored(wanted.benchmark, upload.path, wanted.items, wanted.labels.names, closed=wanted.closed)
    except InputError as error:
        raise RunRefusedError(*problems_of(error)) from error


def _check_apart(wanted: Checklist, upload: Upload) -> None:
    if not _APART.acquire(timeout=WAIT_S):
        raise TooOftenError("Many large runs are being checked now. Try again in a minute.", retry_after_s=60)
    try:
        with tempfile.TemporaryDirectory(prefix="fieldmark-check-", ignore_cleanup_errors=True) as name:
            folder = Path(name).resolve()
            shutil.copyfile(upload.path, folder / "run")
            job: dict[str, Any] = {"benchmark": wanted.benchmark, "items": wanted.items}
            job |= {"labels": wanted.labels.names, "closed": wanted.closed}
            outcome = check_in_sandbox(folder, job, limits=CHECK_LIMITS)
    except ExhaustedError as error:
        most = f"{CHECK_LIMITS.memory_mb} MiB of memory or {CHECK_LIMITS.wall_s:g} seconds"
        text = f"found a run that takes more than {most} to read, expected fewer lines or fewer labels per item"
        raise RunRefusedError([{"line": None, "text": text}], 1) from error
    finally:
        _APART.release()
    if outcome.fault is not None:
        raise RuntimeError(f"a run could not be checked: {outcome.fault}")
    if outcome.problems is not None:
        raise RunRefusedError(outcome.problems, outcome.total)


def _wanted(run: RunFormat) -> str:
    """What a run must be, for somebody who handed in another kind of file."""
    return "a run in one Parquet file" if ".parquet" in run.file_types else "the run as text, plain or gzip"


def _unpacked_size(upload: Upload, limit_mb: int, run: RunFormat) -> int:
    """The size of a run as text; files that are no text and gzip files that would grow beyond measure are refused."""
    with upload.path.open("rb") as file:
        start = file.read(8)
    if not start:
        raise RunRefusedError([{"line": None, "text": "found an empty file, expected a run"}], 1)
    for magic, kind in OTHER_KINDS.items():
        if start.startswith(magic) and ENDINGS.get(magic) not in run.file_types:
            text = f"found {kind}, expected {_wanted(run)}"
            raise RunRefusedError([{"line": None, "text": text}], 1)
    if not start.startswith(b"\x1f\x8b"):
        return upload.size
    limit, size = EXPANSION * limit_mb * MIB, 0
    try:
        with gzip.open(upload.path) as file:
            while piece := file.read(CHUNK):
                size += len(piece)
                if size > limit:
                    text = f"found more than {limit // MIB} MiB when unpacked, expected less"
                    raise RunRefusedError([{"line": None, "text": text}], 1)
    except (OSError, EOFError, zlib.error) as error:
        text = "found a gzip file that breaks off or is damaged, expected a whole one"
        raise RunRefusedError([{"line": None, "text": text}], 1) from error
    return size
