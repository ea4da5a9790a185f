"""What the platform does when things break: workers killed, the database restarted, no disk, midnight, a wrong clock.

Everything is real: processes of their own, kill -9, a PostgreSQL server that is stopped, a file system of a few
mebibytes, and libfaketime in front of the clock. What is counted afterwards is what the database holds: each run that
was accepted must be there, scored, once, and with the score that it has. Results are kept after each part, so that the
study goes on where it was stopped. `FIELDMARK_STUDY_SIZE=0.1` makes those parts that count kills and uploads smaller; a
part is done again where it was smaller than is asked for.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
from sqlalchemy import func, select

from fieldmark_challenge.operations import heartbeats
from fieldmark_challenge.operations.shutdown import Stopping
from fieldmark_challenge.records import database
from fieldmark_challenge.records.schema import AuditEvent, PartScore, Submission, utc_now
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.scoring.worker import start_workers
from fieldmark_challenge_tests.own_postgres import OwnPostgres
from studies.evidence import canaries
from studies.evidence.fuzzing import damaged
from studies.evidence.results import read_result, write_result
from studies.evidence.stage import Stage, ask, post_in_parts, post_run, run_text, staged, status_of, until

NAME = "faults"
SIZE = float(os.environ.get("FIELDMARK_STUDY_SIZE", "1"))
RUNS, KILLS, KILLS_EACH = max(20, round(200 * SIZE)), max(3, round(30 * SIZE)), 5
BAD_FILES, BATCH, RISING_EVERY = max(100, round(10_000 * SIZE)), 500, 5_000
AT_ONCE, ROUNDS = 50, max(2, round(20 * SIZE))
EXPECTED = (" 200", " 201", " 422", " 429", " 503")  # else a request did not reach what it was to try
SIZED = "size"  # under which a part that has one keeps it
LEASE_S = "4"
UNWALLED = "--no-require-sandbox"  # bubblewrap does not always start below libfaketime
FAKETIME = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)


def run() -> None:
    """All parts that have no result yet, or those that `FIELDMARK_STUDY_PARTS` names."""
    for name in os.environ.get("FIELDMARK_STUDY_PARTS", " ".join(PARTS)).split():
        part, done = PARTS[name], _done()
        if name in done and done[name].get(SIZED, 1) >= (SIZE if part in SIZED_PARTS else 0):
            print(f"{name}: done before", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            begun = time.monotonic()
            size = {SIZED: SIZE} if part in SIZED_PARTS else {}
            told = part(Path(folder))
        _keep(name, {**size, "took_s": round(time.monotonic() - begun)} | told)


def _done() -> dict[str, Any]:
    return dict((read_result(NAME) or {}).get("parts", {}))


def _keep(name: str, result: dict[str, Any]) -> None:
    print(name, result, flush=True)
    done = _done() | {name: result}  # read anew, for another part may have been kept meanwhile
    write_result(NAME, {"simulated": True, "parts": {name: done[name] for name in PARTS if name in done}})


@contextmanager
def _postgres(*, durable: bool = True) -> Iterator[OwnPostgres]:
    server = OwnPostgres(durable=durable)
    try:
        yield server
    finally:
        server.close()


def workers_on_sqlite(folder: Path) -> dict[str, Any]:
    """Workers that are ended by kill -9 amid 200 submissions."""
    with staged(folder) as stage:
        return _kill_workers(stage)


def workers_on_postgresql(folder: Path) -> dict[str, Any]:
    """The same on PostgreSQL."""
    with _postgres() as server, staged(folder, server.new_database("workers")) as stage:
        return _kill_workers(stage)


def _kill_workers(stage: Stage, runs: int = RUNS, kills: int = KILLS) -> dict[str, Any]:
    """Two workers, which are killed now and then while they score, and followed by others."""
    base, rng = stage.serve(), random.Random(0)
    tokens = [stage.captain(f"captain {letter}") for letter in "abcd"]
    right: dict[int, int] = {}

    def hand_in(number: int) -> None:
        answer = post_run(base, tokens[number % 4], run_text(number % 61), title=f"run {number}")
        assert answer is not None and answer.status_code == 201, answer and answer.text
        right[int(answer.json()["id"])] = number % 61

    with ThreadPoolExecutor(3) as people:
        handing_in = people.map(hand_in, range(runs))
        workers = [stage.start("worker", "--lease", LEASE_S) for _ in range(2)]
        killed = 0
        while _unfinished(stage) or len(right) < runs:
            time.sleep(rng.uniform(0.2, 2.0))
            busy = _at_work(stage)
            for place, worker in enumerate(workers):
                if killed < kills and worker.pid in busy and rng.random() < 0.5:
                    worker.send_signal(signal.SIGKILL)  # in the midst of a run
                    worker.wait()
                    workers[place], killed = stage.start("worker", "--lease", LEASE_S), killed + 1
        list(handing_in)
    return {"runs": runs, "killed": killed, **_reckoning(stage, right)}


def _at_work(stage: Stage) -> set[int]:
    """The workers that are scoring a run now, by the number of their process."""
    with stage.database.read() as session:
        names = session.scalars(select(Submission.worker).where(Submission.state == "running")).all()
    return {int(name.rpartition(":")[2].partition("/")[0]) for name in names if name}


def _unfinished(stage: Stage) -> int:
    with stage.database.read() as session:
        query = select(func.count()).where(Submission.state.in_(("queued", "running")))
        return int(session.execute(query).scalar_one())


def _reckoning(stage: Stage, right: dict[int, int]) -> dict[str, Any]:
    """What became of the runs that were accepted."""
    with stage.database.read() as session:
        rows = session.execute(select(Submission.id, Submission.state, Submission.attempts)).all()
        scores = session.execute(select(PartScore.submission_id, PartScore.part, PartScore.card)).all()
        again = session.execute(select(func.count()).where(AuditEvent.action == "submission.rescored")).scalar_one()
    states = {number: state for number, state, _ in rows}
    found: dict[int, dict[str, float]] = {}
    for number, part, card in scores:
        found.setdefault(number, {})[part] = card["metrics"]["top_1"]["value"] * card["items"]
    hits = {number: round(sum(parts.values())) for number, parts in found.items() if len(parts) == 2}
    return {
        "accepted": len(right),
        "lost": sum(number not in states for number in right),
        "states": dict(Counter(states[number] for number in right if number in states)),
        "scored_twice": int(again),
        "wrong_scores": sum(hits.get(number) != expected for number, expected in right.items()),
        "attempts": {str(count): many for count, many in sorted(Counter(row[2] for row in rows).items())},
    }


def servers_on_sqlite(folder: Path) -> dict[str, Any]:
    """Servers that are ended by kill -9 while people hand runs in, at once and in parts."""
    with staged(folder) as stage:
        return _kill_servers(stage)


def servers_on_postgresql(folder: Path) -> dict[str, Any]:
    """The same on PostgreSQL."""
    with _postgres() as server:
        return _kill_in_batches("servers_on_postgresql", folder, server)


def _kill_in_batches(name: str, folder: Path, server: OwnPostgres) -> dict[str, Any]:
    """A few kills at a time, each time on a platform of its own and kept when it is done, until there are enough."""
    told: dict[str, Any] = _done().get(name, {"killed": 0})
    while (before := told["killed"]) < KILLS:
        begun, kills = time.monotonic(), min(KILLS_EACH, KILLS - before)
        runs = round(RUNS / KILLS * kills)
        with staged(folder / str(before), server.new_database(f"servers_{before}")) as stage:
            found = _kill_servers(stage, runs, kills)
        told = canaries.added(told, found) if before else found
        seconds = round(time.monotonic() - begun) + told.get("took_s", 0)
        told |= {SIZED: told["killed"] / 30, "took_s": seconds}
        _keep(name, told)
    return told


def _kill_servers(stage: Stage, runs: int = RUNS, kills: int = KILLS) -> dict[str, Any]:
    """Two servers, of which one is killed now and then and followed by another; whoever gets no answer asks again.

    Each run is handed in under a key of its own, or as an upload that is finished until that is answered. Runs are
    spread over the kills: so many for each.
    """
    rng, right, statuses = random.Random(1), dict[int, int](), Counter[str]()
    # Many people, for whoever tries again and again is told to come back in an hour.
    tokens = [stage.captain(f"captain {number}") for number in range(max(4, runs // 4))]
    bases = [_served(stage), _served(stage)]
    stage.start("worker", "--lease", LEASE_S)
    killed, over = 0, threading.Event()

    def hand_in(number: int) -> None:
        token, sender = tokens[number % len(tokens)], random.Random(number)
        while number >= (killed + 1) * runs / kills and not over.is_set():
            time.sleep(0.05)
        while not over.is_set():
            base = sender.choice(bases)
            if number % 2:
                answer = post_run(base, token, run_text(number % 61), once=f"run number {number}")
            else:
                answer = post_in_parts(base, token, run_text(number % 61))
            statuses[str(answer.status_code) if answer is not None else "no answer"] += 1
            if answer is not None and answer.status_code in (200, 201):
                right[int(answer.json()["id"])] = number % 61
                return
            if answer is not None and answer.status_code not in (429, 503):
                raise RuntimeError(f"a run was answered with {answer.status_code}: {answer.text[:200]}")
            time.sleep(1)

    with ThreadPoolExecutor(6) as people:
        handing_in = [people.submit(hand_in, number) for number in range(runs)]
        while killed < kills and not all(one.done() for one in handing_in):
            time.sleep(rng.uniform(0.05, 1.0))  # while runs are on their way
            place = rng.randrange(2)
            stage.kill_server(bases[place])
            bases[place], killed = _served(stage), killed + 1
            failed = [error for one in handing_in if one.done() and (error := one.exception())]
            if failed:
                over.set()
                raise failed[0]
        for one in handing_in:
            one.result()
        over.set()
    until(lambda: not _unfinished(stage))
    with stage.database.read() as session:
        there = session.execute(select(func.count()).where(Submission.state != "refused")).scalar_one()
    # An upload whose answer was lost after it was finished is one submission more than was acknowledged.
    told = {
        "unacknowledged": int(there) - len(right),
        "faults": statuses["500"],
        "statuses": dict(sorted(statuses.items())),
    }
    return {"runs": runs, "killed": killed, **told, **_reckoning(stage, right)}


def _served(stage: Stage) -> str:
    """Another server; started again where the machine is too busy for it to try its walls in time."""
    for _ in range(5):
        with suppress(RuntimeError):
            return stage.serve()
    return stage.serve()


def everything_at_once_on_sqlite(folder: Path) -> dict[str, Any]:
    """Fifty people who do everything that there is to do at the same time."""
    with staged(folder, truth=canaries.truth_text()) as stage:
        return _everything(stage)


def everything_at_once_on_postgresql(folder: Path) -> dict[str, Any]:
    """The same on PostgreSQL."""
    with _postgres() as server, staged(folder, server.new_database("everything"), truth=canaries.truth_text()) as stage:
        return _everything(stage)


def _everything(stage: Stage, people: int = AT_ONCE, rounds: int = ROUNDS) -> dict[str, Any]:
    """What was answered, and whether a name that only the truth holds was among it."""
    bases = [stage.serve(), stage.serve()]
    for _ in range(2):
        stage.start("worker", "--lease", LEASE_S)
    tokens = [stage.captain(f"person {number:02}") for number in range(people)]
    statuses, leaks, accepted = Counter[str](), list[str](), set[int]()
    run = canaries.run_file(canaries.ITEMS // 2, random.Random(0)).decode()

    def note(what: str, answer: httpx.Response | None) -> None:
        statuses[f"{what} {answer.status_code if answer is not None else 'no answer'}"] += 1
        if answer is not None:
            leaks.extend(f"{what}: {name}" for name in canaries.CANARIES if name.encode() in answer.content)
            if what in ("run", "upload") and answer.status_code == 201:
                accepted.add(int(answer.json()["id"]))

    def act(place: int) -> None:
        rng, token = random.Random(place), tokens[place]
        for number in range(rounds):
            base = rng.choice(bases)
            what = rng.choice(("run", "upload", "damaged", "board", "submissions", "quota", "page", "export"))
            if what == "run":
                note(what, post_run(base, token, run, once=f"person {place} run {number}"))
            elif what == "upload":
                note(what, post_in_parts(base, token, run))
            elif what == "damaged":
                note(what, post_run(base, token, damaged(run.encode(), rng).decode("latin-1")))
            else:
                note(what, ask(base, token, what))

    with ThreadPoolExecutor(people) as everybody:
        list(everybody.map(act, range(people)))
    until(lambda: not _unfinished(stage))
    with stage.database.read() as session:
        rows = dict(session.execute(select(Submission.id, Submission.state)).all())
        again = session.execute(select(func.count()).where(AuditEvent.action == "submission.rescored")).scalar_one()
    log = (stage.folder / "log").read_text(errors="replace")
    leaks += [f"log: {name}" for name in canaries.CANARIES if name in log]
    faults = sum(count for what, count in statuses.items() if what.endswith((" 500", " 502", " 504")))
    odd = {what: count for what, count in statuses.items() if not what.endswith(EXPECTED)}
    return {
        "people": people,
        "rounds": rounds,
        "statuses": dict(sorted(statuses.items())),
        "faults": faults,
        "odd": odd,
        "accepted": len(accepted),
        "lost": sum(number not in rows for number in accepted),
        "states": dict(Counter(rows[number] for number in accepted if number in rows)),
        "scored_twice": int(again),
        "leaks": leaks[:20],
    }


def database_restarted(folder: Path) -> dict[str, Any]:
    """PostgreSQL stopped and started four times while people read and hand in, twice without a warning."""
    statuses: dict[str, Counter[str]] = {"pages": Counter(), "runs": Counter()}
    over = threading.Event()
    with _postgres() as server, staged(folder, server.new_database("restarts")) as stage:
        base = stage.serve()
        tokens = [stage.captain(f"captain {letter}") for letter in "abc"]
        stage.start("worker", "--lease", LEASE_S)
        stage.start("worker", "--lease", LEASE_S)
        until(lambda: len(heartbeats.alive(stage.database)) == 2)
        right: dict[int, int] = {}

        def read() -> None:
            while not over.is_set():
                statuses["pages"][str(status_of(f"{base}/c/tiny/board"))] += 1
                time.sleep(0.05)

        def hand_in(place: int) -> None:
            number = place
            while not over.is_set():
                # The same key until it is taken: an answer that was lost on the way is no second submission.
                answer = post_run(base, tokens[place], run_text(number % 61), once=f"run {place} number {number}")
                statuses["runs"][str(answer.status_code) if answer is not None else "no answer"] += 1
                if answer is not None and answer.status_code in (200, 201):
                    right[int(answer.json()["id"])] = number % 61
                    number += 3
                time.sleep(0.5)

        with ThreadPoolExecutor(8) as people:
            for _ in range(4):
                people.submit(read)
            for place in range(3):
                people.submit(hand_in, place)
            for mode in ("fast", "immediate", "fast", "immediate"):
                time.sleep(8)
                server.control("stop", mode)
                time.sleep(2)
                server.control("start")
            time.sleep(8)
            over.set()
        until(lambda: not _unfinished(stage))
        ready = until(lambda: status_of(f"{base}/readyz?without=workers") == 200)
        told = {name: dict(sorted(counts.items())) for name, counts in statuses.items()}
        faults = sum(counts["500"] for counts in statuses.values())
        return {
            "restarts": 4,
            "statuses": told,
            "faults": faults,
            "ready_after_s": round(ready, 1),
            **_reckoning(stage, right),
        }


def disk_full(folder: Path) -> dict[str, Any]:
    """A file system of 24 MiB for database and files, filled up and emptied again while people hand in."""
    place = folder / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(place)], check=True)
    try:
        with staged(place / "platform") as stage:
            base, token = stage.serve(), stage.captain("ada")
            right: dict[int, int] = {}

            def hand_in(number: int) -> str:
                answer = post_run(base, token, run_text(number))
                if answer is not None and answer.status_code == 201:
                    right[int(answer.json()["id"])] = number
                return str(answer.status_code) if answer is not None else "no answer"

            before = Counter(hand_in(number) for number in range(5))
            _fill(place / "filler")
            while_full = Counter(hand_in(number) for number in range(5, 15))
            pages = Counter(str(status_of(f"{base}{path}")) for path in ("/", "/login", "/c/tiny", "/c/tiny/board"))
            ready = status_of(f"{base}/readyz?without=workers")
            (place / "filler").unlink()
            after = Counter(hand_in(number) for number in range(15, 20))
            stage.start("worker", "--until-idle").wait()
            with sqlite3.connect(place / "platform" / "platform.sqlite") as raw:
                whole = raw.execute("PRAGMA integrity_check").fetchone()[0]
            with stage.database.read() as session:
                used = set(session.scalars(select(Submission.path)))
            stray = [
                path for path in Storage(stage.files).everything() if path.startswith("runs/") and path not in used
            ]
            return {
                "before": dict(before),
                "while_full": dict(while_full),
                "pages_while_full": dict(pages),
                "readyz_while_full": ready,
                "after": dict(after),
                "integrity": whole,
                "stray_files": len(stray),
                **_reckoning(stage, right),
            }
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def _fill(path: Path) -> None:
    """Takes all room that is left."""
    with path.open("wb", buffering=0) as sink:
        for size in (1 << 20, 1 << 12, 1 << 6):
            try:
                while sink.write(b"\0" * size):
                    pass
            except OSError:
                continue


def midnight(folder: Path) -> dict[str, Any]:
    """A limit of five a day, and eight people of one team who hand in without pause from before to after midnight."""
    with staged(folder, daily_limit=5) as stage:
        token = stage.captain("ada")
        hand = stage.folder / "clock"
        hand.write_text("+0s\n")
        base = stage.serve(UNWALLED, environment=_clock(hand))
        now = utc_now()
        turn = dt.datetime.combine(now.date() + dt.timedelta(days=1), dt.time(), dt.UTC)
        hand.write_text(f"+{(turn - now).total_seconds() - 20:.0f}s\n")  # twenty seconds to midnight
        statuses: Counter[str] = Counter()
        over = time.monotonic() + 45

        def hand_in(_: int) -> None:
            while time.monotonic() < over:
                answer = post_run(base, token, run_text(30))
                statuses[str(answer.status_code) if answer is not None else "no answer"] += 1

        with ThreadPoolExecutor(8) as people:
            list(people.map(hand_in, range(8)))
        with stage.database.read() as session:
            rows = session.execute(select(Submission.accepted_at, Submission.quota_day)).all()
        days = Counter("before" if accepted < turn else "after" for accepted, _ in rows)
        other = sum(accepted.date().isoformat() != day for accepted, day in rows)
        return {"daily": 5, "accepted": dict(days), "on_another_day": other, "statuses": dict(sorted(statuses.items()))}


def clock_jumps(folder: Path) -> dict[str, Any]:
    """The clock of a machine jumps an hour ahead, two back, and home again, while two workers score.

    On SQLite that is the clock of the machine, which is injected here.
    """
    offset = dt.timedelta()

    def turn(seconds: int) -> None:
        nonlocal offset
        offset = dt.timedelta(seconds=seconds)

    with staged(folder) as stage, mock.patch.object(database, "utc_now", lambda: utc_now() + offset):
        return {"sqlite": _turn_clock(stage, turn)}


def clock_on_postgresql(folder: Path) -> dict[str, Any]:
    """The same with the clock of PostgreSQL, which tells the time to all: libfaketime stands in front of it."""
    hand = Path(tempfile.mkdtemp(prefix="faults-clock-")) / "clock"
    hand.write_text("+0s\n")
    for place in (hand.parent, hand):
        place.chmod(0o755)  # for the account that PostgreSQL runs under
    server = OwnPostgres(_clock(hand))
    try:
        with staged(folder, server.new_database("clock")) as stage:
            told = _turn_clock(stage, lambda seconds: hand.write_text(f"{seconds:+d}s\n"))
            with stage.database.read() as session:
                started = [moment for moment in session.scalars(select(Submission.started_at)) if moment]
            told["clock_moved_s"] = round((max(started) - min(started)).total_seconds())
            return told
    finally:
        server.close()
        shutil.rmtree(hand.parent)


def _turn_clock(stage: Stage, turn: Callable[[int], object]) -> dict[str, Any]:
    base, token = stage.serve(), stage.captain("ada")
    right: dict[int, int] = {}
    stopping = Stopping()
    threads = start_workers(stage.database, stage.storage, stopping, jobs=2, lease_s=float(LEASE_S))
    for number in range(30):
        if number in (8, 16, 24):
            turn({8: 3600, 16: -3600, 24: 0}[number])
        answer = post_run(base, token, run_text(number))
        assert answer is not None and answer.status_code == 201, answer and answer.text
        right[int(answer.json()["id"])] = number
        until(lambda: _unfinished(stage) < 4)
    waited = until(lambda: not _unfinished(stage), 2 * 3600)
    stopping.wait_for(threads)
    return {"jumps_s": [3600, -7200, 3600], "until_scored_s": round(waited), **_reckoning(stage, right)}


def _clock(hand: Path) -> dict[str, str]:
    """The environment of a process whose clock goes as a file says; how long it waits is left as it is."""
    if FAKETIME is None:
        raise RuntimeError("libfaketime is not installed (Debian: faketime)")
    told = {"FAKETIME_TIMESTAMP_FILE": str(hand), "FAKETIME_NO_CACHE": "1"}
    return {"LD_PRELOAD": str(FAKETIME), "DONT_FAKE_MONOTONIC": "1", "TZ": "UTC", **told}


def canary_labels(folder: Path) -> dict[str, Any]:
    """Labels that nobody may see, looked for in all that participants are shown, in the log, in mails and exports."""
    return _look_for_canaries("canary_labels", folder, lambda _: None)


def canary_labels_on_postgresql(folder: Path) -> dict[str, Any]:
    """The same on PostgreSQL."""
    with _postgres(durable=False) as server:
        return _look_for_canaries("canary_labels_on_postgresql", folder, server.new_database)


def _look_for_canaries(name: str, folder: Path, new_database: Callable[[str], str | None]) -> dict[str, Any]:
    """Damaged files in batches, each on a platform of its own and kept when it is done, until there are enough.

    Runs that get better come with the first batch of every 5,000. Nobody pulls the plug here, so that nothing waits for
    the disk.
    """
    told: dict[str, Any] = _done().get(name, {"bad_files": 0})
    while (before := told["bad_files"]) < BAD_FILES:
        begun, many = time.monotonic(), min(BATCH, BAD_FILES - before)
        place = folder / str(before)
        place.mkdir()
        rising = 0 if before % RISING_EVERY else canaries.RISING
        with mock.patch.object(database, "LASTING", "OFF"):
            found = canaries.looked_for(
                place, new_database(f"canaries_{before}"), bad_files=many, rising=rising, seed=before
            )
        told = canaries.added(told, found) if before else found
        seconds = round(time.monotonic() - begun) + told.get("took_s", 0)
        told |= {SIZED: told["bad_files"] / 10_000, "took_s": seconds}
        _keep(name, told)
        shutil.rmtree(place)
    return told


PARTS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "servers_on_sqlite": servers_on_sqlite,
    "servers_on_postgresql": servers_on_postgresql,
    "workers_on_postgresql": workers_on_postgresql,
    "database_restarted": database_restarted,
    "clock_jumps": clock_jumps,
    "clock_on_postgresql": clock_on_postgresql,
    "disk_full": disk_full,
    "midnight": midnight,
    "workers_on_sqlite": workers_on_sqlite,
    "everything_at_once_on_sqlite": everything_at_once_on_sqlite,
    "everything_at_once_on_postgresql": everything_at_once_on_postgresql,
    "canary_labels": canary_labels,
    "canary_labels_on_postgresql": canary_labels_on_postgresql,
}
SIZED_PARTS = (
    workers_on_sqlite,
    workers_on_postgresql,
    servers_on_sqlite,
    servers_on_postgresql,
    everything_at_once_on_sqlite,
    everything_at_once_on_postgresql,
    canary_labels,
    canary_labels_on_postgresql,
)
