"""`fieldmark detections`: any detector against your own annotations; boxes and masks of photos as COCO scores them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated

import typer

from fieldmark.cli.options import Overwrite

if TYPE_CHECKING:
    from fieldmark.scoring.sound_detections import DetectionCard

EPILOG = (
    "Example: `fieldmark detections birdnet/ --against annotations/ --listened recordings`; "
    "of photos: `fieldmark detections objects.json results.json --boxes`"
)


class RuleKind(StrEnum):
    """What is compared."""

    WINDOW = "window"
    EVENT = "event"
    RECORDING = "recording"
    SITE_DAY = "site-day"


class IntervalUnit(StrEnum):
    """What is independent."""

    RECORDING = "recording"
    SITE = "site"


def add_to(app: typer.Typer) -> None:
    app.command("detections", epilog=EPILOG)(detections)


def detections(
    table: Annotated[
        Path,
        typer.Argument(
            metavar="DETECTIONS|OBJECTS",
            help="With --against or --listen: a table of detections of any tool, or a folder of them. "
            "With RESULTS: COCO JSON with images, categories and annotations.",
        ),
    ],
    results: Annotated[
        Path | None, typer.Argument(metavar="[RESULTS]", help="A list of COCO results with scores.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="Annotations: a table, a folder of them, or the folder of clips that --listen wrote."),
    ] = None,
    listened: Annotated[
        str | None,
        typer.Option(help="What was listened to: 'recordings' as a whole, or a table recording[,start_s,end_s]."),
    ] = None,
    recordings: Annotated[
        Path | None, typer.Option(help="The folder of the sound files, or a table recording[,seconds,site,date].")
    ] = None,
    rule: Annotated[RuleKind, typer.Option(help="What is compared.")] = RuleKind.WINDOW,
    window: Annotated[float, typer.Option(help="How long windows (and clips) are, in seconds.")] = 3.0,
    hop: Annotated[float, typer.Option(help="Hop between windows in seconds; 0 for the window length.")] = 0.0,
    overlap: Annotated[float, typer.Option(help="The least overlap in seconds; 0 for any.")] = 0.0,
    by: Annotated[IntervalUnit, typer.Option(help="The independent unit of intervals.")] = IntervalUnit.RECORDING,
    at_least: Annotated[
        float | None, typer.Option(help="The score threshold for precision and recall; all detections if not given.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="The species, if annotations name none.")] = None,
    complete: Annotated[
        bool, typer.Option("--complete", help="Annotators noted every species that they heard.")
    ] = False,
    promise: Annotated[float, typer.Option(help="The least precision that thresholds promise.")] = 0.9,
    risk: Annotated[float, typer.Option(help="The risk that the precision is lower than promised.")] = 0.05,
    names: Annotated[
        list[Path] | None, typer.Option(help="A further source of names (see `fieldmark names`); repeatable.")
    ] = None,
    thresholds: Annotated[
        Path | None, typer.Option(help="Write tables of thresholds for identify and BirdNET into this folder.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Plot precision by score, as PNG or SVG.")] = None,
    listen: Annotated[
        int | None, typer.Option(min=12, help="Draw this many clips to listen to, into --out, for `fieldmark review`.")
    ] = None,
    species: Annotated[list[str] | None, typer.Option(help="With --listen: which species; repeatable.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="With --listen: the seed of the draw.")] = 0,
    out: Annotated[Path | None, typer.Option(help="With --listen: the folder of clips to write.")] = None,
    boxes: Annotated[bool, typer.Option("--boxes", help="With RESULTS: compare boxes; masks if not given.")] = False,
    overwrite: Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Evaluate a detector (BirdNET, ...) on your annotations, with thresholds to trust.

    With RESULTS: score boxes or masks in photos as COCO does, with intervals over images.
    """
    options = SimpleNamespace(**locals())
    from fieldmark.errors import MisuseError
    from fieldmark.identification.review.listening import is_listening

    ways = [results is not None, against is not None, listen is not None]
    if sum(ways) != 1:
        raise MisuseError(
            "Give one of these: --against ANNOTATIONS for sounds, --listen N to draw clips, or RESULTS for COCO boxes "
            "and masks."
        )
    if not (0 < promise < 1 and 0 < risk < 1):
        raise MisuseError("--promise and --risk are numbers between 0 and 1, such as 0.9 and 0.05.")
    if results is not None:
        _score_instances(table, results, boxes=boxes, as_json=as_json)
    elif listen is not None:
        _draw(options)
    elif against is not None and is_listening(against):
        _estimate(options)
    else:
        _score_sounds(options)


def _score_instances(truth: Path, results: Path, *, boxes: bool, as_json: bool) -> None:
    from fieldmark.cli.output import print_json, print_table
    from fieldmark.notebooks import bounds_text
    from fieldmark.scoring.instances import score_instances
    from fieldmark.storage.local_inputs import local_input

    card = score_instances(local_input(truth), local_input(results), "boxes" if boxes else "masks")
    if as_json:
        print_json(card.to_json())
        return
    rows = [[name, *bounds_text(one.value, one.low, one.high, percent=True)] for name, one in card.metrics.items()]
    print_table(["metric", "value", "95 % interval"], rows)
    print(f"{card.kind} of {card.objects:,} objects in {card.images:,} images, {card.answers:,} answers")


def _score_sounds(options: SimpleNamespace) -> None:
    import math

    from fieldmark.cli.output import print_json
    from fieldmark.scoring.sound_detections import detections as score
    from fieldmark.scoring.sound_matching import MatchRule
    from fieldmark.scoring.sound_thresholds import write_thresholds

    card = score(
        options.table,
        options.against,
        listened=options.listened,
        recordings=options.recordings,
        rule=MatchRule(options.rule.value, options.window, options.hop, options.overlap),
        by=options.by.value,
        at_least=-math.inf if options.at_least is None else options.at_least,
        label=options.label,
        complete=options.complete,
        promise=options.promise,
        risk=options.risk,
        names=options.names or (),
    )
    if options.thresholds is not None:
        write_thresholds(options.thresholds, card.thresholds, card.calibrated, overwrite=options.overwrite)
    if options.plot is not None:
        card.plot().save(options.plot)
    if options.as_json:
        print_json(card.to_json())
        return
    _print_card(card)
    if options.thresholds is not None:
        print(f"thresholds in {options.thresholds}")


def _print_card(card: DetectionCard) -> None:
    from fieldmark.cli.output import print_table, score_text

    listed = (*card.species, *([card.together] if len(card.species) > 1 else []))
    columns = ("species", "called", "positive", f"{card.unit}s", "precision", "recall", "average precision")
    rows = [
        [
            one.name,
            *(f"{number:,}" for number in (one.answers, one.positives, one.recordings)),
            *(
                "-" if score.value != score.value else score_text(score)
                for score in (one.precision, one.recall, one.average_precision)
            ),
        ]
        for one in listed
    ]
    print_table(columns, rows)
    print(f"\nRule: {card.rule}.")
    print(f"{card.seconds / 60:,.1f} minutes of {card.units:,} {card.unit}s were annotated.")
    if card.rules:
        print("\nUnder other rules, all species together:")
        numbers = [[one.rule, *map(_percent, (one.precision, one.recall, one.average_precision))] for one in card.rules]
        print_table(["rule", "precision", "recall", "mean average precision"], numbers)
    print(f"\nThresholds with a precision of at least {_percent(card.thresholds[0].promise)} %:")
    shown = [
        [
            one.name,
            "none" if one.at_least is None else f"{one.at_least:.3f}",
            f"{one.pooled} species" if one.pooled else "own",
            _percent(one.recall) if one.at_least is not None else "",
            one.reason + (f"; about {one.more:,} more would be enough" if one.more else ""),
        ]
        for one in card.thresholds
    ]
    print_table(["species", "threshold", "shown by", "recall", "why none"], shown, numbers=False)
    strange = [one for one in card.names if one.how in ("ambiguous", "not found")]
    for match in strange[:10]:
        print(f"note: the name {match.given!r} is {match.how} {match.note}".rstrip())
    if any(match.how == "not found" for match in strange):
        print("note: add other names by --names FILE, a table synonym,name")
    for remark in card.remarks:
        print(f"note: {remark}")


def _percent(value: float) -> str:
    return "-" if value != value else f"{100 * value:.1f}"


def _draw(options: SimpleNamespace) -> None:
    from fieldmark.errors import MisuseError
    from fieldmark.identification.review.listening import draw_clips

    if options.recordings is None or options.out is None:
        raise MisuseError("--listen cuts clips: give --recordings, the folder of the sound files, and --out.")
    plan = draw_clips(
        options.table,
        options.recordings,
        options.out,
        clips=options.listen,
        species=options.species or (),
        window_s=options.window,
        seed=options.seed,
        overwrite=options.overwrite,
    )
    print(f"{plan.clips} clips of {', '.join(plan.species)} drawn from {plan.windows:,} windows.")
    print(f"Listen to them: fieldmark review {options.out}")
    print(f"Then: fieldmark detections {options.table} --against {options.out}")


def _estimate(options: SimpleNamespace) -> None:
    from dataclasses import asdict

    from fieldmark.cli.output import print_json, print_table
    from fieldmark.identification.review.listening import estimate_listening

    made = estimate_listening(options.against, promise=options.promise, risk=options.risk)
    if options.as_json:
        print_json([asdict(one) for one in made])
        return
    for one in made:
        print(f"{one.label}: heard in {one.heard} of {one.clips} clips")
        low, high = _percent(one.prevalence.low), _percent(one.prevalence.high)
        print(f"sounds in {_percent(one.prevalence.value)} % [{low}, {high}] of all windows of these recordings")
        rows = [
            [
                f"{edge.at_least:.3f}",
                *(
                    f"{_percent(part.value)} [{_percent(part.low)}, {_percent(part.high)}]"
                    for part in (edge.precision, edge.recall)
                ),
            ]
            for edge in one.thresholds
        ]
        print_table(["from score", "precision", "recall"], rows)
        kept = "none of these" if one.at_least is None else f"{one.at_least:.3f}"
        print(f"At least {_percent(options.promise)} % are right from: {kept}")
