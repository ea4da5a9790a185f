"""`fieldmark species-at`: what lives here?"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fieldmark.identification.species_at import PlaceChecklist


def add_to(app: typer.Typer) -> None:
    app.command(
        "species-at",
        # A place in the south or west has a minus in front, which is no option.
        context_settings={"ignore_unknown_options": True},
        epilog="Example: `fieldmark species-at 46.5 7.9 --model runs/forest --top 10`",
    )(species_at)


def species_at(
    lat: Annotated[float, typer.Argument(metavar="LAT", help="Latitude in degrees, negative in the south.")],
    lon: Annotated[float, typer.Argument(metavar="LON", help="Longitude in degrees, negative in the west.")],
    model: Annotated[Path, typer.Option(help="The folder of a model of places, or of the run that made it.")],
    date: Annotated[
        datetime.datetime | None, typer.Option(formats=["%Y-%m-%d"], help="The day, for models that read dates.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="The number of species.")] = 20,
    data: Annotated[Path | None, typer.Option(help="The release whose maps the model reads, if it has moved.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List the species a model expects at a place."""
    from fieldmark.cli.output import print_json
    from fieldmark.identification.species_at import species_at as ask

    answer = ask(lat, lon, model, date=None if date is None else date.date(), top=top, data=data)
    if as_json:
        print_json(answer.to_json())
    else:
        _print(answer)


def _print(answer: PlaceChecklist) -> None:
    from fieldmark.cli.output import print_table

    for warning in answer.warnings:
        print(f"warning: {warning}")
    columns = {"species": [one.label for one in answer.species]}
    if any(one.species for one in answer.species):
        columns["scientific name"] = [one.species or "" for one in answer.species]
    if any(one.probability is not None for one in answer.species):
        columns["probability"] = [f"{100 * (one.probability or 0):.2f} %" for one in answer.species]
    columns["times as likely as elsewhere"] = [f"{one.ratio:.2g}" for one in answer.species]
    print_table(list(columns), list(zip(*columns.values(), strict=True)))
    place = f"{answer.lat:g}, {answer.lon:g}"
    print(f"the {len(answer.species):,} of {answer.n_known:,} species at {place}")
    for remark in answer.remarks:
        print(f"note: {remark}")
