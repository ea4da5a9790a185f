"""`fieldmark tile`: photos of plots, answered by a model of single plants."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldmark.cli import completion


def add_to(app: typer.Typer) -> None:
    app.command("tile", epilog="Example: `fieldmark tile runs/plants quadrats/ --out run.csv`")(tile)


def tile(
    model: Annotated[Path, typer.Argument(help="The folder of a model of single plants, or of the run that made it.")],
    photos: Annotated[list[Path], typer.Argument(help="Photos of plots, or folders of such photos.")],
    out: Annotated[Path, typer.Option(help="The run file to write.")],
    benchmark: Annotated[
        str,
        typer.Option(help="The benchmark whose run file is written.", autocompletion=completion.benchmarks),
    ] = "plantclef-2025",
    tiles: Annotated[int, typer.Option(help="Tiles per side of a photo.")] = 4,
    overlap: Annotated[float, typer.Option(help="The overlap of neighboring tiles, as a share.")] = 0.0,
    at_least: Annotated[float, typer.Option(help="The lowest probability in any tile to list a species.")] = 0.5,
    most: Annotated[int, typer.Option(min=1, help="The maximum number of species per plot.")] = 20,
) -> None:
    """Predict the species of plot photos from tiles."""
    from fieldmark.benchmarks import BENCHMARKS
    from fieldmark.errors import MisuseError
    from fieldmark.identification.tiles import listed, tile_votes
    from fieldmark.models import find_photos, load_model
    from fieldmark.runs.label_lists import Lists

    run = BENCHMARKS[benchmark].task.run
    if not isinstance(run, Lists):
        raise MisuseError(f"Runs of {benchmark} are no lists of labels; tile writes those of plantclef-2024 and later.")
    votes = tile_votes(load_model(model), find_photos(photos), tiles=tiles, overlap=overlap)
    answers = listed(votes, at_least=at_least, most=most)
    run.write(out, answers)
    assert answers.decisions is not None  # `listed` decides
    print(f"{len(answers.items)} plots, {answers.decisions.lengths.mean():.1f} species each, in {out}")
