"""Boards of 300 and 3,000 entries: the first page of a process, the first after a new score, and many readers.

The server runs in a process of its own. Times of pages stand beside those of `/healthz`, which does nothing, asked by
as many readers in the same minute: on a machine that others use too, the ratio says more than the seconds, and the CPU
milliseconds of the server per page say most.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np

from fieldmark.scoring import Score, Scorecard
from fieldmark_challenge.lifecycle.creation import NewChallenge, create_challenge, material_of_files
from fieldmark_challenge.people import accounts
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, Submission, Team, utc_now
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.scoring.stored_scores import to_row

ENTRIES, UNITS = (300, 3000), 300
READERS, PAGES, PAUSE_S = (50, 200), 4, 5.0
NEW_SCORES = 5


def run() -> dict[str, Any]:
    """Seconds and memory for each size of board."""
    rows = [_measured(entries) for entries in ENTRIES]
    grown = {what: _exponent([row[what] for row in rows]) for what in ("first", "after_a_new_score")}
    return {"simulated": True, "units": UNITS, "pause_s": PAUSE_S, "rows": rows, "exponents": grown}


def _exponent(taken: list[dict[str, float]]) -> dict[str, float]:
    """How seconds and CPU seconds grow with the number of entries."""
    more = np.log(ENTRIES[1] / ENTRIES[0])
    return {kind: round(float(np.log(taken[1][kind] / taken[0][kind]) / more), 2) for kind in ("s", "cpu_s")}


def _measured(entries: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database = Database(f"sqlite:///{folder / 'platform.sqlite'}")
        database.migrate()
        challenge = _challenge(database, folder)
        rng = np.random.default_rng(0)
        for number in range(entries):
            _enter(database, challenge, f"team {number}", rng)
        with _serving(folder) as (server, base):
            row: dict[str, Any] = {"entries": entries, "memory_before_mb": _memory_mb(server)}
            row["first"] = _timed(server, f"{base}/c/board/board")
            row["first"]["peak_mb"] = _memory_mb(server)
            after = []
            for number in range(NEW_SCORES):
                _enter(database, challenge, f"late team {number}", rng)
                after.append(_timed(server, f"{base}/c/board/board"))
            row["after_a_new_score"] = {
                key: round(float(np.median([one[key] for one in after])), 3) for key in after[0]
            }
            row["after_a_new_score"]["peak_mb"] = _memory_mb(server)
            row["readers"] = {}
            for readers in READERS:
                trivial = _read(server, f"{base}/healthz", readers)
                board = _read(server, f"{base}/c/board/board", readers)
                ratio = round(board["p95_s"] / trivial["p95_s"], 2)
                row["readers"][readers] = {"board": board, "healthz": trivial, "p95_ratio": ratio}
            row["peak_mb"], row["load"] = _memory_mb(server), round(os.getloadavg()[0], 1)
        database.close()
    print(row, flush=True)
    return row


@contextmanager
def _serving(folder: Path) -> Iterator[tuple[int, str]]:
    """The number of the process that serves a folder, and its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-m", "studies.perf.board_server", str(folder), str(port)])
    try:
        base, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 120
        while True:
            try:
                httpx.get(f"{base}/login", timeout=60).raise_for_status()
                break
            except httpx.TransportError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        yield process.pid, base
    finally:
        process.terminate()
        process.wait()


def _memory_mb(process: int) -> int:
    """The most that a process has held."""
    status = Path(f"/proc/{process}/status").read_text()
    return round(int(status.partition("VmHWM:")[2].split()[0]) / 1024)


def _cpu_s(process: int) -> float:
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / 100


def _challenge(database: Database, folder: Path) -> Challenge:
    admin = accounts.register(database, "admin", "admin@example.org", "correct horse battery", role="admin")
    lines = [f"i{number},{'ab'[number % 2]},u{number}" for number in range(UNITS)]
    (folder / "truth.csv").write_text("\n".join(["id,label,unit", *lines]) + "\n")
    with material_of_files("folder", folder / "truth.csv", simulated=True) as material:
        new = NewChallenge("board", "folder", public_share=None)
        return create_challenge(database, Storage(folder / "files"), admin, new, material)


def _enter(database: Database, challenge: Challenge, name: str, rng: np.random.Generator) -> None:
    """A team with a scored run whose skill is drawn."""
    hits = (rng.random(UNITS) < rng.uniform(0.2, 0.9)).astype(float)
    score = Score(float(hits.mean()), float(hits.mean()) - 0.05, float(hits.mean()) + 0.05, "jackknife-t")
    metrics, pseudo = {"macro_f1_all": score, "top_1": score}, {"macro_f1_all": hits, "top_1": hits}
    units = tuple(f"u{number}" for number in range(UNITS))
    card = Scorecard("folder", "1", "public", UNITS, UNITS, 2, metrics, {}, pseudo=pseudo, unit_ids=units)
    about = {"challenge_id": challenge.id, "user_id": challenge.owner_id, "filename": "run.csv", "size": 1}
    about |= {"sha256": "", "accepted_at": utc_now(), "quota_day": "", "state": "scored"}
    with database.write() as session:
        team = Team(challenge_id=challenge.id, name=name, name_key=name)
        session.add(team)
        session.flush()
        run = Submission(team_id=team.id, **about)
        session.add(run)
        session.flush()
        session.add(to_row(run.id, "public", 1, card, "macro_f1_all"))


def _timed(process: int, address: str) -> dict[str, float]:
    """What one page takes: seconds, and CPU seconds of the server."""
    start, used = time.perf_counter(), _cpu_s(process)
    httpx.get(address, timeout=300).raise_for_status()
    return {"s": round(time.perf_counter() - start, 3), "cpu_s": round(max(_cpu_s(process) - used, 0.01), 3)}


def _read(process: int, address: str, readers: int) -> dict[str, float]:
    """The times of people who look at the board again and again, with a pause in between.

    Each page comes over a plain connection of its own, so that little of the machine goes into asking.
    """
    asked, took, used = urlsplit(address), [], _cpu_s(process)

    def look(number: int) -> None:
        time.sleep(PAUSE_S * number / readers)
        for _ in range(PAGES):
            start = time.perf_counter()
            connection = HTTPConnection(str(asked.netloc), timeout=60)
            connection.request("GET", asked.path)
            answer = connection.getresponse()
            answer.read()
            connection.close()
            took.append(time.perf_counter() - start)
            if answer.status != 200:
                raise RuntimeError(f"{address} answered {answer.status}")
            time.sleep(PAUSE_S)

    threads = [threading.Thread(target=look, args=(number,)) for number in range(readers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(took) != readers * PAGES:
        raise RuntimeError(f"{readers * PAGES - len(took)} pages did not come")
    spent = 1000 * (_cpu_s(process) - used) / len(took)
    times = {f"p{share}_s": round(float(np.percentile(took, share)), 4) for share in (50, 95)}
    return {**times, "cpu_ms": round(spent, 2)}
