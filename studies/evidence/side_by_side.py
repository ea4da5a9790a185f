"""Do the processes of the shipped units get along under one account, while people and hostile programs are at work?

A server, two workers that run programs and three that score are started as the units start them, all by one account
that is not root, on one SQLite platform with two challenges that ask for programs and one that asks for runs. Teams
send honest and hostile programs and runs through the API, each the next one when the last is settled. Counted is what
became of all of them. `FIELDMARK_LOAD_SECONDS` says for how long (600 if nothing is said).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from fieldmark.work.blocks import LocalExecutor
from fieldmark_challenge.people import accounts
from fieldmark_challenge.records.code_schema import Program
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import PartScore, Submission
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge_tests.own_postgres import free_port
from fieldmark_challenge_tests.platform import Platform, open_platform, run_text
from fieldmark_challenge_tests.programs.hosted import Hosted, host_snakes
from fieldmark_challenge_tests.programs.programs import archive_of
from fieldmark_challenge_tests.units import command_of
from fieldmark_challenge_tests.unprivileged import account_folder, as_account, environment, hand_over
from fieldmark_worlds.layouts import snakeclef
from fieldmark_worlds.snakes.snake_nature import SnakeSettings
from studies.evidence.stage import DECLARED, until

SECONDS = float(os.environ.get("FIELDMARK_LOAD_SECONDS", "600"))
UNITS = {"web": 1, "programs@": 2, "worker@": 3}
MANY = {"daily_limit": 100_000, "total_limit": 100_000}
SETTLED = ("scored", "refused", "failed")
HOSTILE = {
    "forks": "import os\nwhile True:\n    os.fork()\n",
    "memory": (
        "import os\nfor _ in range(8):\n    if os.fork() == 0:\n"
        "        held = [bytearray(b'1' * (1 << 20)) for _ in range(128)]\n        os.wait()\nos.wait()\nos._exit(4)\n"
    ),
    "time": "import time\ntime.sleep(600)\n",
    "disk": "open('/tmp/full', 'wb').write(b'0' * (64 << 20))\n",
}


@dataclass
class Load:
    """What was sent and answered, from all threads."""

    sent: dict[int, str] = field(default_factory=dict)
    statuses: Counter[str] = field(default_factory=Counter)


def run() -> dict[str, Any]:
    """Starts everything, and counts."""
    with account_folder() as folder:
        platform, codes = _platform(folder)
        hand_over(folder)
        port, load, stop = free_port(), Load(), threading.Event()
        with _units(folder, port) as started:
            until(partial(_answers, port))
            people = [_person(platform, port, load, stop, slug, codes, n) for slug in _slugs(codes) for n in range(2)]
            for person in people:
                person.start()
            begun, alive = time.monotonic(), True
            while time.monotonic() - begun < SECONDS:
                time.sleep(1)
                alive = alive and all(one.poll() is None for one in started)
                load.statuses[f"page {_status(port)}"] += 1
            stop.set()
            for person in people:
                person.join()
            until(lambda: not _waiting(platform, load))
        ended = [one.returncode for one in started]
        return {"simulated": True, "seconds": SECONDS, "units": UNITS, "alive": alive, "ended": ended} | _counted(
            platform, load, folder
        )


def _slugs(codes: Sequence[Hosted]) -> list[str]:
    return ["tiny", *(one.challenge.slug for one in codes)]


def _platform(folder: Path) -> tuple[Platform, list[Hosted]]:
    """Three challenges, two of which ask for programs."""
    database = Database(f"sqlite:///{folder / 'platform.sqlite'}")
    database.migrate()
    (folder / "files").mkdir()
    platform = open_platform(database, Storage(folder / "files"), folder)
    platform.set_phase(**MANY)
    extent = snakeclef.SnakeExtent(SnakeSettings(8, 4, continents=2, countries=4, zipf=0.3), (56, 24, 24))
    world = folder / "world"
    snakeclef.write_extent(world, extent=extent, size="little", seed=2, executor=LocalExecutor(1))
    codes = [host_snakes(platform, world, slug, **MANY) for slug in ("snakes", "vipers")]
    for one in codes:
        one.set_rules(seconds=20, memory_mb=256)
    return platform, codes


@contextmanager
def _units(folder: Path, port: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes of the units; told to stop in the end."""
    address = {"PUBLIC_URL": f"http://127.0.0.1:{port}"}
    commands = [
        command_of(f"fieldmark-{name}.service", folder, **address) for name, n in UNITS.items() for _ in range(n)
    ]
    commands[0] += ["--port", str(port)]
    started = []
    with (folder / "log").open("wb") as log:
        for command in commands:
            whole = as_account(command, places=[folder])
            started.append(subprocess.Popen(whole, env=environment(), cwd="/", stdout=log, stderr=log))
    try:
        yield started
    finally:
        for one in started:
            one.send_signal(signal.SIGTERM)
        for one in started:
            one.wait(180)


def _person(
    platform: Platform,
    port: int,
    load: Load,
    stop: threading.Event,
    slug: str,
    codes: Sequence[Hosted],
    number: int,
) -> threading.Thread:
    """Somebody with a team, who sends one after the other until it is enough."""
    asks = {one.challenge.slug: one for one in codes}
    where = asks[slug].challenge if slug in asks else platform.challenge
    token = accounts.make_token(platform.database, platform.captain(f"{slug}-{number}", where), "all", accounts.SCOPES)
    kinds = ["honest", *HOSTILE] if slug in asks else ["honest"]

    def send() -> None:
        turn = 0
        while not stop.is_set():
            kind = kinds[(turn + number) % len(kinds)]
            turn += 1
            name, content = _content(asks.get(slug), kind, turn)
            url = f"http://127.0.0.1:{port}/api/v1/challenges/{slug}/submissions"
            headers, files = {"authorization": f"Bearer {token}"}, {"run": (name, content)}
            try:
                answer = httpx.post(url, headers=headers, files=files, data=DECLARED, timeout=330)
            except httpx.HTTPError as error:
                load.statuses[type(error).__name__] += 1
                continue
            load.statuses[f"upload {answer.status_code}"] += 1
            if answer.status_code != 201:
                time.sleep(1)
                continue
            load.sent[answer.json()["id"]] = kind if slug in asks else "run"
            while not stop.is_set() and platform.submission(answer.json()["id"]).state not in SETTLED:
                time.sleep(0.2)

    return threading.Thread(target=send)


def _content(asks: Hosted | None, kind: str, turn: int) -> tuple[str, bytes]:
    """A file to send; each is another one, since the same one again is refused."""
    if asks is None:
        return "run.csv", run_text(right=turn % 61).encode()
    if kind == "honest":
        return "team.tar.gz", asks.archive(right=turn % 24)
    return "team.tar.gz", archive_of(f"# {turn}\n{HOSTILE[kind]}")


def _answers(port: int) -> bool:
    try:
        return _status(port) == 200
    except httpx.HTTPError:
        return False


def _status(port: int) -> int:
    return httpx.get(f"http://127.0.0.1:{port}/", timeout=60).status_code


def _waiting(platform: Platform, load: Load) -> int:
    with platform.database.read() as session:
        return session.query(Submission).filter(Submission.state.not_in(SETTLED)).count()


def _counted(platform: Platform, load: Load, folder: Path) -> dict[str, Any]:
    """What became of everything that was accepted, by kind."""
    became: dict[str, Counter[str]] = {}
    twice = attempts = 0
    with platform.database.read() as session:
        for number, kind in load.sent.items():
            found = session.get(Submission, number)
            became.setdefault(kind, Counter())[found.state if found else "lost"] += 1
            twice += session.query(PartScore).filter_by(submission_id=number).count() > 2
        attempts = sum(one.attempts > 1 for one in session.query(Program))
    platform.database.close()
    lines = (folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
    return {
        "accepted": len(load.sent),
        "became": {kind: dict(counts) for kind, counts in sorted(became.items())},
        "scored_twice": twice,
        "programs_tried_again": attempts,
        "statuses": dict(sorted(load.statuses.items())),
        "errors_logged": sum(_level(line) == "error" for line in lines),
    }


def _level(line: str) -> str:
    try:
        return str(json.loads(line).get("level", "")).lower()
    except (ValueError, AttributeError):
        return ""
