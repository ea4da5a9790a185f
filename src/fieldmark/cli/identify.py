"""`fieldmark identify`: what is it?"""

from __future__ import annotations

import datetime
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

if TYPE_CHECKING:
    from fieldmark.identification import PhotoAnswer, Timeline


class Form(StrEnum):
    """How a timeline is written."""

    TABLE = "table"
    CSV = "csv"
    RAVEN = "raven"
    AUDACITY = "audacity"
    PARQUET = "parquet"
    DARWIN_CORE = "darwin-core"
    CAMTRAP = "camtrap"


def add_to(app: typer.Typer) -> None:
    app.command("identify", epilog="Example: `fieldmark identify dawn.wav --model birdnet --lat 42.4 --lon -76.5`")(
        identify
    )


def identify(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="A photo, several photos of one specimen, or a recording; a folder or a table (CSV) for many at once.",
        ),
    ],
    model: Annotated[
        str, typer.Option(help="The folder of a model or of the run that made it; or birdnet, for BirdNET itself.")
    ],
    top: Annotated[int, typer.Option(min=1, help="How many names to give for a photo.")] = 3,
    at_least: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="From which score on a name stands in a timeline.")
    ] = 0.25,
    pooling: Annotated[str, typer.Option(help="How several photos are pooled: mean, max or attention.")] = "mean",
    form: Annotated[
        Form,
        typer.Option(
            "--format",
            help="How a timeline is written: csv, raven, audacity; for many also parquet, darwin-core, camtrap.",
        ),
    ] = Form.TABLE,
    out: Annotated[
        Path | None, typer.Option(help="Write the timeline there (csv, raven or audacity); for many: the folder.")
    ] = None,
    lat: Annotated[float | None, typer.Option(min=-90, max=90, help="Where it was taken, in degrees.")] = None,
    lon: Annotated[float | None, typer.Option(min=-180, max=180, help="Where it was taken, in degrees.")] = None,
    date: Annotated[datetime.datetime | None, typer.Option(formats=["%Y-%m-%d"], help="When it was taken.")] = None,
    site: Annotated[str | None, typer.Option(help="The site, for models with a prior of sites.")] = None,
    country: Annotated[str | None, typer.Option(help="The country, for models with a prior of countries.")] = None,
    each_window: Annotated[
        bool, typer.Option("--each-window", help="Keep windows of the same name apart that touch each other.")
    ] = False,
    exif: Annotated[
        bool, typer.Option("--exif", help="For many: read date and place from what the camera noted.")
    ] = False,
    time_zone: Annotated[
        str, typer.Option(help="For camtrap: the time zone of the camera clocks, such as +01:00.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Say what a photo shows, or who is heard in a recording and when."""
    from fieldmark.cli.batch import BatchForms, identify_batch
    from fieldmark.cli.printing import print_json
    from fieldmark.errors import MisuseError
    from fieldmark.foundation.media_files import is_photo
    from fieldmark.identification import Circumstances, PhotoAnswer, Timeline
    from fieldmark.identification import identify as ask
    from fieldmark.reviewing.batch import BatchSettings
    from fieldmark.reviewing.observations import is_many

    if (lat is None) != (lon is None):
        raise MisuseError("--lat and --lon go together.")
    if is_many(files):
        known = {"lat": lat, "lon": lon, "date": None if date is None else date.date(), "site": site}
        known |= {"country": country}
        settings = BatchSettings(
            at_least=at_least,
            pooling=pooling,
            known={name: value for name, value in known.items() if value is not None},
            exif=exif,
        )
        if form in (Form.RAVEN, Form.AUDACITY):
            raise MisuseError(f"--format {form.value} is for one recording.")
        forms = BatchForms([] if form is Form.TABLE else [form.value], zone=time_zone)
        identify_batch(files[0], model, out, settings, forms, as_json=as_json)
        return
    if form in (Form.PARQUET, Form.DARWIN_CORE, Form.CAMTRAP) or exif or time_zone:
        raise MisuseError("--exif, --time-zone, parquet, darwin-core and camtrap are for a folder or a table of many.")
    if form is Form.RAVEN and out is None:
        raise MisuseError("A Raven table is written to a file: add --out NAME.selections.txt.")
    if out is not None and form is Form.TABLE:
        raise MisuseError("--out needs --format csv, raven or audacity.")
    if (out is not None or form is not Form.TABLE) and is_photo(files[0]):
        raise MisuseError("--format and --out are for the timeline of a recording; a photo's answer comes with --json.")
    context = Circumstances(lat, lon, None if date is None else date.date(), site, country)
    answer = ask(files, model, top=top, at_least=at_least, context=context, pooling=pooling)
    if as_json:
        print_json(answer.to_json())
        if out is not None and isinstance(answer, Timeline):
            _write(answer, form, out, each_window)
    elif isinstance(answer, PhotoAnswer):
        _print_photo(answer)
    else:
        _print_timeline(answer, form, out, each_window)


def _print_photo(answer: PhotoAnswer) -> None:
    from fieldmark.cli.printing import print_table
    from fieldmark.identification.wording import danger_lines, headline, percent, sentences

    print(headline(answer))
    if answer.danger is not None:
        print("\n".join(["", *danger_lines(answer.danger), ""]))
    names = answer.names
    columns = {"name": [name.shown for name in names]}
    if any(name.species not in (None, name.shown) for name in names):
        columns["species"] = [name.species or "" for name in names]
    columns["probability"] = [percent(name.probability) for name in names]
    if any(name.poisonous for name in names):
        columns[""] = ["poisonous" if name.poisonous else "" for name in names]
    print_table(list(columns), list(zip(*columns.values(), strict=True)))
    for line in sentences(answer):
        print(line)
    _print_notes(answer.remarks, answer.simulated)


def _print_timeline(answer: Timeline, form: Form, out: Path | None, each_window: bool) -> None:
    from fieldmark.cli.printing import print_table
    from fieldmark.foundation.timecodes import clock
    from fieldmark.identification.timeline_formats import as_audacity, as_csv

    detections = answer.windows if each_window else answer.detections
    if out is not None:
        print(f"{_write(answer, form, out, each_window)} detections in {out}")
    elif form is not Form.TABLE:
        print(as_csv(detections) if form is Form.CSV else as_audacity(detections), end="")
        _print_notes(answer.remarks, answer.simulated, sys.stderr)  # a program reads standard output
        return
    else:
        rows = [
            [
                voice.shown,
                voice.species or "",
                f"{voice.score:.2f}",
                clock(int(voice.start_s)),
                clock(round(voice.end_s)),
            ]
            for voice in detections
        ]
        if rows:
            print_table(["name", "species", "score", "from", "to"], rows)
        else:
            length = f"{answer.seconds:.1f} s" if answer.seconds >= 0.1 else "less than 0.1 s"
            print(f"No voice scores {answer.at_least:g} or more in {length}.")
    _print_notes(answer.remarks, answer.simulated)


def _write(answer: Timeline, form: Form, out: Path, each_window: bool) -> int:
    """Writes the timeline and returns how many detections it has."""
    from fieldmark.identification.timeline_formats import write_timeline

    detections = answer.windows if each_window else answer.detections
    write_timeline(out, answer.file, detections, form.value)
    return len(detections)


def _print_notes(remarks: tuple[str, ...], simulated: bool, file: TextIO | None = None) -> None:
    for remark in remarks:
        print(f"note: {remark}", file=file)
    if simulated:
        print("The model was trained on simulated data.", file=file)
