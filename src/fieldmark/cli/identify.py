"""`fieldmark identify`: what is it?"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TextIO

import typer

from fieldmark.cli.options import AddressOption, EngineOption
from fieldmark.cli.serve import IdentifyQuestions, IdentifySeconds

if TYPE_CHECKING:
    from fieldmark.identification import PhotoAnswer, Timeline
    from fieldmark.reviewing.batch import BatchSettings


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
    epilog = "Example: `fieldmark identify photo.jpg`, or `fieldmark identify dawn.wav --lat 42.4 --lon -76.5`"
    app.command("identify", epilog=epilog)(identify)


def identify(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE...]",
            help="A photo, several photos of one specimen, or a recording; a folder or a table (CSV) for many at once.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="The folder of a model or of the run that made it. If not given: birdnet (BirdNET itself) for a "
            "recording, imagenet for a photo: a model that comes along and knows little."
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many names to give for a photo.")] = 3,
    at_least: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="From which score on a name stands in a timeline.")
    ] = 0.25,
    pooling: Annotated[str, typer.Option(help="How several photos are pooled: mean, max or attention.")] = "mean",
    form: Annotated[
        Form,
        typer.Option(
            "--format",
            help="How it is written: csv, raven, audacity for a recording, darwin-core for photos; "
            "for many also parquet, camtrap.",
        ),
    ] = Form.TABLE,
    out: Annotated[
        Path | None, typer.Option(help="Write it there (csv, raven, audacity, darwin-core); for many: the folder.")
    ] = None,
    lat: Annotated[float | None, typer.Option(min=-90, max=90, help="Where it was taken, in degrees.")] = None,
    lon: Annotated[float | None, typer.Option(min=-180, max=180, help="Where it was taken, in degrees.")] = None,
    date: Annotated[datetime.datetime | None, typer.Option(formats=["%Y-%m-%d"], help="When it was taken.")] = None,
    site: Annotated[str | None, typer.Option(help="The site, for models with a prior of sites.")] = None,
    country: Annotated[str | None, typer.Option(help="The country, for models with a prior of countries.")] = None,
    habitat: Annotated[str | None, typer.Option(help="The habitat, for models with a prior of habitats.")] = None,
    substrate: Annotated[str | None, typer.Option(help="What it grows on, for models with a prior of that.")] = None,
    exif: Annotated[bool, typer.Option("--exif", help="Read date and place from what the camera noted.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TAXON|LIST", help="Answer nothing else: a name, a taxon, or a file of names; repeatable."
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TAXON|LIST", help="Do not answer these: a name, a taxon, or a file of names; repeatable."
        ),
    ] = None,
    thresholds: Annotated[
        Path | None, typer.Option(help="A table name,at_least: species are named from these probabilities on only.")
    ] = None,
    synonyms: Annotated[
        Path | None, typer.Option(help="A table synonym,name: other names for those that the model knows.")
    ] = None,
    common_names: Annotated[
        Path | None, typer.Option(help="A table name,language,common_name to show names in other languages.")
    ] = None,
    checklist: Annotated[
        Path | None,
        typer.Option(
            help="For --model bioclip, bioclip-2 or local-dir:FOLDER: the species to choose from, as CSV or a Darwin "
            "Core Archive; with --country those of one country."
        ),
    ] = None,
    overlay: Annotated[
        Path | None, typer.Option(help="Write where the model looks as a PNG to lay over the photo.")
    ] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Answer on a page of this machine.")] = False,
    host: Annotated[str, typer.Option(help="With --serve: the address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="With --serve: the port to listen on.")] = 8002,
    keep_in: Annotated[
        Path | None, typer.Option(help="With --serve: a folder for photos that people let you keep.")
    ] = None,
    identify_seconds: IdentifySeconds = 600,
    identify_questions: IdentifyQuestions = 60,
    html: Annotated[Path | None, typer.Option(help="Write the answer as a page with pictures or sound.")] = None,
    each_window: Annotated[
        bool, typer.Option("--each-window", help="Keep windows of the same name apart that touch each other.")
    ] = False,
    time_zone: Annotated[
        str, typer.Option(help="For camtrap: the time zone of the camera clocks, such as +01:00.")
    ] = "",
    engine: EngineOption = "local",
    address: AddressOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Say what a photo shows, or who is heard in a recording and when."""
    from fieldmark.errors import MisuseError
    from fieldmark.foundation.media_files import is_photo
    from fieldmark.identification import Circumstances
    from fieldmark.identification import identify as ask
    from fieldmark.identification.restricting import read_common_names, read_synonyms
    from fieldmark.reviewing.batch import BatchSettings
    from fieldmark.reviewing.observations import is_many

    if serve:
        if files:
            raise MisuseError("--serve answers on a page: leave the files out.")
        _serve(model, host, port, keep_in, identify_seconds, identify_questions)
        return
    if not files:
        raise MisuseError("There is nothing to identify: give a photo, a recording, a folder or a table; or --serve.")
    if (lat is None) != (lon is None):
        raise MisuseError("--lat and --lon go together.")
    context = Circumstances(lat, lon, None if date is None else date.date(), site, country, habitat, substrate)
    if is_many(files):
        for_one = {"--common-names": common_names, "--checklist": checklist, "--overlay": overlay, "--html": html}
        _refuse_for_many([*(name for name, value in for_one.items() if value), *["--each-window"] * each_window])
        settings = BatchSettings(
            tuple(only or ()),
            tuple(exclude or ()),
            at_least,
            pooling,
            context.known,
            exif,
            thresholds,
            {} if synonyms is None else read_synonyms(synonyms),
        )
        _identify_many(files[0], model, out, settings, form, time_zone, engine, address, as_json)
        return
    if engine != "local" or address is not None:
        _refuse_engine(files[0])
    _refuse_form(form, out, time_zone, photo=is_photo(files[0]))
    answer = ask(
        files,
        model,
        top=top,
        at_least=at_least,
        context=context,
        pooling=pooling,
        only=only or (),
        exclude=exclude or (),
        thresholds=thresholds,
        synonyms=None if synonyms is None else read_synonyms(synonyms),
        common_names=None if common_names is None else read_common_names(common_names),
        exif=exif,
        checklist=checklist,
        overlay=overlay is not None or (html is not None and is_photo(files[0])),
    )
    _write_pictures(answer, html, overlay)
    _print(answer, model or "imagenet", form, out, each_window=each_window, as_json=as_json)


def _refuse_for_many(given: Sequence[str]) -> None:
    """Refuses options that a folder or a table of many would not follow."""
    from fieldmark.errors import MisuseError

    if given:
        raise MisuseError(f"{', '.join(given)}: for one photo or recording, not for a folder or a table of many.")


def _identify_many(
    place: Path,
    model: str | None,
    out: Path | None,
    settings: BatchSettings,
    form: Form,
    time_zone: str,
    engine: str,
    address: str | None,
    as_json: bool,
) -> None:
    """Names all observations of a folder or a table."""
    from fieldmark.cli.batch import BatchForms, identify_batch
    from fieldmark.errors import MisuseError

    if form in (Form.RAVEN, Form.AUDACITY):
        raise MisuseError(f"--format {form.value} is for one recording.")
    forms = BatchForms([] if form is Form.TABLE else [form.value], zone=time_zone)
    identify_batch(place, model, out, settings, forms, engine=engine, address=address, as_json=as_json)


def _refuse_engine(place: Path) -> NoReturn:
    """Says why a cluster has nothing to do for what was named."""
    from fieldmark.errors import InputError, MisuseError

    if not place.exists():
        raise InputError(place, found="no such folder", expected="a folder or a table of many", hint="Check the path.")
    raise MisuseError("--engine and --address are for a folder or a table of many.")


def _refuse_form(form: Form, out: Path | None, time_zone: str, *, photo: bool) -> None:
    """Refuses forms that the answer about one photo or recording cannot take."""
    from fieldmark.errors import MisuseError

    if form in (Form.PARQUET, Form.CAMTRAP) or time_zone:
        raise MisuseError("--time-zone, parquet and camtrap are for a folder or a table of many.")
    if form is Form.RAVEN and out is None:
        raise MisuseError("A Raven table is written to a file: add --out NAME.selections.txt.")
    if out is not None and form is Form.TABLE:
        raise MisuseError("--out needs --format csv, raven, audacity or darwin-core.")
    if form is not Form.TABLE and (form is Form.DARWIN_CORE) != photo:
        raise MisuseError("--format csv, raven and audacity are for a recording; that of photos is darwin-core.")


def _write_pictures(answer: PhotoAnswer | Timeline, html: Path | None, overlay: Path | None) -> None:
    """Writes the answer as a page, and where the model looks as a picture, as far as they were asked for."""
    from fieldmark.foundation.files import appearing_file
    from fieldmark.identification import PhotoAnswer
    from fieldmark.identification.pages import write_answer_page

    if html is not None:
        write_answer_page(answer, html)
    if overlay is not None and isinstance(answer, PhotoAnswer) and answer.overlay is not None:
        with appearing_file(overlay) as partial:
            partial.write_bytes(answer.overlay)


def _print(
    answer: PhotoAnswer | Timeline, model: str, form: Form, out: Path | None, *, each_window: bool, as_json: bool
) -> None:
    from fieldmark.cli.printing import print_json
    from fieldmark.identification import PhotoAnswer, Timeline

    if as_json:
        print_json(answer.to_json())
        if out is not None and isinstance(answer, Timeline):
            _write(answer, form, out, each_window)
    elif isinstance(answer, PhotoAnswer) and form is Form.DARWIN_CORE:
        _print_darwin_core(answer, model, out)
    elif isinstance(answer, PhotoAnswer):
        _print_photo(answer)
    else:
        _print_timeline(answer, form, out, each_window)


def _serve(model: str | None, host: str, port: int, keep_in: Path | None, seconds: int, questions: int) -> None:
    """The page by itself, until it is stopped."""
    from fieldmark.foundation.registry import require

    for module in ("fastapi", "uvicorn", "jinja2"):
        require(module, "The identify page")
    from fieldmark.challenge.naming.local_app import serve_identify
    from fieldmark.challenge.naming.namer import PageAnswers, PageLimits

    namer = PageAnswers(model, keep_in, PageLimits(seconds, questions))
    _ = namer.loaded  # a wrong folder is said at once
    namer.warm()
    here = "127.0.0.1" if host == "0.0.0.0" else host
    print(f"Identify: http://{here}:{port}/identify (stop with Ctrl-C)", flush=True)
    serve_identify(namer, host=host, port=port)


def _print_darwin_core(answer: PhotoAnswer, model: str, out: Path | None) -> None:
    from fieldmark.foundation.files import appearing_file
    from fieldmark.identification.darwin_core_rows import as_darwin_core

    table = as_darwin_core(answer, model=Path(model).name)
    if out is None:
        print(table, end="")
        return
    with appearing_file(out) as partial:
        partial.write_text(table, encoding="utf-8")
    print(f"1 record in {out}")


def _print_photo(answer: PhotoAnswer) -> None:
    from fieldmark.cli.printing import print_table
    from fieldmark.identification.advice import danger_word
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
        columns[""] = [danger_word(answer.group) if name.poisonous else "" for name in names]
    print_table(list(columns), list(zip(*columns.values(), strict=True)))
    for line in sentences(answer):
        print(line)
    _print_notes(answer.remarks, answer.simulated)


def _print_timeline(answer: Timeline, form: Form, out: Path | None, each_window: bool) -> None:
    from fieldmark.cli.printing import print_table
    from fieldmark.foundation.timecodes import clock
    from fieldmark.identification.timeline_formats import as_audacity, as_csv
    from fieldmark.identification.wording import removed_line

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
    for line in (*([removed_line(answer)] if answer.removed else []), *answer.ignored):
        print(line)
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
