"""`fieldmark adapt`: further steps on the stored predictions of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldmark.cli.options import Overwrite


def add_to(app: typer.Typer) -> None:
    app.command("adapt", epilog="Example: `fieldmark adapt runs/linear --step prior-em --out runs/linear-em`")(adapt)


def adapt(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    out: Annotated[Path | None, typer.Option(help="The folder to write; RUN-adapted if not given.")] = None,
    steps: Annotated[
        list[str] | None,
        typer.Option(
            "--step",
            help="A step, in order: prior-em, prior-map, prior-confusion, prior-online, month-prior, ... "
            "(`fieldmark list steps`). Settings: NAME:KEY=VALUE,... If none is named: prior-online in time order, else "
            "prior-em, or prior-map for more than 100 labels.",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(help="Predict again with the run's network in another mode: norm-online for finetune runs."),
    ] = "",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="With --method: a setting of the method.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="The release, if it has moved.")] = None,
    overwrite: Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scorecard as JSON.")] = False,
) -> None:
    """Adapt a run to shifted class frequencies or to the season, without refitting."""
    from fieldmark.cli.output import print_json, print_scorecards
    from fieldmark.errors import MisuseError
    from fieldmark.fitting.adaptation import PRIOR_FILE
    from fieldmark.fitting.adaptation import adapt as adapt_run
    from fieldmark.settings import parse_pairs

    folder = out or run.parent / f"{run.name}-adapted"
    if settings and not method:
        raise MisuseError("adapt takes --set with --method; settings of a step stand behind its name: NAME:KEY=VALUE.")
    given = parse_pairs(settings or [])
    adapted = adapt_run(run, folder, steps=steps or (), method=method, settings=given, data=data, overwrite=overwrite)
    if as_json:
        print_json(adapted.scorecard.to_json())
        return
    before = adapted.before.get("test") or adapted.before["val"]
    print_scorecards({run.name: before, folder.name: adapted.scorecard})
    if (folder / PRIOR_FILE).exists():
        print(f"estimated frequencies in {folder / PRIOR_FILE}")
    print(f"run in {folder}; differences with intervals: fieldmark compare {run} {folder}")
