"""A platform of several real processes to do harm to: PostgreSQL of our own, servers, workers, and people."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from fieldmark_challenge.lifecycle.creation import NewChallenge, create_challenge, material_of_files
from fieldmark_challenge.people import accounts, teams
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, User
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge_tests.own_postgres import free_port

MAIN = [sys.executable, "-c", "from fieldmark.cli.main import main; main()"]
PASSWORD = "correct horse battery"
ITEMS, LABELS = 60, "abc"
PATIENCE_S = 600.0


def truth_text() -> str:
    """Sixty items in thirty units."""
    rows = [f"i{number},{LABELS[number % 3]},u{number // 2}" for number in range(ITEMS)]
    return "\n".join(["id,label,unit", *rows]) + "\n"


def run_text(right: int) -> str:
    """A run with the first so many items right."""
    answers = [LABELS[(number if number < right else number + 1) % 3] for number in range(ITEMS)]
    return "id,predicted\n" + "".join(f"i{number},{label}\n" for number, label in enumerate(answers))


def until(is_so: Callable[[], object], seconds: float = PATIENCE_S) -> float:
    """Waits; how long it took."""
    begun = time.monotonic()
    while not is_so():
        if time.monotonic() - begun > seconds:
            raise TimeoutError(f"not so after {seconds:g} seconds")
        time.sleep(0.1)
    return time.monotonic() - begun


@dataclass
class Stage:
    """A platform with one challenge, and the processes that were started on it."""

    url: str
    files: Path
    folder: Path
    database: Database
    storage: Storage
    admin: User
    challenge: Challenge
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    servers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def place(self) -> list[str]:
        """The options that lead a command here."""
        return ["--database", self.url, "--files", str(self.files)]

    def start(self, *command: str, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Starts a command of ours, which says what it has to say in `log`."""
        with (self.folder / "log").open("ab") as sink:
            process = subprocess.Popen(
                [*MAIN, *command, *self.place], stdout=sink, stderr=sink, env={**os.environ, **(environment or {})}
            )
        self.processes.append(process)
        return process

    def serve(self, *options: str, environment: dict[str, str] | None = None) -> str:
        """Starts a server; its address, once it answers."""
        port = free_port()
        plain = ["--workers", "0", "--no-demo", "--no-identify", "--folder", str(self.folder / "unused")]
        process = self.start("serve", "--port", str(port), *plain, *options, environment=environment)
        base = f"http://127.0.0.1:{port}"
        until(lambda: process.poll() is not None or status_of(f"{base}/healthz") == 200)
        if process.poll() is not None:
            raise RuntimeError((self.folder / "log").read_text()[-1000:])
        self.servers[base] = process
        return base

    def kill_server(self, base: str) -> None:
        """Ends a server without a warning."""
        process = self.servers.pop(base)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def captain(self, name: str) -> str:
        """Somebody with a team of their own; the secret of their token."""
        user = accounts.register(self.database, name, f"{name.replace(' ', '.')}@example.org", PASSWORD)
        teams.accept_rules(self.database, user, self.challenge)
        teams.make_team(self.database, user, self.challenge, f"team {name}")
        return accounts.make_token(self.database, user, "shell", ["read", "submit"])

    def close(self) -> None:
        """Ends everything that was started."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
        self.database.close()


@contextmanager
def staged(
    folder: Path, url: str | None = None, *, daily_limit: int = 1000, truth: str | None = None
) -> Iterator[Stage]:
    """A platform in a folder, on SQLite if no other database is named.

    Args:
        folder: Where its files lie.
        url: The database.
        daily_limit: How many runs a team may hand in each day.
        truth: Another truth than that of sixty items.
    """
    folder.mkdir(parents=True, exist_ok=True)
    url = url or f"sqlite:///{folder / 'platform.sqlite'}"
    database, storage = Database(url), Storage(folder / "files")
    database.migrate()
    admin = accounts.register(database, "admin", "admin@example.org", PASSWORD, role="admin")
    (folder / "truth.csv").write_text(truth or truth_text())
    with material_of_files("folder", folder / "truth.csv", simulated=True) as material:
        new = NewChallenge("tiny", "folder", public_share=0.5, seed=0, daily_limit=daily_limit, total_limit=1000)
        challenge = create_challenge(database, storage, admin, new, material)
    stage = Stage(url, folder / "files", folder, database, storage, admin, challenge)
    try:
        yield stage
    finally:
        stage.close()


def status_of(address: str) -> int:
    """The status of a page; 0 where nobody answers."""
    try:
        return httpx.get(address, timeout=30).status_code
    except httpx.TransportError:
        return 0


API = "/api/v1/challenges/tiny"
DECLARED = {"external": "no"}  # without which no run is taken
# What somebody may ask, by a word for it: how, and where.
ASKED = {
    "board": ("GET", f"{API}/board"),
    "submissions": ("GET", f"{API}/submissions"),
    "quota": ("GET", f"{API}/quota"),
    "page": ("GET", "/c/tiny"),
    "export": ("GET", "/api/v1/me/export"),
}


def ask(base: str, token: str, what: str) -> httpx.Response | None:
    """Asks something; None where the connection broke."""
    how, where = ASKED[what]
    try:
        return httpx.request(how, f"{base}{where}", headers={"authorization": f"Bearer {token}"}, timeout=120)
    except httpx.TransportError:
        return None


def post_in_parts(base: str, token: str, content: str) -> httpx.Response | None:
    """Hands a run in as an upload of one part, and finishes it twice over; None where the connection broke."""
    raw, headers = content.encode(), {"authorization": f"Bearer {token}"}
    about = {"size": len(raw), "sha256": hashlib.sha256(raw).hexdigest(), "filename": "run.csv"}
    try:
        with httpx.Client(base_url=f"{base}{API}/uploads", headers=headers, timeout=120) as client:
            begun = client.post(f"{base}{API}/uploads", data=about)  # without a slash at the end
            if begun.status_code != 201:
                return begun
            where = f"/{begun.json()['id']}"
            sent = client.patch(where, content=raw, headers={"upload-offset": "0"})
            if sent.status_code != 204:
                return sent
            first, second = (client.post(f"{where}/finish", data=DECLARED) for _ in range(2))
            if second.status_code == 201 and first.json()["id"] != second.json()["id"]:
                raise RuntimeError("one upload has become two submissions")
            return first
    except httpx.TransportError:
        return None


def post_run(base: str, token: str, content: str, **form: str) -> httpx.Response | None:
    """Hands a run in; None where the connection broke."""
    try:
        return httpx.post(
            f"{base}/api/v1/challenges/tiny/submissions",
            headers={"authorization": f"Bearer {token}"},
            files={"run": ("run.csv", content.encode())},
            data={**DECLARED, **form},
            timeout=120,
        )
    except httpx.TransportError:
        return None
