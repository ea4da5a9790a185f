"""`fieldmark ablate`: what each modality is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldmark.cli.options import BenchmarkName, MethodSettings, ReleaseOrPhotos


def add_to(app: typer.Typer) -> None:
    app.command(
        "ablate",
        epilog="Example: `fieldmark ablate fungitastic-mini/closed --data FungiTastic "
        "--modalities photo,habitat+substrate,date,place`",
    )(ablate)


def ablate(
    benchmark: BenchmarkName,
    data: ReleaseOrPhotos,
    modalities: Annotated[
        str,
        typer.Option(
            metavar="NAME,NAME+NAME,...",
            help="The modalities, the main one first; inputs of one are joined by +. All if not given.",
        ),
    ] = "",
    method: Annotated[str, typer.Option(help="How they are combined: fusion, joint, tabular or linear.")] = "fusion",
    out: Annotated[
        Path | None, typer.Option(help="The folder for all runs; runs/BENCHMARK-ablation if not given.")
    ] = None,
    settings: MethodSettings = None,
    steps: Annotated[
        list[str] | None, typer.Option("--step", help="A step after the method, in order, as for `fit`.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="The metric; the primary one if not given.")] = None,
    split: Annotated[
        Path | None, typer.Option(help="A split file (`fieldmark split`) in place of the benchmark's own split.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The random seed.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Repeat runs that already exist.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the ablation as JSON.")] = False,
) -> None:
    """Measure what each modality contributes: alone, left out, and all together."""
    from fieldmark.cli.output import print_json, print_table
    from fieldmark.settings import parse_pairs
    from fieldmark.suites.ablations import ablate as ablate_modalities

    folder = out or Path("runs", f"{benchmark.replace('/', '-')}-ablation")
    result = ablate_modalities(
        benchmark,
        data,
        folder,
        modalities=[name.strip() for name in modalities.split(",")] if modalities.strip() else (),
        method=method,
        settings=parse_pairs(settings or []),
        steps=steps or None,
        metric=metric,
        seed=seed,
        split=split,
        overwrite=overwrite,
    )
    if as_json:
        print_json(result.to_json())
        return
    rows = result.table()
    print_table(list(rows[0]), [list(row.values()) for row in rows])
    simulated = ", simulated data" if result.simulated else ""
    print(f"{method} on {result.split} of {result.benchmark}: {result.units} independent units{simulated}")
    print("intervals of differences are paired over units")
    print(f"runs in {folder}; next: fieldmark report {folder}")
