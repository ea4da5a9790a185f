"""`fieldmark truth`: the truth of a release as the small tables that a scorer needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldmark.cli.options import BenchmarkName, DrawSeed, Overwrite, Release


def add_to(app: typer.Typer) -> None:
    app.command("truth", epilog="Example: `fieldmark truth fungitastic/closed --data FungiTastic --out truth`")(truth)


def truth(
    benchmark: BenchmarkName,
    data: Release,
    out: Annotated[Path, typer.Option(help="The folder for truth.csv (truth.parquet for masks) and classes.csv.")],
    split: Annotated[str, typer.Option(help="The part whose truth is written.")] = "test",
    seed: DrawSeed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Write the labels of a release as truth.csv (masks: truth.parquet) and classes.csv."""
    from fieldmark.benchmarks import BENCHMARKS
    from fieldmark.views.score_run import write_truth

    written = write_truth(benchmark, data, out, split=split, seed=seed, overwrite=overwrite)
    where = BENCHMARKS[benchmark].task.answer.truth_file
    print(f"{written} items in {out / where}, classes in {out / 'classes.csv'}")
