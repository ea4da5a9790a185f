"""`fieldmark encoder`: networks whose features serve for species that they have not seen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldmark.cli.options import DrawSeed, Overwrite


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(help="Train a network on your photos, to use as a backbone.", no_args_is_help=True)
    group.command("train", epilog="Example: `fieldmark encoder train birds snakes --out encoders/animals`")(train)
    app.add_typer(group, name="encoder")


def train(
    folders: Annotated[list[Path], typer.Argument(help="Folders of photos, with a folder for each class.")],
    out: Annotated[Path, typer.Option(help="The folder to write; pass it on as --set backbone=FOLDER.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting: network, size, epochs, relatives, ..."),
    ] = None,
    seed: DrawSeed = 0,
    overwrite: Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train an encoder on the photos of one or more folders; their own test parts are left out."""
    from fieldmark.cli.output import print_json
    from fieldmark.fitting.encoders import train_encoder
    from fieldmark.settings import parse_pairs

    made = train_encoder(folders, out, settings=parse_pairs(settings or []), seed=seed, overwrite=overwrite)
    if as_json:
        print_json({**vars(made), "folder": str(made.folder)})
        return
    for remark in made.remarks:
        print(f"note: {remark}")
    print(f"learned {made.classes:,} classes from {made.photos:,} photos")
    backbone = made.folder if "/" in str(made.folder) else f"./{made.folder}"
    print(
        f"encoder in {made.folder}; use it: fieldmark fit folder --data PHOTOS --method lda --set backbone={backbone}"
    )
