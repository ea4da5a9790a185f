"""Which scorer made a number, and from which bytes."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from pathlib import Path

from fieldmark.errors import InputError

# What decides a number: a change in any of these files is another scorer.
SCORER_SOURCES = (
    "metrics",
    "stats",
    "runs",
    "benchmarks",
    "scoring.py",
    "answers.py",
    "truths.py",
    "labels.py",
    "timecodes.py",
    "items.py",
    "views.py",
    "tables.py",
    "datasets/annotations.py",
    "challenge/parts.py",
)


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise InputError(path, found="no such file", expected="a file named in the receipt") from error


@cache
def scorer_digest() -> str:
    """One digest over everything that decides a number: metrics, statistics, run formats, benchmarks, scorer."""
    root = Path(str(resources.files("fieldmark")))
    sources = [root / name for name in SCORER_SOURCES]
    found = sorted(file for source in sources for file in (source.rglob("*.py") if source.is_dir() else [source]))
    total = hashlib.sha256()
    for file in found:
        total.update(f"{file.relative_to(root).as_posix()} {digest(file)}\n".encode())
    return total.hexdigest()
