"""What kind of file a run is: text, plain or gzip, that does not grow beyond measure.

Apart from everything else, so that the process that checks runs starts quickly.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.runs.formats import RunFormat
from fieldmark.web.refusals import RefusalError

CHUNK = MIB = 1 << 20
# What other files begin with that are submitted by mistake (or on purpose), and what to call them.
OTHER_KINDS = {
    b"PK\x03\x04": "a zip archive",
    b"PK\x05\x06": "an empty zip archive",
    b"PK\x07\x08": "a part of a zip archive",
    b"PAR1": "a Parquet file",
    b"\x80": "a pickle",
    b"\x93NUMPY": "a NumPy file",
}
ENDINGS = {b"PAR1": ".parquet"}
# A gzip file may hold this many times the limit on uploads, and not a byte more.
EXPANSION = 4


class RunRefusedError(RefusalError):
    """A run file with mistakes: which, and in which lines."""

    status = 422

    def __init__(self, problems: list[dict[str, Any]], total: int) -> None:
        self.problems, self.total = problems, total
        count = "one problem" if total == 1 else f"{total} problems"
        super().__init__(f"The run file has {count}; nothing was counted against your limits.")


def check_kind(path: Path, benchmark: str, *, limit_mb: int) -> None:
    """Refuses files that are no text, and gzip files that would grow beyond measure.

    Args:
        path: The file.
        benchmark: What it answers.
        limit_mb: The limit on uploads.

    Raises:
        RunRefusedError: Says what was found.
    """
    run = BENCHMARKS[benchmark].task.run
    with path.open("rb") as file:
        start = file.read(8)
    if not start:
        raise _refused("found an empty file, expected a run")
    for magic, kind in OTHER_KINDS.items():
        if start.startswith(magic) and ENDINGS.get(magic) not in run.file_types:
            raise _refused(f"found {kind}, expected {_wanted(run)}")
    if start.startswith(b"\x1f\x8b"):
        _check_growth(path, EXPANSION * limit_mb)


def _check_growth(path: Path, limit_mb: int) -> None:
    size = 0
    try:
        with gzip.open(path) as file:
            while piece := file.read(CHUNK):
                size += len(piece)
                if size > limit_mb * MIB:
                    raise _refused(f"found more than {limit_mb} MiB when unpacked, expected less")
    except (OSError, EOFError, zlib.error) as error:
        raise _refused("found a gzip file that breaks off or is damaged, expected a whole one") from error


def _wanted(run: RunFormat) -> str:
    """What a run must be, for somebody who submitted another kind of file."""
    return "a run in one Parquet file" if ".parquet" in run.file_types else "the run as text, plain or gzip"


def _refused(text: str) -> RunRefusedError:
    return RunRefusedError([{"line": None, "text": text}], 1)
