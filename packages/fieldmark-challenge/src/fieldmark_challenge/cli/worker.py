"""`fieldmark worker`: scores submissions, on any number of machines."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from fieldmark_challenge.cli.serve import (
    DEFAULT_FOLDER,
    DatabaseUrl,
    FilesUrl,
    Folder,
    Grace,
    LogLines,
    RequireSandbox,
    ScoreMemory,
    ScoreSeconds,
)

if TYPE_CHECKING:
    from fieldmark_challenge.records.database import Database


class WorkLane(StrEnum):
    """The two queues: runs wait to be scored, programs to be run."""

    score = "score"
    code = "code"


def add_to(app: typer.Typer) -> None:
    epilog = "Example: `fieldmark worker --database postgresql+psycopg://fieldmark@db/fieldmark --files s3://runs`"
    app.command("worker", epilog=epilog)(worker)


def worker(
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    jobs: Annotated[int, typer.Option(min=1, help="The number of jobs in parallel.")] = 1,
    lane: Annotated[
        WorkLane, typer.Option(help="What to do: score runs, or run programs of participants, which takes long.")
    ] = WorkLane.score,
    podman: Annotated[str | None, typer.Option(help="Run programs with Podman and this image, not bubblewrap.")] = None,
    lease: Annotated[
        float, typer.Option(min=1, max=600, help="Seconds without a heartbeat after which a worker loses its job.")
    ] = 60,
    until_idle: Annotated[bool, typer.Option("--until-idle", help="Stop when the queue is empty.")] = False,
    require_sandbox: RequireSandbox = None,
    score_memory: ScoreMemory = 8192,
    score_seconds: ScoreSeconds = 900,
    log_format: LogLines = "text",
    grace: Grace = 30,
    check: Annotated[
        bool, typer.Option("--check", help="Only check whether a worker on this machine is alive.")
    ] = False,
) -> None:
    """Score submissions, or run submitted programs, until stopped."""
    from fieldmark.registry import require

    for module in ("sqlalchemy", "alembic"):
        require(module, "A worker")
    from fieldmark_challenge.operations.log_lines import log_to_terminal
    from fieldmark_challenge.site import server

    log_to_terminal(log_format)
    with server.open_platform(folder, database, files) as platform:
        if check:
            _check(platform.database, lane)
            return
        if lane is WorkLane.code:
            server.run_programs(platform, jobs=jobs, lease_s=lease, until_idle=until_idle, podman=podman, grace_s=grace)
            return
        safety = server.Safety(require_sandbox, score_memory, score_seconds)
        server.work(platform, jobs=jobs, lease_s=lease, until_idle=until_idle, safety=safety, grace_s=grace)


def _check(database: Database, lane: WorkLane) -> None:
    """Says which workers of this machine and lane were heard of lately; without any, exit code 1."""
    import socket

    from fieldmark_challenge.operations import heartbeats

    here = [name for name in heartbeats.alive(database, lane.value) if name.startswith(f"{socket.gethostname()}:")]
    which = {WorkLane.score: "worker", WorkLane.code: "worker that runs programs"}[lane]
    print(f"alive: {', '.join(here)}" if here else f"no {which} on this machine sent a recent heartbeat")
    if not here:
        raise typer.Exit(1)
