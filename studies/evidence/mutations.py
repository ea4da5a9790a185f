"""Do the tests notice when the scorer is wrong? One token of it is changed at random, again and again.

A mutation is applied in a copy of the sources, and the tests that belong to the changed package run against the copy,
quick ones first, until one fails: the mutation is killed. One that no test notices is either explained in
`studies/evidence/equivalent_mutations.py` (it changes nothing that is promised) or calls for a test. The result is
written after each mutation, and a rerun goes on where the last one ended; it tries mutations that survived without an
explanation once more and keeps what the first pass said about them.
"""

from __future__ import annotations

import hashlib
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from studies.evidence.equivalent_mutations import EQUIVALENT
from studies.evidence.mutants import Mutation, drawn
from studies.evidence.results import read_result, write_result

ROOT = Path(__file__).parents[2]
CORE = Path("packages", "fieldmark")
SOURCES, TESTS = ROOT / CORE / "src", CORE / "fieldmark_tests"
PACKAGES = ("metrics", "runs", "scoring", "stats")
SEEDS, MUTATIONS, PROCESSES = (0,), 60, 2
# What the tests of one stage may take of a core, several times what they need; an endless loop counts as noticed.
CPU_SECONDS = 300
MEMORY_BYTES = 12 << 30
PYTEST: tuple[str, ...] = (sys.executable, "-m", "pytest")
# Under Hypothesis's profile "ci" the same examples come each time, and none fails for being slow on a busy machine.
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=ci")

_CARDS = "test_golden_version_1_scorecards.py"
_VALUES = ("oracles/test_values.py", "oracles/test_exact_scores.py")
# The tests of each package in the order in which they run, after the doctest and the tests of the changed module. Each
# tuple is one run of pytest.
STAGES: dict[str, tuple[tuple[str, ...], ...]] = {
    "metrics": ((*_VALUES, _CARDS),),
    "stats": (("stats", "scoring/test_comparison.py", _CARDS),),
    "runs": (("runs", "oracles", _CARDS),),
    "scoring": (("stats/test_two_groups.py", "views/test_score_run.py", *_VALUES, _CARDS),),
}


def stages_of(path: str, sources: Path) -> list[tuple[str, ...]]:
    """The tests for a changed file, one tuple for each run of pytest."""
    _, package, file = Path(path).parts
    own = ROOT / TESTS / package / f"test_{file}"
    first = (str(sources / path), *((str(own.relative_to(ROOT)),) if own.exists() else ()))
    return [first, *(tuple(str(TESTS / test) for test in stage) for stage in STAGES[package])]


def noticed_by(tests: Sequence[str], sources: Path) -> str | None:
    """The first test that fails against these sources, None where all pass."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, resource.RLIM_INFINITY))

    done = subprocess.run(
        [*PYTEST, *OPTIONS, "-c", str(ROOT / "pyproject.toml"), *tests],
        cwd=ROOT,
        env=os.environ | threads | {"PYTHONPATH": str(sources)},
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
        errors="replace",
    )
    if done.returncode in (0, 5):  # 5: the module has no doctest
        return None
    if 2 < done.returncode < 128:
        raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if failed is not None:
        return re.sub(r"^.*src/\S*::|^::", "doctest of ", failed[1])
    return "an error while tests were collected" if done.returncode in (1, 2) else "the limit of time or memory"


def try_out(mutation: Mutation) -> str | None:
    """The first test that notices a mutation, None where none does."""
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder, "src")
        shutil.copytree(SOURCES, sources)
        (sources / mutation.path).write_text(mutation.source, encoding="utf-8")
        for tests in stages_of(mutation.path, sources):
            test = noticed_by(tests, sources)
            if test is not None:
                return test
    return None


def check_unchanged(packages: Sequence[str]) -> None:
    """Raises where a test fails without any mutation: it would kill everything."""
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder, "src")
        shutil.copytree(SOURCES, sources)
        for tests in dict.fromkeys(stage for package in packages for stage in STAGES[package]):
            print("unchanged:", *tests, flush=True)
            test = noticed_by(tests, sources)
            if test is not None:
                raise RuntimeError(f"{test} fails without any mutation; mend it first")


def run(seeds: Sequence[int] = SEEDS) -> dict[str, Any]:
    """All draws, each from where it was left."""
    stored = read_result("mutations") or {}
    draws = {draw["seed"]: draw for draw in stored.get("draws", ())}
    for seed in seeds:
        files = [file for package in PACKAGES for file in (SOURCES / "fieldmark" / package).glob("*.py")]
        mutations, tokens = drawn(SOURCES, files, MUTATIONS, seed)
        digest = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()
        draw = draws.get(seed, {})
        if draw.get("sources") != digest:  # other sources are another draw
            draw = {"seed": seed, "sources": digest, "tokens": tokens, "mutations": []}
        draw["drawn"] = len(mutations)
        draws[seed] = draw
        _go_on(draw, mutations, draws)
    for key in _stale():
        print("no longer in the sources, remove it from the equivalent mutations:", *key)
    return {"draws": [_counted(draws[seed]) for seed in sorted(draws)]}


def _go_on(draw: dict[str, Any], mutations: list[Mutation], draws: dict[int, dict[str, Any]]) -> None:
    """Tries the mutations of a draw that are not decided yet; writes the result after each."""
    rows = {(row["line"], row["becomes"], row["path"]): row for row in draw["mutations"]}
    waiting = []
    for mutation in mutations:
        row = rows.get((mutation.line, mutation.becomes, mutation.path))
        if row is not None:
            row["now"] = _judged(mutation, row["killed_by"])
        if row is None or row["now"] == "unexplained":
            waiting.append(mutation)
    if not waiting:
        return
    check_unchanged(sorted({Path(mutation.path).parts[1] for mutation in waiting}))
    order = {mutation: number for number, mutation in enumerate(mutations)}
    with ThreadPoolExecutor(PROCESSES) as pool:
        jobs = {pool.submit(try_out, mutation): mutation for mutation in waiting}
        for count, job in enumerate(as_completed(jobs), 1):
            mutation, test = jobs[job], job.result()
            place = (mutation.line, mutation.becomes, mutation.path)
            row = rows.setdefault(place, _new_row(mutation, test))
            row.update({"now": _judged(mutation, test), "killed_by": test})
            print(f"seed {draw['seed']}, {count} of {len(waiting)}: {row['now']}", *mutation.key, test, flush=True)
            if test is not None and mutation.key in EQUIVALENT:
                print("said to be equivalent, but a test notices it:", *mutation.key)
            tried = (one for one in order if (one.line, one.becomes, one.path) in rows)
            draw["mutations"] = [rows[one.line, one.becomes, one.path] for one in tried]
            write_result("mutations", {"draws": [_counted(draws[seed]) for seed in sorted(draws)]})


def _new_row(mutation: Mutation, test: str | None) -> dict[str, Any]:
    return {
        "path": mutation.path,
        "line": mutation.line,
        "text": mutation.text,
        "becomes": mutation.becomes,
        "first_pass": "survived" if test is None else "killed",
    }


def _judged(mutation: Mutation, test: str | None) -> str:
    if test is not None:
        return "killed"
    return "equivalent" if mutation.key in EQUIVALENT else "unexplained"


def _counted(draw: dict[str, Any]) -> dict[str, Any]:
    """A draw with its numbers in front, and the reason beside each equivalent mutation."""
    rows = draw["mutations"]
    for row in rows:
        stated = row.pop("reason", "")  # a draw from older sources keeps what was said about it then
        if row["now"] == "equivalent":
            row["reason"] = EQUIVALENT.get((row["path"], row["text"], row["becomes"]), stated)
    front = {key: draw[key] for key in ("seed", "sources", "tokens", "drawn")}
    counts = {kind: dict(Counter(row[kind] for row in rows)) for kind in ("first_pass", "now")}
    return front | counts | {"mutations": rows}


def _stale() -> list[tuple[str, str, str]]:
    """Equivalent mutations whose line is no longer in the sources."""
    return [
        (path, text, becomes)
        for path, text, becomes in EQUIVALENT
        if not (SOURCES / path).exists()
        or text not in map(str.strip, (SOURCES / path).read_text(encoding="utf-8").splitlines())
    ]
