"""`fieldmark world`: a simulated release."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fieldmark.cli import completion
from fieldmark.cli.options import Overwrite


class Size(StrEnum):
    """How large a world is."""

    TINY = "tiny"
    SMALL = "small"
    MEDIUM = "medium"


def add_to(app: typer.Typer) -> None:
    app.command("world", epilog="Example: `fieldmark world folder my-world --size tiny`")(world)


def world(
    name: Annotated[
        str,
        typer.Argument(
            help="The dataset whose layout the world has (`fieldmark list worlds`).", autocompletion=completion.worlds
        ),
    ],
    out: Annotated[Path, typer.Argument(help="The folder to write.")],
    size: Annotated[
        Size,
        typer.Option(
            help="About 300, 3,000 or 20,000 photos; 13 minutes, 2.5 or 18 hours of birds; 700, 10,000 or 80,000 places"
        ),
    ] = Size.TINY,
    release: Annotated[
        str | None,
        typer.Option(help="Which edition of the release, where there are several (fungitastic: 2024, 2025)."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The random seed.")] = 0,
    overwrite: Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Simulate a small dataset in the layout of a real one."""
    from fieldmark.by_name import world as make_world
    from fieldmark.cli.output import print_json, print_table

    mark = make_world(
        name, out, size=size.value, seed=seed, overwrite=overwrite, **({"release": release} if release else {})
    )
    if as_json:
        print_json(mark)
        return
    columns = list(dict.fromkeys(column for counts in mark["counts"].values() for column in counts))
    rows = [[part, *(f"{counts.get(column, 0):,}" for column in columns)] for part, counts in mark["counts"].items()]
    print_table(["", *(column.replace("_", " ") for column in columns)], rows)
    print(f"simulated release in {out}")
