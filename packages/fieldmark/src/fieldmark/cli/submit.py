"""`fieldmark submit`: a run, or a program, to a challenge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldmark.errors import MisuseError

if TYPE_CHECKING:
    from fieldmark.web.client import Client

# How long a declaration may be on the platform.
MOST_TOLD = 1000
NONE = "none"


def add_to(app: typer.Typer) -> None:
    epilog = "Example: `fieldmark submit http://127.0.0.1:8000/c/demo run.csv --title 'first try'`"
    app.command("submit", epilog=epilog)(submit)


def submit(
    challenge: Annotated[str, typer.Argument(help="The address of the challenge.")],
    run: Annotated[
        Path,
        typer.Argument(
            help="The run file, plain or gzip, or the folder of a run; or a program: an archive or folder with run.sh."
        ),
    ],
    token: Annotated[
        str, typer.Option(envvar="FIELDMARK_TOKEN", help="An API token with the scopes read and submit.")
    ] = "",
    title: Annotated[str, typer.Option(help="The title of the run.")] = "",
    method: Annotated[str, typer.Option(help="How it was made.")] = "",
    external: Annotated[
        str,
        typer.Option(help="External data used, or none; what run.json records is declared automatically."),
    ] = "",
    debug: Annotated[
        bool, typer.Option("--debug", help="Debug run of a program: on public items, without a score, not counted.")
    ] = False,
    wait: Annotated[bool, typer.Option(help="Wait until it is scored.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the submission as JSON.")] = False,
) -> None:
    """Submit a run or a program to a challenge, and print its score."""
    from fieldmark.cli.output import print_json
    from fieldmark.runs.provenance import recorded_external
    from fieldmark.web.client import Client

    client = Client.of(challenge, token)
    with _handed(run) as file:
        if debug:
            _try_out(client, file, wait, as_json)
            return
        external = declared_external(file, external)
        found = recorded_external(file) or ""
        sent = client.hand_in(file, title=title, method=method, external=external, found=found)
    if not as_json:
        print(f"declared as external data: {external or 'none'}")
        print(f"submission {sent['id']} accepted at {sent['accepted_at']}")
    if wait:
        sent = client.wait(sent["id"])
    if as_json:
        print_json(sent)
        return
    show_submission(sent)


def declared_external(file: Path, said: str) -> str:
    """What is declared of a run: what its `run.json` records, and what else was said; empty for none.

    Raises:
        MisuseError: When nothing is recorded, and nothing was said.
    """
    from fieldmark.runs.provenance import recorded_external

    if said.lower() == NONE:
        return ""
    recorded = recorded_external(file)
    if recorded is None and not said:
        raise MisuseError(
            f"{file} has no run.json beside it that records external data. Say which were used, pretrained weights "
            "included: --external 'ImageNet weights', or --external none."
        )
    told = "; ".join(dict.fromkeys(filter(None, (recorded, said))))
    return told if len(told) <= MOST_TOLD else f"{told[: MOST_TOLD - 1]}…"


@contextmanager
def _handed(run: Path) -> Iterator[Path]:
    """The file to send: a run, or a program, packed where it is a folder."""
    from fieldmark.runs.provenance import run_file
    from fieldmark.web.client import packed

    if run.is_dir() and (run / "run.sh").is_file():
        with packed(run) as archive:
            yield archive
    else:
        yield run_file(run) if run.is_dir() else run


def _try_out(client: Client, archive: Path, wait: bool, as_json: bool) -> None:
    """Has a program tried out, and prints what it said and what is wrong with its answers."""
    from fieldmark.cli.output import print_json
    from fieldmark.web.run_problems import in_lines

    tried = client.try_out(archive)
    if wait:
        tried = client.wait_for_debug(tried["id"])
    if as_json:
        print_json(tried)
    elif not wait:
        print(f"debug run {tried['id']} accepted at {tried['accepted_at']}")
    else:
        print((tried["output"] or "").rstrip() or "(it said nothing)")
        print(in_lines(f"{tried['state']}: {tried['reason']}", tried["problems"], "predictions"))
    if tried["state"] in ("refused", "failed"):
        raise typer.Exit(1)


def show_submission(sent: dict[str, Any]) -> None:
    """Prints where a submission stands, and its scores as boards show them: titles, and shares in percent."""
    from fieldmark.benchmarks.titles import metric_is_share, metric_title
    from fieldmark.cli.output import print_cautions, print_table, score_text
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
        print("shares in percent, as on the leaderboard")
