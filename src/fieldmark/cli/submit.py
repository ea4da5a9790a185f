"""`fieldmark submit`: a run to a challenge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def add_to(app: typer.Typer) -> None:
    epilog = "Example: `fieldmark submit http://127.0.0.1:8000/c/demo run.csv --title 'first try'`"
    app.command("submit", epilog=epilog)(submit)


def submit(
    challenge: Annotated[str, typer.Argument(help="The address of the challenge.")],
    run: Annotated[Path, typer.Argument(help="The run file, plain or gzip, or the folder of a run.")],
    token: Annotated[
        str, typer.Option(envvar="FIELDMARK_TOKEN", help="An API token with the scopes read and submit.")
    ] = "",
    title: Annotated[str, typer.Option(help="What to call the run.")] = "",
    method: Annotated[str, typer.Option(help="How it was made.")] = "",
    external: Annotated[str, typer.Option(help="Which external data were used, if any.")] = "",
    wait: Annotated[bool, typer.Option(help="Wait until it is scored.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the submission as JSON.")] = False,
) -> None:
    """Hand in a run, wait for its score, and print it."""
    from fieldmark.challenge.submitting.client import Client
    from fieldmark.cli.printing import print_json
    from fieldmark.runs.provenance import run_file

    client = Client.of(challenge, token)
    sent = client.hand_in(run_file(run) if run.is_dir() else run, title=title, method=method, external=external)
    if not as_json:
        print(f"submission {sent['id']} accepted at {sent['accepted_at']}")
    if wait:
        sent = client.wait(sent["id"])
    if as_json:
        print_json(sent)
        return
    show_submission(sent)


def show_submission(sent: dict[str, Any]) -> None:
    """Prints where a submission stands, and its scores as boards show them: titles, and shares in percent."""
    from fieldmark.benchmarks.titles import metric_is_share, metric_title
    from fieldmark.cli.printing import print_cautions, print_table, score_text
    from fieldmark.scoring import scores_of

    print(sent["state"] if sent["reason"] == sent["state"] else f"{sent['state']}: {sent['reason']}")
    for part, metrics in sent["scores"].items():
        scores = scores_of(metrics)
        rows = [
            [metric_title(name), score_text(score, percent=metric_is_share(name))] for name, score in scores.items()
        ]
        print_table([part, "score [95 % interval]"], rows)
        print_cautions([scores])
    if sent["scores"]:
        print("shares in percent, as on the board")
