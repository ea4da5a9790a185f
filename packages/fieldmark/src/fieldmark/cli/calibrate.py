"""`fieldmark calibrate`: a model calibrated by a person's own checked answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldmark.cli.options import Overwrite


def add_to(app: typer.Typer) -> None:
    app.command(
        "calibrate", epilog="Example: `fieldmark calibrate runs/mine answers/checked.csv --out runs/calibrated`"
    )(calibrate)


def calibrate(
    model: Annotated[str, typer.Argument(help="The folder of a model or of the run that made it.")],
    checked: Annotated[Path, typer.Argument(help="A table file,label[,observation,drawn,date,lat,lon,...].")],
    out: Annotated[Path | None, typer.Option(help="The folder to write; MODEL-calibrated if not given.")] = None,
    synonyms: Annotated[Path | None, typer.Option(help="A table synonym,name for names in the table.")] = None,
    overwrite: Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Calibrate a model with answers that you have checked."""
    from fieldmark.cli.output import print_json
    from fieldmark.identification.calibration import calibrate_model
    from fieldmark.identification.name_lists import read_synonyms

    folder = out or Path(model).parent / f"{Path(model).name}-calibrated"
    known = None if synonyms is None else read_synonyms(synonyms)
    done = calibrate_model(model, checked, folder, synonyms=known, overwrite=overwrite)
    if as_json:
        print_json(
            {name: value for name, value in vars(done).items() if name != "model"} | {"written": bool(done.model)}
        )
        return
    print(f"{done.observations} checked observations of {done.species} species count.")
    if done.left_out:
        print(f"{done.left_out} more are of names that the model does not know.")
    print(f"log loss on observations left out of the fit: {done.before:.3f} before, {done.after:.3f} after")
    if done.model is None:
        print("The calibration does not help: nothing is written.")
        return
    if not done.promise:
        print("Short lists promise nothing any more: fewer than 30 observations were checked.")
    print(f"model in {folder}")
