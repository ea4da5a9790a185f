"""`fieldmark worker`: scores submissions, on any number of machines."""

from __future__ import annotations

from typing import Annotated

import typer

from fieldmark.cli.serve import DEFAULT_FOLDER, DatabaseUrl, FilesUrl, Folder, RequireSandbox, ScoreMemory, ScoreSeconds


def add_to(app: typer.Typer) -> None:
    epilog = "Example: `fieldmark worker --database postgresql+psycopg://fieldmark@db/fieldmark --files s3://runs`"
    app.command("worker", epilog=epilog)(worker)


def worker(
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    jobs: Annotated[int, typer.Option(min=1, help="How many runs to score at once.")] = 1,
    lease: Annotated[float, typer.Option(min=1, help="Seconds after which a silent worker loses its claim.")] = 60,
    until_idle: Annotated[bool, typer.Option("--until-idle", help="Stop when no run waits.")] = False,
    require_sandbox: RequireSandbox = None,
    score_memory: ScoreMemory = 8192,
    score_seconds: ScoreSeconds = 900,
) -> None:
    """Score the submissions of a platform until stopped."""
    from fieldmark.foundation.registry import require

    for module in ("sqlalchemy", "alembic"):
        require(module, "A worker")
    from fieldmark.challenge.running import serving

    serving.log_to_terminal()
    with serving.open_platform(folder, database, files) as platform:
        safety = serving.Safety(require_sandbox, score_memory, score_seconds)
        serving.work(platform, jobs=jobs, lease_s=lease, until_idle=until_idle, safety=safety)
