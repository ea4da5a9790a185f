"""Boards of 300 and 3,000 entries: the first page of a process, the first after a new score, and many readers."""

from __future__ import annotations

import resource
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import uvicorn

from fieldmark.challenge.people import accounts
from fieldmark.challenge.records.database import Database
from fieldmark.challenge.records.schema import Challenge, Submission, Team, utc_now
from fieldmark.challenge.records.storage import Storage
from fieldmark.challenge.running.creating import NewChallenge, create_challenge, material_of_files
from fieldmark.challenge.scoring.stored_scores import to_row
from fieldmark.challenge.site.app import create_app
from fieldmark.scoring import Score, Scorecard

ENTRIES, UNITS = (300, 3000), 300
READERS, PAGES, PAUSE_S = (50, 200), 4, 5.0


def run() -> dict[str, Any]:
    """Seconds and memory for each size of board."""
    rows = [_measured(entries) for entries in ENTRIES]
    few, many = (row["after_a_new_score_s"] for row in rows)
    grown = np.log(many / few) / np.log(ENTRIES[1] / ENTRIES[0])
    return {"simulated": True, "units": UNITS, "pause_s": PAUSE_S, "rows": rows, "exponent": round(float(grown), 2)}


def _measured(entries: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database = Database(f"sqlite:///{folder / 'platform.sqlite'}")
        database.migrate()
        challenge = _challenge(database, folder)
        rng = np.random.default_rng(0)
        for number in range(entries):
            _enter(database, challenge, f"team {number}", rng)
        app = create_app(database, Storage(folder / "files"))
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical"))
        threading.Thread(target=server.run, daemon=True).start()
        while not server.started:
            time.sleep(0.01)
        address = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/c/board/board"
        row: dict[str, Any] = {"entries": entries, "first_s": _timed(address)}
        after = []
        for number in range(5):
            _enter(database, challenge, f"late team {number}", rng)
            after.append(_timed(address))
        row["after_a_new_score_s"] = round(float(np.median(after)), 3)
        row["readers"] = {readers: _read(address, readers) for readers in READERS}
        row["memory_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        server.should_exit = True
    print(row, flush=True)
    return row


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


def _timed(address: str) -> float:
    start = time.perf_counter()
    httpx.get(address, timeout=300).raise_for_status()
    return round(time.perf_counter() - start, 3)


def _read(address: str, readers: int) -> dict[str, float]:
    """The times of people who look at the board again and again, with a pause in between."""
    took: list[float] = []

    def look(number: int) -> None:
        time.sleep(PAUSE_S * number / readers)
        with httpx.Client(timeout=60) as client:
            for _ in range(PAGES):
                start = time.perf_counter()
                client.get(address).raise_for_status()
                took.append(time.perf_counter() - start)
                time.sleep(PAUSE_S)

    threads = [threading.Thread(target=look, args=(number,)) for number in range(readers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {f"p{share}_s": round(float(np.percentile(took, share)), 3) for share in (50, 95)}
