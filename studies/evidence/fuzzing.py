"""Damaged files of every kind: each is scored or refused in a sentence, at once and in little memory.

The small cases of all benchmarks (`fieldmark_tests/golden`) are damaged in one to four ways: bytes flipped, cut or
swapped, lines dropped, doubled and moved, fields replaced by what people and programs really write (blanks, nan, 1e309,
quotes, a megabyte of one letter, bytes that are not UTF-8, an hour of 400 digits), gzip cut short. Some damaged runs
are handed over as frames in memory. Releases in zip archives are damaged in their bytes and then read to their end.
What ends in anything but a score or an `InputError` is kept as a file.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import resource
import signal
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import polars as pl

import fieldmark
from fieldmark.errors import FieldmarkError
from fieldmark.storage.release import Release
from fieldmark_tests.places import GOLDEN
from studies.evidence.results import write_result

CASES = GOLDEN / "version-1" / "scorecards"
NAME = "fuzzing"
FILES, SHARES, SLOWEST_S, PROCESSES = 21_000, 8, 10, 2
# What a process may take in all; a file that asks for more ends in a MemoryError, which counts as a fault.
MEMORY_BYTES = 3 << 30
VALUES = (
    b"", b" ", b"nan", b"NaN", b"inf", b"-inf", b"1e309", b"-1e309", b"1e-320", b"-1", b"0", b"-0", b"1.5", b"1e9",
    b"999999999999999999999", b"0x10", b"1_000", b"true", b"None", b"null", b"?", b"????", b"\xff\xfe", b"\x00", b'"',
    b'""', b"'", b",", b";", b"\t", b"a b c", b"-1 -1", b"12/31/2023", b"2021-02-30", b"99:99:99-00:00:00",
    b"00:00:05-00:00:05", b"9" * 400, b"9" * 400 + b":00:00-00:00:05", b"1e400",
    b"\xe2\x80\x8b", "é".encode(), b"x" * 1_000, b"x" * 200_000,
)  # fmt: skip
IN_MEMORY, ARCHIVES = 0.2, "releases in archives"  # the share of runs that become frames; what is damaged besides runs
Damage = Callable[[bytes, random.Random], bytes]


def flip_bytes(data: bytes, rng: random.Random) -> bytes:
    """A few bytes become others."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def cut(data: bytes, rng: random.Random) -> bytes:
    """A stretch is missing, at the end more often than not."""
    start = rng.randrange(len(data))
    return data[:start] if rng.random() < 0.6 else data[:start] + data[rng.randrange(start, len(data)) :]


def move_lines(data: bytes, rng: random.Random) -> bytes:
    """Lines are dropped, doubled or moved."""
    lines = data.splitlines(keepends=True)
    place = rng.randrange(len(lines))
    line = lines.pop(place)
    again = rng.choice((0, 1, 2))
    for _ in range(again):
        lines.insert(rng.randrange(len(lines) + 1), line)
    return b"".join(lines)


def replace_field(data: bytes, rng: random.Random) -> bytes:
    """A field becomes something else."""
    lines = data.split(b"\n")
    place = rng.randrange(len(lines))
    separator = b";" if b";" in lines[place] else b","
    fields = lines[place].split(separator)
    fields[rng.randrange(len(fields))] = rng.choice(VALUES)
    lines[place] = separator.join(fields)
    return b"\n".join(lines)


def insert(data: bytes, rng: random.Random) -> bytes:
    """Something stands where nothing should."""
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.choice((b"\n", b"\r", b"\n\n", b"\xef\xbb\xbf", *VALUES)) + data[place:]


def drop_column(data: bytes, rng: random.Random) -> bytes:
    """A column is missing from all lines."""
    separator = b";" if b";" in data.partition(b"\n")[0] else b","
    rows = [line.split(separator) for line in data.split(b"\n")]
    place = rng.randrange(max(len(row) for row in rows))
    return b"\n".join(separator.join(row[:place] + row[place + 1 :]) for row in rows)


def zip_and_cut(data: bytes, rng: random.Random) -> bytes:
    """The file is zipped, whole or not."""
    zipped = gzip.compress(data)
    return zipped if rng.random() < 0.3 else zipped[: rng.randrange(2, len(zipped))]


DAMAGES: tuple[Damage, ...] = (flip_bytes, cut, move_lines, move_lines, replace_field, replace_field, replace_field, insert, drop_column, zip_and_cut)  # fmt: skip  # noqa: E501


def damaged(data: bytes, rng: random.Random) -> bytes:
    """A file with one to four things wrong."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        data = rng.choice(DAMAGES)(data, rng) if data else rng.choice(VALUES)
    return data


def outcome_of(benchmark: str, files: dict[str, Any]) -> str:
    """How scoring ends: "scored", "refused", or what went wrong."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SLOWEST_S)  # seconds of the processor: the machine may be busy
    try:
        given = dict(files)
        fieldmark.score(benchmark, given.pop("run"), **given)
        return "scored"
    except FieldmarkError:
        return "refused"
    except BaseException as error:  # whatever else escapes is a fault of ours
        return f"{type(error).__name__}: {error}"[:200]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def in_memory(run: Path) -> Any:
    """The lines of a run as a frame; the file itself where they are none."""
    try:
        return pl.read_csv(run, infer_schema=False, truncate_ragged_lines=True)
    except (pl.exceptions.PolarsError, OSError):
        return run


def archive_ends(folder: str, rng: random.Random) -> str:
    """How reading a release in a damaged archive ends."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for case in ("folder", "birdclef-2020"):
            for path in sorted((CASES / case).glob("*.*")):
                archive.write(path, f"{case}/{path.name}")
    path = Path(folder, "release.zip")
    path.write_bytes(rng.choice((flip_bytes, cut))(whole.getvalue(), rng))
    try:
        release = Release(path, single_file=True)
        for inner in release.folders():
            list(release.read_many(f"{inner}/{name}" for name in release.files(inner)))
        return "scored"
    except FieldmarkError:
        return "refused"
    except BaseException as error:  # whatever else escapes is a fault of ours
        return f"{type(error).__name__}: {error}"[:200]


def fuzz_archives(job: tuple[str, int, int]) -> dict[str, Any]:
    """The same for archives: so many of them."""
    case, seed, times = job
    rng, faults = random.Random(f"{case} {seed}"), []
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(times):
            end = archive_ends(folder, rng)
            ends[end if end in ("scored", "refused") else "fault"] += 1
            faults += [] if end in ("scored", "refused") else [{"case": case, "end": end}]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"case": case, "ends": ends, "faults": faults[:20], "peak_mb": round(peak / 1024)}


def fuzz(job: tuple[str, int, int]) -> dict[str, Any]:
    """Damages the files of one case so many times; one of them at a time, sometimes two."""
    case, seed, times = job
    if case == ARCHIVES:
        return fuzz_archives(job)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, resource.RLIM_INFINITY))
    rng = random.Random(f"{case} {seed}")
    expected = json.loads((CASES / case / "expected.json").read_text(encoding="utf-8"))
    names = {"run": expected["files"]["run"], "truth": expected["files"]["truth"]}
    names |= {what: f"{what}.csv" for what in ("classes", "media") if (CASES / case / f"{what}.csv").exists()}
    whole = {
        what: (CASES / case / name).read_bytes() for what, name in names.items() if (CASES / case / name).is_file()
    }
    ends: Counter[str] = Counter()
    faults: list[dict[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(times):
            files = {what: CASES / case / name for what, name in names.items()}
            broken = set(rng.sample(sorted(whole), min(len(whole), rng.choice((1, 1, 1, 2)))))
            for what in broken:
                files[what] = Path(folder, f"{what}{Path(names[what]).suffix}")
                files[what].write_bytes(damaged(whole[what], rng))
            given: dict[str, Any] = dict(files)
            if "run" in broken and rng.random() < IN_MEMORY:
                given["run"] = in_memory(files["run"])
            end = outcome_of(expected["scorecard"]["benchmark"], given)
            ends[end if end in ("scored", "refused") else "fault"] += len(broken)
            if end not in ("scored", "refused"):
                faults.append(
                    {"case": case, "end": end} | {what: files[what].read_bytes()[:400].hex() for what in broken}
                )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"case": case, "ends": ends, "faults": faults[:20], "peak_mb": round(peak / 1024)}


def run(files: int = FILES) -> None:
    """So many damaged files in all, shared out among the cases; what is done is kept as it grows."""
    cases = sorted(path.parent.name for path in CASES.glob("*/expected.json"))
    cases = [case for case in cases if any((CASES / case).glob("*.*sv")) or any((CASES / case).glob("*.parquet"))]
    cases.append(ARCHIVES)
    each = -(-files // len(cases) // SHARES)
    jobs = [(case, seed, each) for seed in range(SHARES) for case in cases]
    ends: dict[str, Counter[str]] = {case: Counter() for case in cases}
    faults: list[dict[str, str]] = []
    peak = 0
    with ProcessPoolExecutor(PROCESSES) as pool:
        for done in pool.map(fuzz, jobs):
            ends[done["case"]].update(done["ends"])
            faults += done["faults"]
            peak = max(peak, done["peak_mb"])
            print(done["case"], dict(done["ends"]), len(done["faults"]), "faults", flush=True)
            write_result(NAME, _result(ends, faults, peak))


def _result(ends: dict[str, Counter[str]], faults: list[dict[str, str]], peak: int) -> dict[str, Any]:
    total = sum((Counter(one) for one in ends.values()), Counter())
    return {
        "files": sum(total.values()),
        "ends": dict(total),
        "by_case": {case: dict(one) for case, one in ends.items()},
        "longest_allowed_s": SLOWEST_S,
        "peak_mb_of_a_process": peak,
        "faults": faults[:50],
    }
