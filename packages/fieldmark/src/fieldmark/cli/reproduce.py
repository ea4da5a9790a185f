"""`fieldmark reproduce`: a table of a paper, made again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fieldmark.cli.options import Release


def add_to(app: typer.Typer) -> None:
    app.command(
        "reproduce",
        epilog="Example: `fieldmark reproduce fungitastic-table5 --data data/FungiTastic --only 'bioclip-*'`",
    )(reproduce)


def reproduce(
    table: Annotated[str, typer.Argument(help="The table (`fieldmark list tables`).")],
    data: Release,
    out: Annotated[Path | None, typer.Option(help="The folder to write or continue; reproduced/TABLE.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="CELL", help="A cell, or a pattern; all of them if not given.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting to override, where the method has it."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Reproduce a published table, cell by cell.

    Finished cells are not run again. A cell that fails is named with its reason, the others go on, and the exit code
    is 1 in the end.
    """
    from fieldmark.cli.output import print_json, print_table
    from fieldmark.settings import parse_pairs
    from fieldmark.suites.tables import TABLES
    from fieldmark.suites.tables import reproduce as run
    from fieldmark.suites.tables.pages import groups_of, notes_of, rows_of, to_json, write_pages

    folder = out or Path("reproduced", table)
    table_made = run(
        TABLES[table],
        data,
        folder,
        only=only or (),
        settings=parse_pairs(settings or []),
        announce=lambda line: print(line, file=sys.stderr, flush=True),
    )
    pages = write_pages(table_made, folder)
    if as_json:
        print_json(to_json(table_made))
    else:
        for group, outcomes in groups_of(table_made).items():
            print_table([group or table, *table_made.table.metrics], rows_of(table_made, outcomes))
            print()
        for note in notes_of(table_made):
            print(f"note: {note}")
        print("written to " + ", ".join(str(page) for page in pages))
    if table_made.failed:
        raise typer.Exit(1)
