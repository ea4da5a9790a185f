"""`fieldmark export`: into the formats of others, one subcommand each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(
        help="Write a dataset in the format of others.",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        epilog="Example: `fieldmark export coco folder --data my-photos --out my-photos.json`",
    )
    group.callback()(_formats)  # keeps the name of the subcommand even while there is only one
    group.command("coco", epilog="Example: `fieldmark export coco folder --data my-photos --out my-photos.json`")(coco)
    app.add_typer(group, name="export")


def _formats() -> None:
    pass


def coco(
    name: Annotated[str, typer.Argument(metavar="DATASET", help="The dataset (`fieldmark list datasets`).")],
    data: Annotated[Path, typer.Option(help="The root of the release.")],
    out: Annotated[Path, typer.Option(help="The file to write.")],
    part: Annotated[str | None, typer.Option(help="One part of the release, such as train; all if not given.")] = None,
    subset: Annotated[str, typer.Option(help="The subset, where there are any (fungitastic: all, Mini, FewShot).")] = (
        "all"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Write a dataset, or a part of it, as COCO JSON: images, categories, labels, masks."""
    from dataclasses import asdict

    from fieldmark.cli.printing import print_json
    from fieldmark.datasets import open_dataset
    from fieldmark.exporting.coco import export_coco

    written = export_coco(open_dataset(name, data, subset), out, part=part)
    if as_json:
        print_json(asdict(written))
        return
    print(
        f"{written.images:,} images, {written.annotations:,} annotations ({written.masks:,} with masks), "
        f"{written.categories:,} categories in {out}"
    )
    if written.without_size:
        print(f"note: {written.without_size:,} photos cannot be opened, so that their width and height are left out")
