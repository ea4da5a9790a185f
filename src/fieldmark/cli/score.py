"""`fieldmark score`: a run against the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command("score", epilog="Example: `fieldmark score folder my-run.csv --truth truth.csv --classes classes.csv`")(
        score
    )


def score(
    benchmark: Annotated[str, typer.Argument(help="The benchmark (`fieldmark list benchmarks`).")],
    run: Annotated[Path, typer.Argument(help="A run file, or the folder of a run.")],
    data: Annotated[Path | None, typer.Option(help="The release that holds the truth.")] = None,
    truth: Annotated[Path | None, typer.Option(help="Or the truth as CSV: id,label and optionally unit.")] = None,
    classes: Annotated[
        Path | None, typer.Option(help="With --truth: the classes as CSV: label. Else those of truth and run.")
    ] = None,
    media: Annotated[
        Path | None, typer.Option(help="With --truth of soundscapes: the recordings as CSV: MediaId,seconds,site.")
    ] = None,
    split: Annotated[str, typer.Option(help="With --data: the part that is scored.")] = "test",
    seed: Annotated[int | None, typer.Option(help="With --data: the seed of drawn parts, if not the run's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scorecard as JSON.")] = False,
) -> None:
    """Score a run exactly as the benchmark says, with intervals."""
    from fieldmark.cli.printing import print_external_data, print_json, print_scorecards
    from fieldmark.scoring import score as score_run

    card = score_run(benchmark, run, data=data, truth=truth, classes=classes, media=media, split=split, seed=seed)
    if as_json:
        print_json(card.to_json())
    else:
        print_scorecards({run.name: card})
        print_external_data(card)
