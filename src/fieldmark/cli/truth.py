"""`fieldmark truth`: the truth of a release as the small tables that a scorer needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldmark.cli import completing


def add_to(app: typer.Typer) -> None:
    app.command("truth", epilog="Example: `fieldmark truth fungitastic/closed --data FungiTastic --out truth`")(truth)


def truth(
    benchmark: Annotated[
        str, typer.Argument(help="The benchmark (`fieldmark list benchmarks`).", autocompletion=completing.benchmarks)
    ],
    data: Annotated[Path, typer.Option(help="The root of the release.")],
    out: Annotated[Path, typer.Option(help="The folder for truth.csv (truth.parquet for masks) and classes.csv.")],
    split: Annotated[str, typer.Option(help="The part whose truth is written.")] = "test",
    seed: Annotated[int, typer.Option(min=0, help="The seed of parts that are drawn, where the release has none.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the folder if it exists.")] = False,
) -> None:
    """Write truth.csv (masks: truth.parquet) and classes.csv, with which `fieldmark score --truth` needs no release."""
    from fieldmark.benchmarks import BENCHMARKS
    from fieldmark.verbs.score_run import write_truth

    written = write_truth(benchmark, data, out, split=split, seed=seed, overwrite=overwrite)
    where = BENCHMARKS[benchmark].task.answer.truth_file
    print(f"{written} items in {out / where}, classes in {out / 'classes.csv'}")
