"""Uploaded files on their way in: capped, hashed, and checked against the challenge before anything is counted."""

from __future__ import annotations

import gzip
import hashlib
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from fieldmark.answers import UNKNOWN_NAME, answer_labels
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.challenge.models import Challenge
from fieldmark.challenge.names import clean_filename
from fieldmark.challenge.parts import truth_files
from fieldmark.challenge.problems import problems_of
from fieldmark.challenge.refusals import RefusalError, TooLargeError
from fieldmark.challenge.storage import CHUNK, Storage
from fieldmark.errors import InputError
from fieldmark.labels import Labels
from fieldmark.truths import given_truth

MIB = 1 << 20
# What other files begin with that are handed in by mistake (or on purpose), and what to call them.
OTHER_KINDS = {b"PK": "a zip archive", b"PAR1": "a Parquet file", b"\x80": "a pickle", b"\x93NUMPY": "a NumPy file"}
# A gzip file may hold this many times the limit on uploads, and not a byte more.
EXPANSION = 4


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
                    raise TooLargeError(f"The file is larger than {limit_mb} MiB, the limit of this challenge.")
                sha.update(piece)
                sink.write(piece)
        yield Upload(path, clean_filename(filename), size, sha.hexdigest())


@lru_cache(maxsize=16)
def _read_checklist(storage: Storage, benchmark: str, truth_sha256: str, truth_path: str) -> Checklist:
    with tempfile.TemporaryDirectory(prefix="fieldmark-truth-") as folder:
        files = truth_files(storage.fetch_folder(truth_path, Path(folder)))
        task = BENCHMARKS[benchmark].task
        truth, labels, _ = given_truth(task, files["truth"], files.get("classes"), files.get("media"))
    return Checklist(benchmark, truth.items, labels, "classes" in files)


def checklist(storage: Storage, challenge: Challenge) -> Checklist:
    """What runs of a challenge are checked against; read once per truth."""
    return _read_checklist(storage, challenge.benchmark, challenge.truth_sha256, challenge.truth_path)


def check_run(wanted: Checklist, upload: Upload, *, limit_mb: int) -> None:
    """Reads a run exactly as the scorer will.

    Raises:
        RunRefusedError: Lists the problems with their lines.
    """
    _check_kind(upload, limit_mb)
    task = BENCHMARKS[wanted.benchmark].task
    labels = wanted.labels
    try:
        if not wanted.closed:
            labels = Labels.of({*labels.names, *task.run.labels_in(upload.path)} - {UNKNOWN_NAME})
        task.run.read(upload.path, wanted.items, answer_labels(labels, unknown=task.unknown))
    except InputError as error:
        raise RunRefusedError(*problems_of(error)) from error


def _check_kind(upload: Upload, limit_mb: int) -> None:
    """Refuses files that are no text, and gzip files that would grow beyond measure."""
    with upload.path.open("rb") as file:
        start = file.read(8)
    if not start:
        raise RunRefusedError([{"line": None, "text": "found an empty file, expected a run"}], 1)
    for magic, kind in OTHER_KINDS.items():
        if start.startswith(magic):
            text = f"found {kind}, expected the run as text, plain or gzip"
            raise RunRefusedError([{"line": None, "text": text}], 1)
    if not start.startswith(b"\x1f\x8b"):
        return
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
