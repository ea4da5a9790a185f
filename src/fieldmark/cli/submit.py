"""`fieldmark submit`: a run to a challenge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
    from fieldmark.cli.printing import print_cautions, print_json, print_table, score_text
    from fieldmark.runs.provenance import run_file
    from fieldmark.scoring import scores_of

    client = Client.of(challenge, token)
    sent = client.hand_in(run_file(run) if run.is_dir() else run, title=title, method=method, external=external)
    if not as_json:
        print(f"submission {sent['id']} accepted at {sent['accepted_at']}")
    if wait:
        sent = client.wait(sent["id"])
    if as_json:
        print_json(sent)
        return
    print(sent["state"] if sent["reason"] == sent["state"] else f"{sent['state']}: {sent['reason']}")
    for part, metrics in sent["scores"].items():
        scores = scores_of(metrics)
        print_table([part, *metrics], [["", *(score_text(score, percent=False) for score in scores.values())]])
        print_cautions([scores])
