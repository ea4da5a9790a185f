"""`fieldmark ensemble`: the mean of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from fieldmark.cli import completion
from fieldmark.cli.options import Overwrite


def add_to(app: typer.Typer) -> None:
    app.command("ensemble", epilog="Example: `fieldmark ensemble runs/cnn runs/forest --out runs/both --mean logits`")(
        ensemble
    )


def ensemble(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN RUN...", help="Folders of runs, or run files from elsewhere.")
    ],
    out: Annotated[Path, typer.Option(help="The folder for the run.")],
    mean: Annotated[
        Literal["probabilities", "logits", "ranks"], typer.Option(help="What to average.")
    ] = "probabilities",
    weights: Annotated[
        str, typer.Option(help="equal, val (the mixture of lowest log loss there), or numbers: 0.5,0.3,0.2.")
    ] = "equal",
    data: Annotated[
        Path | None, typer.Option(help="The root of the release; that of the first run if not given.")
    ] = None,
    benchmark: Annotated[
        str | None,
        typer.Option(help="The benchmark; that of the first run if not given.", autocompletion=completion.benchmarks),
    ] = None,
    steps: Annotated[
        list[str] | None,
        typer.Option(
            "--step",
            autocompletion=completion.steps,
            help="A step fitted on val after the mean; those of the task if none is given.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scorecard as JSON.")] = False,
) -> None:
    """Average the predictions of several runs.

    The run declares what any of its members brought in, saw and learned from. For a model that answers new photos, fit
    the members together: `fit --method ensemble --set members=linear,knn,finetune`.
    """
    from fieldmark.cli.output import print_external_data, print_json, print_scorecards
    from fieldmark.fitting import ensemble as average

    made = average(
        runs,
        out,
        data=data,
        benchmark=benchmark,
        mean=mean,
        weights=weights,
        steps=steps or None,
        overwrite=overwrite,
    )
    card = made.scorecard
    if as_json:
        print_json(None if card is None else card.to_json())
        return
    shares = ", ".join(f"{run.name} {share:.2f}" for run, share in zip(runs, made.run.options["weights"], strict=True))
    print(f"note: The mean of {mean} of {len(runs)} runs, weights: {shares}.")
    for remark in made.run.remarks:
        print(f"note: {remark}")
    if card is not None:
        print_scorecards({"ensemble": card})
        print_external_data(card)
    print(f"run in {out}; compare it with its members: fieldmark compare {out} {' '.join(map(str, runs))}")
