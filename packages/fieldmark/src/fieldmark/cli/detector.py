"""`fieldmark detector`: a detector trained on boxes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldmark.cli.options import BenchmarkName, DrawSeed, Release


def add_to(app: typer.Typer) -> None:
    app.command("detector", epilog="Example: `fieldmark detector snakeclef-2020 --data SNAKES --out snakes.detector`")(
        detector
    )


def detector(
    benchmark: BenchmarkName,
    data: Release,
    out: Annotated[Path, typer.Option(help="The file to write, ending in .detector.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting: size, epochs, batch, lr, ...")
    ] = None,
    seed: DrawSeed = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a Faster R-CNN that crops photos (`fit --method detect --set finder=FILE`)."""
    from fieldmark.cli.output import print_json
    from fieldmark.fitting.detectors import detector as train
    from fieldmark.settings import parse_pairs

    made = train(benchmark, data, out, settings=parse_pairs(settings or []), seed=seed)
    if as_json:
        print_json({**vars(made), "file": str(made.file)})
        return
    print(f"learned from {made.photos:,} photos with boxes")
    if made.ap_50 is not None:
        print(f"average precision on {made.val_photos:,} photos of val at an overlap of 0.5: {made.ap_50:.3f}")
    print(f"detector in {made.file}; use it: fieldmark fit {benchmark} --method detect --set finder={made.file}")
