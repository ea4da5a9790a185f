"""`fieldmark serve`: the challenge platform."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fieldmark.cli.options import IdentifyQuestions, IdentifySeconds

if TYPE_CHECKING:
    from fieldmark.web.identify_answers import PageAnswers

Folder = Annotated[Path, typer.Option(help="Where SQLite and the files are kept.")]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database",
        envvar="FIELDMARK_DATABASE",  # a command line can be read by everybody on the machine
        show_envvar=True,
        help="Another database: postgresql+psycopg://user:password@host/name.",
    ),
]
FilesUrl = Annotated[
    str | None,
    typer.Option("--files", envvar="FIELDMARK_FILES", help="Another place for files: a folder, or s3://bucket/path."),
]
DEFAULT_FOLDER = Path("fieldmark-challenges")
RequireSandbox = Annotated[
    bool | None,
    typer.Option(
        "--require-sandbox/--no-require-sandbox",
        envvar="FIELDMARK_REQUIRE_SANDBOX",
        help="Refuse to score outside bubblewrap; the default where it is installed.",
        show_default=False,
    ),
]
ScoreMemory = Annotated[
    int,
    typer.Option("--score-memory", envvar="FIELDMARK_SCORE_MEMORY", min=256, help="MiB for scoring a run."),
]
ScoreSeconds = Annotated[
    int, typer.Option("--score-seconds", envvar="FIELDMARK_SCORE_SECONDS", min=1, help="Seconds that it may take.")
]
CheckMemory = Annotated[
    int, typer.Option("--check-memory", envvar="FIELDMARK_CHECK_MEMORY", min=256, help="MiB for checking one.")
]
CheckSeconds = Annotated[
    int, typer.Option("--check-seconds", envvar="FIELDMARK_CHECK_SECONDS", min=1, help="Seconds that it may take.")
]

LogLines = Annotated[
    Literal["text", "json"],
    typer.Option(
        "--log-format",
        envvar="FIELDMARK_LOG_FORMAT",
        help="The log format: text or json.",
    ),
]
Grace = Annotated[
    float,
    typer.Option("--grace", envvar="FIELDMARK_GRACE", min=0, help="Seconds to finish running work at shutdown."),
]


def add_to(app: typer.Typer) -> None:
    app.command("serve", epilog="Example: `fieldmark serve --port 8000`")(serve)


def serve(
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on.")] = 8000,
    public_url: Annotated[
        str | None,
        typer.Option(envvar="FIELDMARK_PUBLIC_URL", help="The public address, such as https://challenge.example.org."),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=0, help="Scoring workers in this process; 0 if separate workers score.")
    ] = 1,
    code_workers: Annotated[
        int,
        typer.Option(min=0, help="Participants' programs to run in parallel on this machine; 0 if other machines do."),
    ] = 0,
    demo: Annotated[bool, typer.Option(help="Create the demo challenge on an empty platform.")] = True,
    identify: Annotated[bool, typer.Option(help="Serve the identify page.")] = True,
    model: Annotated[
        str | None,
        typer.Option(help="The model or run of the identify page; the pretrained models if not given."),
    ] = None,
    keep_in: Annotated[
        Path | None, typer.Option(help="A folder for photos that users agree to share, without place and date.")
    ] = None,
    trust_proxy: Annotated[str | None, typer.Option(help="The address of a trusted reverse proxy.")] = None,
    require_sandbox: RequireSandbox = None,
    score_memory: ScoreMemory = 8192,
    score_seconds: ScoreSeconds = 900,
    check_memory: CheckMemory = 4096,
    check_seconds: CheckSeconds = 300,
    identify_seconds: IdentifySeconds = 600,
    identify_questions: IdentifyQuestions = 60,
    log_format: LogLines = "text",
    access_log: Annotated[bool, typer.Option(envvar="FIELDMARK_ACCESS_LOG", help="Log every request.")] = False,
    metrics_token: Annotated[
        str | None,
        typer.Option(envvar="FIELDMARK_METRICS_TOKEN", show_envvar=True, help="Lets /metrics be read from elsewhere."),
    ] = None,
    grace: Grace = 30,
    settings: Annotated[
        Path | None,
        typer.Option(envvar="FIELDMARK_SETTINGS", help="A TOML file with the mail server and sign-in providers."),
    ] = None,
) -> None:
    """Start the challenge server: teams, quotas, hidden labels, leaderboards."""
    from fieldmark.registry import require

    for module in ("fastapi", "sqlalchemy", "alembic", "argon2", "uvicorn"):
        require(module, "The platform")
    from fieldmark_challenge.lifecycle import demonstration
    from fieldmark_challenge.operations.log_lines import log_to_terminal
    from fieldmark_challenge.records.server_address import checked_public_url, listening_address
    from fieldmark_challenge.site import server
    from fieldmark_challenge.site.settings_file import read_settings

    kept = read_settings(settings, os.environ)
    namer = _namer(model, keep_in, identify_seconds, identify_questions) if identify else None
    log_to_terminal(log_format)
    with server.open_platform(folder, database, files, new=True) as platform:
        link = server.first_admin(platform.database)
        if demo:
            demonstration.make_demo_once(platform.database, platform.storage, platform.account(None))
        base = checked_public_url(public_url) if public_url else listening_address(host, port)
        print(f"Fieldmark challenges: {base}", flush=True)
        if link:
            print(f"Set the password of the account 'admin' (works once, for a day): {base}/reset/{link}", flush=True)
        server.serve(
            platform,
            host=host,
            port=port,
            public_url=public_url,
            workers=workers,
            trusted_proxies=trust_proxy,
            namer=namer,
            code_workers=code_workers,
            safety=server.Safety(require_sandbox, score_memory, score_seconds, check_memory, check_seconds),
            operation=server.Operation(access_log, metrics_token, grace),
            settings=kept,
        )


def _namer(model: str | None, keep_in: Path | None, seconds: int, questions: int) -> PageAnswers | None:
    """What answers on the identify page; nothing where no model is named and none came along."""
    from fieldmark.errors import MissingExtraError
    from fieldmark.web.identify_answers import PageAnswers, PageLimits

    namer = PageAnswers(model, keep_in, PageLimits(seconds, questions))
    try:
        _ = namer.loaded  # a wrong folder is said at once
    except MissingExtraError as error:
        if model is not None:
            raise
        print(f"note: no identify page. {error}", flush=True)
        return None
    namer.warm()
    return namer
