"""`fieldmark identify`: what is it?"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, NamedTuple, TextIO

import typer

from fieldmark.cli.options import AddressOption, EngineOption, IdentifyQuestions, IdentifySeconds, TrustCode

if TYPE_CHECKING:
    from fieldmark.identification import Circumstances, PhotoAnswer, Timeline


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
            help="A photo, several photos of one specimen, or recordings; a folder or a table (CSV) for many at once.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="The folder of a model or of the run that made it, or bioclip-2, bioclip, clip-b32 or siglip2-b with "
            "--checklist. If not given: birdnet (BirdNET itself) for a recording, imagenet for a photo (knows few "
            "species)."
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="The number of names for a photo.")] = 3,
    at_least: Annotated[float, typer.Option(min=0.0, max=1.0, help="The lowest score shown in a timeline.")] = 0.25,
    pooling: Annotated[str, typer.Option(help="How several photos are pooled: mean, max or attention.")] = "mean",
    form: Annotated[
        Form,
        typer.Option(
            "--format",
            help="The output format: csv, raven, audacity for a recording, darwin-core for photos; "
            "for many also parquet, camtrap.",
        ),
    ] = Form.TABLE,
    out: Annotated[
        Path | None, typer.Option(help="The file to write (csv, raven, audacity, darwin-core); for many: the folder.")
    ] = None,
    lat: Annotated[float | None, typer.Option(min=-90, max=90, help="Where it was taken, in degrees.")] = None,
    lon: Annotated[float | None, typer.Option(min=-180, max=180, help="Where it was taken, in degrees.")] = None,
    date: Annotated[datetime.datetime | None, typer.Option(formats=["%Y-%m-%d"], help="When it was taken.")] = None,
    site: Annotated[str | None, typer.Option(help="The site, for models with a prior of sites.")] = None,
    country: Annotated[str | None, typer.Option(help="The country, for models with a prior of countries.")] = None,
    habitat: Annotated[str | None, typer.Option(help="The habitat, for models with a prior of habitats.")] = None,
    substrate: Annotated[
        str | None, typer.Option(help="What it grows on, for models with a prior of substrates.")
    ] = None,
    exif: Annotated[bool, typer.Option("--exif", help="Read date and place from the photo's EXIF data.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="TAXON|LIST", help="Only these: a name, a taxon, or a file of names; repeatable."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="TAXON|LIST", help="Never these: a name, a taxon, or a file of names; repeatable."),
    ] = None,
    thresholds: Annotated[
        Path | None, typer.Option(help="A table name,at_least: the lowest probability at which each species is named.")
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(
            help="A table name,slope,offset of `detections --thresholds`: scores of a recording become probabilities."
        ),
    ] = None,
    synonyms: Annotated[
        Path | None, typer.Option(help="A table synonym,name: other names for the model's labels.")
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
        Path | None, typer.Option(help="Write where the model looks, as a PNG overlay for the photo.")
    ] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Start a web page for identification.")] = False,
    host: Annotated[str, typer.Option(help="With --serve: the address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="With --serve: the port to listen on.")] = 8002,
    keep_in: Annotated[
        Path | None, typer.Option(help="With --serve: a folder for photos that users agree to share.")
    ] = None,
    identify_seconds: IdentifySeconds = 600,
    identify_questions: IdentifyQuestions = 60,
    html: Annotated[Path | None, typer.Option(help="Write the answer as an HTML page with pictures or sound.")] = None,
    each_window: Annotated[
        bool, typer.Option("--each-window", help="Do not merge adjacent windows of the same name.")
    ] = False,
    time_zone: Annotated[
        str, typer.Option(help="For camtrap: the time zone of the camera clocks, such as +01:00.")
    ] = "",
    engine: EngineOption = "local",
    address: AddressOption = None,
    trust_code: TrustCode = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Identify the species in a photo or a recording."""
    options = SimpleNamespace(**locals())
    from fieldmark.identification.review.observations import are_separate, is_many

    asked = files or []
    way = "serve" if serve else "many" if is_many(asked) else "each" if are_separate(asked) else "one"
    _refuse(way, options)
    {"serve": _serve, "many": _identify_many, "each": _identify_each, "one": _identify_one}[way](options)


class Refusal(NamedTuple):
    """What some ways of asking do not take.

    Args:
        ways: Which: "one" specimen, "each" of several recordings, "many" observations of a folder or a table, or
            "serve" for the page.
        given: What of it was given; nothing where there is nothing to refuse.
        sentence: What is said, with what was given.
    """

    ways: tuple[str, ...]
    given: Callable[[SimpleNamespace], object]
    sentence: str


def _for_one(options: SimpleNamespace) -> str:
    names = ("common_names", "checklist", "calibration", "overlay", "html")
    return ", ".join(f"--{name.replace('_', '-')}" for name in names if getattr(options, name))


def _cluster(options: SimpleNamespace) -> bool:
    from fieldmark.errors import InputError

    given, place = options.engine != "local" or options.address is not None, options.files[0]
    if given and not place.exists():
        raise InputError(place, found="no such folder", expected="a folder or a table of many", hint="Check the path.")
    return given


def _is_visual(file: Path) -> bool:
    from fieldmark.tables.media import medium_of

    medium = medium_of(file)
    return medium is not None and medium.visual


# Asked in this order.
REFUSALS = (
    Refusal(("serve",), lambda on: on.files, "--serve starts a web page: leave the files out."),
    Refusal(
        ("one", "many"),
        lambda on: not on.files,
        "Nothing to identify: give a photo, a recording, a folder or a table; or --serve.",
    ),
    Refusal(
        ("one", "each", "many"),
        lambda on: (on.lat is None) != (on.lon is None),
        "--lat and --lon must be given together.",
    ),
    Refusal(("many",), _for_one, "{}: for one photo or recording, not for a folder or a table of many."),
    Refusal(
        ("each",),
        lambda on: _for_one(on) or on.each_window or on.out or on.form is not Form.TABLE,
        "To write answers for several recordings, give their folder: fieldmark identify FOLDER --out ANSWERS.",
    ),
    Refusal(
        ("many",),
        lambda on: on.form.value if on.form in (Form.RAVEN, Form.AUDACITY) else "",
        "--format {} is for one recording.",
    ),
    Refusal(("one", "each"), _cluster, "--engine and --address are for a folder or a table of many."),
    Refusal(
        ("one",),
        lambda on: on.form in (Form.PARQUET, Form.CAMTRAP) or on.time_zone,
        "--time-zone, parquet and camtrap are for a folder or a table of many.",
    ),
    Refusal(
        ("one",),
        lambda on: on.form is Form.RAVEN and on.out is None,
        "A Raven table is written to a file: add --out NAME.selections.txt.",
    ),
    Refusal(
        ("one",),
        lambda on: on.out is not None and on.form is Form.TABLE,
        "--out needs --format csv, raven, audacity or darwin-core.",
    ),
    Refusal(
        ("one",),
        lambda on: on.form is not Form.TABLE and (on.form is Form.DARWIN_CORE) != _is_visual(on.files[0]),
        "--format csv, raven and audacity are for a recording; that of photos is darwin-core.",
    ),
)


def _refuse(way: str, options: SimpleNamespace) -> None:
    """Refuses options that a way of asking does not follow."""
    from fieldmark.errors import MisuseError

    for refusal in REFUSALS:
        if way in refusal.ways and (given := refusal.given(options)):
            raise MisuseError(refusal.sentence.format(given))


def _circumstances(options: SimpleNamespace) -> Circumstances:
    from fieldmark.identification import Circumstances

    date = None if options.date is None else options.date.date()
    known = (options.site, options.country, options.habitat, options.substrate)
    return Circumstances(options.lat, options.lon, date, *known)


def _synonyms(options: SimpleNamespace) -> dict[str, str]:
    from fieldmark.identification.name_lists import read_synonyms

    return {} if options.synonyms is None else read_synonyms(options.synonyms)


def _answer(options: SimpleNamespace) -> PhotoAnswer | Timeline:
    """Asks about one specimen, or one recording."""
    from fieldmark.identification import identify as ask
    from fieldmark.identification.name_lists import read_common_names

    return ask(
        options.files,
        options.model,
        top=options.top,
        at_least=options.at_least,
        context=_circumstances(options),
        pooling=options.pooling,
        only=options.only or (),
        exclude=options.exclude or (),
        thresholds=options.thresholds,
        calibration=options.calibration,
        synonyms=_synonyms(options),
        common_names=None if options.common_names is None else read_common_names(options.common_names),
        exif=options.exif,
        checklist=options.checklist,
        overlay=options.overlay is not None or (options.html is not None and _is_visual(options.files[0])),
    )


def _identify_one(options: SimpleNamespace) -> None:
    """Names one specimen by its photos, or who is heard in a recording."""
    answer = _answer(options)
    _write_pictures(answer, options.html, options.overlay)
    how = {"each_window": options.each_window, "as_json": options.as_json}
    _print(answer, options.model or "imagenet", options.form, options.out, **how)


def _identify_each(options: SimpleNamespace) -> None:
    """Names each of several recordings, and each photo among them; those that cannot be read are named at the end."""
    from fieldmark.cli.output import print_json
    from fieldmark.errors import FieldmarkError, InputError

    told, faults = [], []
    for file in options.files:
        try:
            answer = _answer(SimpleNamespace(**{**vars(options), "files": [file]}))
        except InputError as error:
            faults.append(str(error))
            continue
        if options.as_json:
            told.append(answer.to_json())
            continue
        print(f"== {file}")
        _print(answer, "", options.form, None, each_window=options.each_window, as_json=False)
    if options.as_json:
        print_json(told)
    if faults:
        raise FieldmarkError("\n".join(faults))


def _identify_many(options: SimpleNamespace) -> None:
    """Names all observations of a folder or a table."""
    from fieldmark.cli.batch import BatchForms, identify_batch
    from fieldmark.identification.review.batch import BatchSettings

    settings = BatchSettings(
        tuple(options.only or ()),
        tuple(options.exclude or ()),
        options.at_least,
        options.pooling,
        _circumstances(options).known,
        options.exif,
        options.thresholds,
        _synonyms(options),
        options.each_window,
    )
    forms = BatchForms([] if options.form is Form.TABLE else [options.form.value], zone=options.time_zone)
    where = {"engine": options.engine, "address": options.address, "as_json": options.as_json}
    identify_batch(options.files[0], options.model, options.out, settings, forms, **where)


def _serve(options: SimpleNamespace) -> None:
    """The page by itself, until it is stopped."""
    from fieldmark.registry import require

    for module in ("fastapi", "uvicorn", "jinja2"):
        require(module, "The identify page")
    from fieldmark.web.identify_answers import PageAnswers, PageLimits
    from fieldmark.web.local_app import serve_identify

    limits = PageLimits(options.identify_seconds, options.identify_questions)
    namer = PageAnswers(options.model, options.keep_in, limits)
    _ = namer.loaded  # a wrong folder is said at once
    namer.warm()
    here = "127.0.0.1" if options.host == "0.0.0.0" else options.host
    print(f"Identify: http://{here}:{options.port}/identify (stop with Ctrl-C)", flush=True)
    serve_identify(namer, host=options.host, port=options.port)


def _write_pictures(answer: PhotoAnswer | Timeline, html: Path | None, overlay: Path | None) -> None:
    """Writes the answer as a page, and where the model looks as a picture, as far as they were asked for."""
    from fieldmark.identification import PhotoAnswer
    from fieldmark.identification.pages import write_answer_page
    from fieldmark.storage.files import appearing_file

    if html is not None:
        write_answer_page(answer, html)
    if overlay is not None and isinstance(answer, PhotoAnswer) and answer.overlay is not None:
        with appearing_file(overlay) as partial:
            partial.write_bytes(answer.overlay)


def _print(
    answer: PhotoAnswer | Timeline, model: str, form: Form, out: Path | None, *, each_window: bool, as_json: bool
) -> None:
    from fieldmark.cli.output import print_json
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


def _print_darwin_core(answer: PhotoAnswer, model: str, out: Path | None) -> None:
    from fieldmark.identification.darwin_core_rows import as_darwin_core
    from fieldmark.storage.files import appearing_file

    table = as_darwin_core(answer, model=Path(model).name)
    if out is None:
        print(table, end="")
        return
    with appearing_file(out) as partial:
        partial.write_text(table, encoding="utf-8")
    print(f"1 record in {out}")


def _print_photo(answer: PhotoAnswer) -> None:
    from fieldmark.cli.output import print_table
    from fieldmark.identification.advice import danger_word
    from fieldmark.identification.text import confidence_word, danger_lines, headline, percent, sentences

    print(headline(answer))
    if answer.danger is not None:
        print("\n".join(["", *danger_lines(answer.danger), ""]))
    names = answer.names
    columns = {"name": [name.shown for name in names]}
    if any(name.species not in (None, name.shown) for name in names):
        columns["species"] = [name.species or "" for name in names]
    columns["probability"] = [percent(name.probability) for name in names]
    columns["how sure"] = [confidence_word(name.probability) for name in names]
    if any(name.poisonous for name in names):
        columns[""] = [danger_word(answer.group) if name.poisonous else "" for name in names]
    print_table(list(columns), list(zip(*columns.values(), strict=True)))
    for line in sentences(answer):
        print(line)
    _print_notes(answer.remarks, answer.simulated)


def _print_timeline(answer: Timeline, form: Form, out: Path | None, each_window: bool) -> None:
    from fieldmark.cli.output import print_table
    from fieldmark.identification.results import as_audacity, as_csv
    from fieldmark.identification.text import percent, removed_line
    from fieldmark.tables.timecodes import clock

    detections = answer.windows if each_window else answer.detections
    if out is not None:
        print(f"{_write(answer, form, out, each_window)} detections in {out}")
    elif form is not Form.TABLE:
        print(as_csv(detections) if form is Form.CSV else as_audacity(detections), end="")
        _print_notes(answer.remarks, answer.simulated, sys.stderr)  # a program reads standard output
        return
    else:
        calibrated = any(voice.probability is not None for voice in detections)
        rows = [
            [
                voice.shown,
                voice.species or "",
                f"{voice.score:.2f}",
                *([percent(voice.probability or 0.0)] if calibrated else []),
                clock(int(voice.start_s)),
                clock(round(voice.end_s)),
            ]
            for voice in detections
        ]
        if rows:
            print_table(["name", "species", "score", *(["probability"] if calibrated else []), "from", "to"], rows)
        else:
            length = f"{answer.seconds:.1f} s" if answer.seconds >= 0.1 else "less than 0.1 s"
            print(f"No species scores {answer.at_least:g} or more in {length}.")
    for line in (*([removed_line(answer)] if answer.removed else []), *answer.ignored):
        print(line)
    _print_notes(answer.remarks, answer.simulated)


def _write(answer: Timeline, form: Form, out: Path, each_window: bool) -> int:
    """Writes the timeline and returns how many detections it has."""
    from fieldmark.identification.results import write_timeline

    detections = answer.windows if each_window else answer.detections
    write_timeline(out, answer.file, detections, form.value)
    return len(detections)


def _print_notes(remarks: tuple[str, ...], simulated: bool, file: TextIO | None = None) -> None:
    for remark in remarks:
        print(f"note: {remark}", file=file)
    if simulated:
        print("The model was trained on simulated data.", file=file)
