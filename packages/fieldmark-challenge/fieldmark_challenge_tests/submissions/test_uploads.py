"""Whatever is submitted: a run that the scorer reads, or a list of problems, and never anything else."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError
from fieldmark.tables.labels import Labels
from fieldmark.web import run_problems
from fieldmark.web.refusals import BusyError
from fieldmark.web.run_problems import problems_of, read_as_scored
from fieldmark_challenge.challenges.offered_files import write_sample
from fieldmark_challenge.scoring.scoring_process import Limits, Outcome
from fieldmark_challenge.submissions import check_job, run_files, uploads
from fieldmark_challenge.submissions.checkers import Checklist, RunChecker, RunCheckers
from fieldmark_challenge.submissions.run_files import RunRefusedError, check_kind
from fieldmark_challenge.submissions.uploads import Upload, check_run

# One benchmark for each format of runs.
FORMATS = ("folder", "fungitastic/open", "plantclef-2020", "snakeclef-2020", "birdclef-2020", "geolifeclef-2020")
PIECES = (
    b"\0",
    b'"',
    b"'",
    b",",
    b";",
    b"\n",
    b"\r",
    b"\xff",
    b"\xef\xbb\xbf",
    b"nan",
    b"-1",
    b"1e999",
    b"0x1p3",
    b" ",
)


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with a few pieces put in, taken out, doubled or exchanged."""
    for _ in range(int(rng.integers(1, 4))):
        at, length = int(rng.integers(len(content) + 1)), int(rng.integers(1, 40))
        piece = PIECES[int(rng.integers(len(PIECES)))]
        content = (
            content[:at] + piece + content[at:],
            content[:at] + content[at + length :],
            content[:at] + content[at : at + length] + content[at:],
            content[:at] + piece + content[at + length :],
        )[int(rng.integers(4))]
    return content


def read_as_checked(wanted: Checklist, run: Path) -> None:
    """What a checker does with a run, without the process around it."""
    try:
        check_kind(run, wanted.benchmark, limit_mb=1)
        read_as_scored(wanted.benchmark, run, wanted.items, wanted.labels.names, closed=wanted.closed)
    except InputError as error:
        raise RunRefusedError(*problems_of(error)) from error


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_runs_are_read_or_refused_with_their_lines(name, tmp_path):
    task = BENCHMARKS[name].task
    items = tuple(f"rec{n}/{5 * n}" if task.items.noun == "segment" else f"x{n}" for n in range(12))
    labels = Labels(tuple(f"label{number}" for number in range(35)))
    write_sample(tmp_path / "sample.csv", task, items, labels)
    sample = (tmp_path / "sample.csv").read_bytes()
    wanted = Checklist(name, items, labels, closed=True)
    rng = np.random.default_rng(20)
    refused = 0
    for _ in range(150):
        content = mutated(sample, rng)
        path = Path(tmp_path / "run")
        path.write_bytes(content)
        try:
            read_as_checked(wanted, path)
        except RunRefusedError as error:
            refused += 1
            assert error.problems and error.total >= len(error.problems)
            assert all(str(tmp_path) not in problem["text"] for problem in error.problems)
    assert 30 < refused <= 150


def large_run(tmp_path: Path, *, rows: int = 12_000, wrong: bool = False) -> tuple[Checklist, Upload]:
    """A run that takes a moment to read."""
    items = tuple(f"photo-{number:06}-{'x' * 100}" for number in range(rows))
    lines = ["id,predicted", *(f"{item},{'z' if wrong else 'a'}" for item in items)]
    path = tmp_path / "run"
    path.write_text("\n".join(lines) + "\n")
    return Checklist("folder", items, Labels(("a", "b")), closed=True), Upload(path, "run.csv", path.stat().st_size, "")


def test_runs_are_read_in_a_process_of_their_own_and_never_where_pages_are_served(tmp_path, monkeypatch):
    def here(*args: object, **options: object) -> None:
        raise AssertionError("read in the process that serves pages")

    for module in (run_problems, check_job):
        monkeypatch.setattr(module, "read_as_scored", here)
    for module in (run_files, check_job):
        monkeypatch.setattr(module, "check_kind", here)
    check_run(*large_run(tmp_path), limit_mb=64)
    with pytest.raises(RunRefusedError) as refused:
        check_run(*large_run(tmp_path, wrong=True), limit_mb=64)
    assert refused.value.total == 12_000 and refused.value.problems[0]["line"] == 2
    check_run(*large_run(tmp_path, rows=2), limit_mb=64)  # nothing of the run before is left


def test_a_checker_is_told_once_what_the_runs_of_a_truth_are_checked_against(tmp_path, monkeypatch):
    monkeypatch.setattr("fieldmark_challenge.submissions.checkers.KEPT_NAMES", 10)
    checkers = RunCheckers(at_once=1, wait_s=60.0)
    monkeypatch.setattr(uploads, "CHECKERS", checkers)
    told: list[tuple[str, ...]] = []
    to_json = Checklist.to_json
    monkeypatch.setattr(Checklist, "to_json", lambda self: told.append(self.items) or to_json(self))
    (other, _), (small, run) = large_run(tmp_path, rows=3), large_run(tmp_path, rows=2)
    large = replace(small, items=(*small.items, *"abcdefghij"))
    refused = []
    for wanted in (small, small, other, small, large, small):
        try:
            check_run(wanted, run, limit_mb=1)
        except RunRefusedError:
            refused.append(wanted)
    assert refused == [other, large]  # each run was held against the list of its own challenge
    once = [items for index, items in enumerate(told) if items not in told[:index]]
    assert [told.count(items) for items in once] == [3, 2, 2]  # digest and telling; `small` made room for `large`
    checkers.close()


def test_a_run_that_takes_too_much_to_check_is_refused_with_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "CHECK_LIMITS", Limits(memory_mb=200))
    with pytest.raises(RunRefusedError, match="one problem") as refused:
        check_run(*large_run(tmp_path, rows=100_000), limit_mb=64)
    assert "takes more than" in refused.value.problems[0]["text"]


def test_checks_that_were_given_up_leave_their_places_to_others(tmp_path, monkeypatch):
    """A run is not to blame for a busy machine: what takes too much processor time has a limit of its own."""
    monkeypatch.setattr(uploads, "CHECK_LIMITS", Limits(wall_s=0.0))
    checkers = RunCheckers(at_once=1, wait_s=0.0)
    monkeypatch.setattr(uploads, "CHECKERS", checkers)
    run = large_run(tmp_path)
    for _ in range(checkers.at_once + 1):  # one more than there are places, and never "too many at once"
        with pytest.raises(BusyError, match="too busy to check"):
            check_run(*run, limit_mb=64)
    checkers.close()


def test_a_run_is_checked_though_every_checker_has_ended(tmp_path, monkeypatch):
    checkers = RunCheckers(at_once=2, wait_s=60.0)
    monkeypatch.setattr(uploads, "CHECKERS", checkers)
    both, ended = threading.Barrier(2), []

    def end(checker: RunChecker, *_: object) -> Outcome:
        os.killpg(checker.process.pid, signal.SIGKILL)
        ended.append(checker)
        both.wait()
        return Outcome()

    run = large_run(tmp_path, rows=2)
    with monkeypatch.context() as patched, ThreadPoolExecutor(2) as pool:
        patched.setattr(RunChecker, "check", end)
        for done in [pool.submit(check_run, *run, limit_mb=1) for _ in range(2)]:
            done.result()
    assert len(ended) == 2
    check_run(*run, limit_mb=1)
    checkers.close()


def test_a_run_whose_turn_does_not_come_is_told_to_come_again(tmp_path, monkeypatch):
    checkers = RunCheckers(at_once=1, wait_s=0.0)
    monkeypatch.setattr(uploads, "CHECKERS", checkers)
    waiting = []

    def hold(checker: RunChecker, *_: object) -> Outcome:
        with pytest.raises(BusyError) as busy:
            check_run(*large_run(tmp_path, rows=2), limit_mb=1)
        waiting.append(busy.value)
        return Outcome()

    monkeypatch.setattr(RunChecker, "check", hold)
    check_run(*large_run(tmp_path, rows=2), limit_mb=1)
    checkers.close()
    assert waiting[0].status == 503 and waiting[0].retry_after_s > 0
