"""`fieldmark search`: what looks like this?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command("search", epilog="Example: `fieldmark search bird.jpg --in photos/`")(search)


def search(
    example: Annotated[Path, typer.Argument(help="A photo or a recording.")],
    places: Annotated[
        list[Path], typer.Option("--in", help="Where to search: a folder of photos or recordings, or of answers.")
    ],
    top: Annotated[int, typer.Option(min=1, help="The number of results.")] = 10,
    model: Annotated[
        Path | None, typer.Option(help="Use the features of this model instead of the default ones.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the features.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """Find the most similar photos or recordings."""
    from fieldmark.cli.output import print_json, print_table
    from fieldmark.errors import MisuseError
    from fieldmark.features.settings import FeatureSettings
    from fieldmark.identification.review.search import search_like
    from fieldmark.models import load_model
    from fieldmark.settings import configure, parse_pairs

    if model is not None and settings:
        raise MisuseError("--model has its own feature settings: leave --set out.")
    features = configure(parse_pairs(settings), FeatureSettings)[0] if settings else None
    if model is not None:
        features = load_model(model).features.get("")
        if features is None:
            raise MisuseError(f"The model in {model} does not look at features of photos or recordings.")
    found = search_like(example, places, top=top, settings=features)
    if as_json:
        print_json({"example": str(example), "found": [one.to_json() for one in found]})
    else:
        print_table(["file", "likeness"], [[str(one.file), f"{one.likeness:.3f}"] for one in found])
