"""`fieldmark cite`: what to cite for a dataset or a benchmark."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fieldmark.cli import completion


def add_to(app: typer.Typer) -> None:
    app.command("cite", epilog="Example: `fieldmark cite fungitastic/closed semi-inat-2021 > references.bib`")(cite)


def cite(
    names: Annotated[
        list[str],
        typer.Argument(help="Datasets or benchmarks (`fieldmark list datasets`).", autocompletion=completion.citable),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: the entries by key, for each name.")] = False,
) -> None:
    """Print BibTeX for datasets or benchmarks.

    Exit code 1 where nothing is known for any of them.
    """
    from fieldmark.cli.output import print_json
    from fieldmark.releases.facts import citations_of

    cited = citations_of(names)
    if as_json:
        print_json(cited)
    elif once := {key: entry for entries in cited.values() for key, entry in entries.items()}:
        print("\n\n".join(once.values()))
    for name, entries in cited.items():
        if not entries:
            print(f"{name}: no paper to cite is known", file=sys.stderr)
    if not any(cited.values()):
        raise typer.Exit(1)
