"""A PostgreSQL server in a temporary folder, for studies and tests; it ends with the process that started it."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import tempfile
from pathlib import Path

from sqlalchemy import text

from fieldmark_challenge.records.database import Database

# For what need not survive a power cut.
WITHOUT_WAITING = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")

# Waits for the end of its input, which comes when the process at the other end closes it or dies, by whatever signal.
# A server that was just being started may miss the first stop, and its files may come back after the first removal.
WATCHDOG = """
folder=$1; shift
read -r never
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    "$@" > /dev/null 2>&1
    rm -rf "$folder" 2> /dev/null
    [ -e "$folder" ] || break
    sleep 0.5
done
"""


def postgres_binaries() -> Path | None:
    """The folder with `initdb` and `pg_ctl` of the newest PostgreSQL on this machine."""
    versions = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    found = sorted(versions, key=lambda path: int(path.parts[-3]) if path.parts[-3].isdigit() else 0)
    return found[-1].parent if found else None


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class OwnPostgres:
    """A PostgreSQL server of one's own, which ends with `close` or when this process dies, even by SIGKILL.

    Args:
        environment: What its processes find in their environment besides.
        durable: Whether it waits for the disk, as it does unless told otherwise.
    """

    def __init__(self, environment: dict[str, str] | None = None, *, durable: bool = True) -> None:
        binaries = postgres_binaries()
        if binaries is None:
            raise RuntimeError("there is no PostgreSQL under /usr/lib/postgresql")
        self.environment, self.durable, self.binaries = environment or {}, durable, binaries
        self.folder = Path(tempfile.mkdtemp(prefix="fieldmark-pg-"))
        self.run_as: list[str] = []
        if os.geteuid() == 0:  # it refuses to run as root
            self.run_as = ["runuser", "-u", "postgres", "--"]
            owner = pwd.getpwnam("postgres")
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
        self.data, self.port = self.folder / "data", free_port()
        self._watchdog = self._watched()
        try:
            syncing = [] if durable else ["--no-sync"]
            self._call("initdb", "-D", str(self.data), "-A", "trust", "-U", "postgres", *syncing)
            self.control("start")
        except BaseException:
            self.close()
            raise
        self.url = f"postgresql+psycopg://postgres@127.0.0.1:{self.port}"

    def control(self, what: str, mode: str = "fast") -> None:
        """Starts, stops or restarts it."""
        settings = ("listen_addresses=127.0.0.1", "max_connections=150", *(() if self.durable else WITHOUT_WAITING))
        options = " ".join([f"-p {self.port} -k {self.folder}", *(f"-c {setting}" for setting in settings)])
        given = [] if what == "stop" else ["-o", options, "-l", str(self.folder / "log")]
        self._call("pg_ctl", "-D", str(self.data), "-w", "-t", "120", "-m", mode, *given, what)

    def new_database(self, name: str) -> str:
        """The address of an empty database."""
        database = Database(f"{self.url}/postgres")
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        database.close()
        return f"{self.url}/{name}"

    def close(self) -> None:
        """Ends it and removes its files."""
        self._watchdog.communicate()

    def _watched(self) -> subprocess.Popen[bytes]:
        # In a session of its own, so that an interrupt at the terminal does not end it before the server.
        stop = [*self.run_as, str(self.binaries / "pg_ctl"), "-D", str(self.data), "-w", "-m", "immediate", "stop"]
        command = ["sh", "-c", WATCHDOG, "watchdog", str(self.folder), *stop]
        return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, cwd="/")

    def _call(self, program: str, *arguments: str) -> None:
        command = [*self.run_as, str(self.binaries / program), *arguments]
        told = {**os.environ, **(self.environment if program == "pg_ctl" else {})}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", env=told)
