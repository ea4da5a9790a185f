"""`fieldmark review`: check answers, the least certain first."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command("review", epilog="Example: `fieldmark review answers/ --port 8001`")(review)


def review(
    answers: Annotated[
        Path, typer.Argument(help="The folder of answers of `identify --out` or `check --labels --out`.")
    ],
    share: Annotated[float, typer.Option(help="The share of the finished list that must be correct.")] = 0.95,
    risk: Annotated[float, typer.Option(help="The risk of stopping although the list is not correct enough.")] = 0.05,
    one_in: Annotated[int, typer.Option(min=1, help="One in this many items is drawn at random.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the random items; keep it during a review.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Write the finished list as CSV to this file, and exit.")] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help="Write the list into the folder (csv, parquet, darwin-core or camtrap), and exit."
        ),
    ] = None,
    time_zone: Annotated[str, typer.Option(help="For camtrap: the time zone of the cameras, such as +01:00.")] = "",
    status: Annotated[bool, typer.Option("--status", help="Print the progress of the review, and exit.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --status: as JSON.")] = False,
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on.")] = 8001,
) -> None:
    """Review predictions in the browser: the least certain first, one in ten at random.

    Answers are saved to the folder at once; run the same command again to continue.
    """
    from fieldmark.errors import MisuseError
    from fieldmark.identification.review.session import Review
    from fieldmark.registry import require

    if not (0 < share < 1 and 0 < risk < 1):
        raise MisuseError("--share and --risk are numbers between 0 and 1, such as 0.95 and 0.05.")
    opened = Review(answers, share=share, risk=risk, one_in=one_in, seed=seed)
    if out is not None:
        print(f"{len(opened.answers):,} entries in {opened.write_finished(out)}")
    if form is not None:
        _write_form(answers, form, time_zone)
    if status or as_json:
        _print_status(opened, as_json=as_json)
    if out is not None or form is not None or status or as_json:
        return
    for module in ("fastapi", "uvicorn", "jinja2"):
        require(module, "The review page")
    from fieldmark.web.local_app import make_local_app, run_local_app
    from fieldmark.web.review_pages import router

    app = make_local_app(router, "/review", host=host)
    app.state.review = opened
    here = "127.0.0.1" if host == "0.0.0.0" else host
    print(f"Review: http://{here}:{port}/review (stop with Ctrl-C; everything is kept in {answers})", flush=True)
    run_local_app(app, host=host, port=port)


def _write_form(folder: Path, form: str, zone: str) -> None:
    from fieldmark.cli.batch import BatchForms, write_forms
    from fieldmark.errors import MisuseError, did_you_mean
    from fieldmark.identification.review.answer_tables import FILES

    if form not in FILES:
        raise MisuseError(f"There is no format called {form!r}. {did_you_mean(form, FILES)}")
    print(f"written: {write_forms(folder, BatchForms([form], zone=zone))[0]}")


def _print_status(opened: object, *, as_json: bool) -> None:
    from dataclasses import asdict

    from fieldmark.cli.output import print_json
    from fieldmark.identification.review.session import Review

    assert isinstance(opened, Review)
    progress = opened.progress()
    if as_json:
        print_json(asdict(progress))
        return
    print(f"{progress.looked:,} of {progress.entries:,} reviewed, {progress.corrected:,} corrected")
    if progress.audit is not None:
        audit = progress.audit
        print(
            f"at least {100 * max(0.0, audit.share_right):.1f} % of the list are right, by {audit.drawn:,} drawn at "
            f"random that stand for {audit.unreached:,} ({audit.wrong:,} of them were wrong)"
        )
    print("The list is correct enough." if progress.enough else "The review goes on.")
