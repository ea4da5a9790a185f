"""500 submissions of 20,000 rows each, handed in through the API and scored by two workers on PostgreSQL."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from sqlalchemy import func, select

from fieldmark_challenge.records.schema import Submission
from fieldmark_challenge_tests.own_postgres import OwnPostgres
from studies.evidence.stage import MAIN, Stage, staged, until

RUNS, ROWS, WORKERS, LABELS = 500, 20_000, 2, 100
TEAMS = 5  # one may upload 120 runs in an hour


def run() -> dict[str, Any]:
    """Runs in a minute, and what they take."""
    server = OwnPostgres()
    try:
        with tempfile.TemporaryDirectory(prefix="submissions-") as name:
            url = server.new_database("submissions")
            with staged(Path(name), url, truth=_truth()) as stage:
                return _measured(stage)
    finally:
        server.close()


def _measured(stage: Stage) -> dict[str, Any]:
    base = stage.serve()
    tokens = [stage.captain(f"captain {number}") for number in range(TEAMS)]
    bodies = [_body(seed) for seed in range(10)]
    began = time.perf_counter()
    with ThreadPoolExecutor(2) as people:
        list(people.map(lambda number: _hand_in(base, tokens[number % TEAMS], bodies[number % 10]), range(RUNS)))
    handing_in = time.perf_counter() - began
    before, began = _cpu_of_children(), time.perf_counter()
    workers = [stage.start("worker", "--until-idle", "--log-format", "json") for _ in range(WORKERS)]
    until(lambda: all(worker.poll() is not None for worker in workers), 3 * 3600)
    scoring = time.perf_counter() - began
    of_workers = _cpu_of_children() - before
    with stage.database.read() as session:
        states = session.execute(select(Submission.state, func.count()).group_by(Submission.state)).all()
        rows = session.execute(select(Submission.started_at, Submission.finished_at)).all()
    each = [(finished - started).total_seconds() for started, finished in rows if started and finished]
    used = _used(stage.folder / "log")
    alone = _scored_alone(stage.folder, bodies[0])
    return {
        "simulated": True,
        "runs": RUNS,
        "rows_each": ROWS,
        "mb_each": round(len(bodies[0]) / 1e6, 2),
        "workers": WORKERS,
        "states": {row[0]: row[1] for row in states},
        "handed_in_per_minute": round(60 * RUNS / handing_in, 1),
        "scored_per_minute": round(60 * RUNS / scoring, 1),
        "s_each": {f"p{share}": round(float(np.percentile(each, share)), 2) for share in (50, 95)},
        # A walled-in process is not the child of its worker: each says itself what it used, and the log has it.
        "cpu_s_each": round((of_workers + sum(one["cpu_s"] for one in used)) / RUNS, 2),
        "cpu_s_of_scoring": round(float(np.median([one["cpu_s"] for one in used])), 2),
        "cpu_s_of_fieldmark_score": round(alone, 2),
        "cores": os.cpu_count(),
        "load_at_the_end": round(os.getloadavg()[0], 1),
        "largest_process_mb": max(one["memory_mb"] for one in used),
    }


def _cpu_of_children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _used(log: Path) -> list[dict[str, float]]:
    """What the processes that scored have used, as the workers wrote it down."""
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return [line for line in lines if "cpu_s" in line]


def _scored_alone(folder: Path, body: bytes) -> float:
    """The CPU time of `fieldmark score` on one of the runs; the least of three."""
    (folder / "run.csv").write_bytes(body)
    command = [*MAIN, "score", "folder", str(folder / "run.csv"), "--truth", str(folder / "truth.csv"), "--json"]
    times = []
    for _ in range(3):
        before = _cpu_of_children()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(_cpu_of_children() - before)
    return min(times)


def _truth() -> str:
    rows = [f"i{number},l{number % LABELS},u{number // 2}" for number in range(ROWS)]
    return "\n".join(["id,label,unit", *rows]) + "\n"


def _body(seed: int) -> bytes:
    """A run of three labels per item, right about two times in three."""
    rng = np.random.default_rng(seed)
    first = np.where(rng.random(ROWS) < 0.6, np.arange(ROWS) % LABELS, rng.integers(0, LABELS, ROWS))
    answers = [f"l{label}|l{(label + 1) % LABELS}|l{(label + 2) % LABELS}" for label in first]
    return ("id,predicted\n" + "".join(f"i{number},{answer}\n" for number, answer in enumerate(answers))).encode()


def _hand_in(base: str, token: str, body: bytes) -> None:
    while True:
        answer = httpx.post(
            f"{base}/api/v1/challenges/tiny/submissions",
            headers={"authorization": f"Bearer {token}"},
            files={"run": ("run.csv", body)},
            data={"external": "no"},
            timeout=300,
        )
        if answer.status_code != 503:  # busy: it says to come again
            break
        time.sleep(1)
    if answer.status_code != 201:
        raise RuntimeError(f"{answer.status_code}: {answer.text[:300]}")
