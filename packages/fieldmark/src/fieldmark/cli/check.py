"""`fieldmark check`: a release against what is published about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldmark.cli import completion

if TYPE_CHECKING:
    from fieldmark.identification.review.label_noise import LabelDoubts
    from fieldmark.releases.checks import CheckReport

SHOWN = 20


def add_to(app: typer.Typer) -> None:
    app.command("check", epilog="Example: `fieldmark check fungitastic data/FungiTastic`")(check)


def check(
    name: Annotated[
        str, typer.Argument(help="The dataset (`fieldmark list datasets`).", autocompletion=completion.datasets)
    ],
    root: Annotated[Path, typer.Argument(help="The root of the release.")],
    media: Annotated[
        bool | None,
        typer.Option(
            "--media/--no-media",
            "--photos/--no-photos",
            help="Decode every photo or recording completely; the default for your own local files.",
        ),
    ] = None,
    near_duplicates: Annotated[
        bool,
        typer.Option("--near-duplicates", help="Also find near-duplicate photos across parts or classes."),
    ] = False,
    labels: Annotated[
        bool,
        typer.Option("--labels", help="Also list labels that cross-validated models doubt."),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="With --labels: a folder for all of them, for `fieldmark review`.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="With --labels: a setting of the features, or l2."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check a release or your own data: counts, missing and broken files, leaks.

    Exit code 1 where something is broken or leaking, copies of photos in two parts among it.
    A label that is doubted is a question and not a fault.
    """
    from fieldmark.benchmarks import BENCHMARKS
    from fieldmark.cli.output import print_json
    from fieldmark.errors import InputError, MisuseError
    from fieldmark.releases import release_of
    from fieldmark.releases.checks import CHECKS, not_looked_for
    from fieldmark.releases.record import record_of
    from fieldmark.storage.addresses import is_address

    if (out is not None or settings) and not labels:
        raise MisuseError("--out and --set go with --labels.")
    if name not in CHECKS and name in BENCHMARKS:
        name = BENCHMARKS[name].dataset  # several editions ask about one release
    if media is None:
        known = record_of(name)
        media = known is not None and known.homepage is None and not is_address(root)
    report = CHECKS[name](release_of(name, root), media=media, near_duplicates=near_duplicates)
    if not any(number for part in report.counts for number in asdict(part.found).values()):
        hint = "Check the path, and that it is a release of this dataset."
        raise InputError(report.root, found=f"no part of {name}", expected="the root of a release", hint=hint)
    not_sought = not_looked_for(report, media=media, near_duplicates=near_duplicates)
    doubts = _doubts(name, root, settings or [], out) if labels else None
    if as_json:
        others = {"labels": doubts.to_json()} if doubts else {}
        print_json({**report.to_json(), "not_looked_for": not_sought, **others})
    else:
        _print(report, not_sought)
        if doubts is not None:
            _print_doubts(doubts, out)
    if not report.sound:
        raise typer.Exit(1)


def _print(report: CheckReport, not_sought: Sequence[str]) -> None:
    from fieldmark.cli.output import print_table

    rows = []
    for part in report.counts:
        rows.append((part.part, asdict(part.found)))
        if not report.simulated:
            rows += [(f"  {source}", asdict(count)) for source, count in part.published.items()]
    counted = [name for name in (rows[0][1] if rows else {}) if any(count[name] is not None for _, count in rows)]
    table = [[title, *("" if count[name] is None else f"{count[name]:,}" for name in counted)] for title, count in rows]
    print_table(["part", *(name.replace("_", " ") for name in counted)], table)
    if report.simulated:
        print("simulated release: not compared with the published counts")
    for problem in report.problems:
        print(f"{problem.severity}: {problem.what} ({problem.times:,})")
        for place in problem.places[:SHOWN]:
            print(f"    {place}")
        if len(problem.places) > SHOWN:
            print(f"    and {len(problem.places) - SHOWN:,} more; --json lists all of them")
    if not report.problems:
        print("no files missing or broken, no leaks")
    for what in not_sought:
        print(f"not checked: {what}")


def _doubts(name: str, root: Path, settings: list[str], out: Path | None) -> LabelDoubts:
    from fieldmark.identification.review.answer_folders import refuse_occupied
    from fieldmark.identification.review.label_noise import doubt_labels, refuse_far_review
    from fieldmark.settings import parse_pairs

    if out is not None:
        refuse_far_review(root)
        refuse_occupied(out)
    doubts = doubt_labels(name, root, settings=parse_pairs(settings))
    if out is not None:
        doubts.write(out)
    return doubts


def _print_doubts(doubts: LabelDoubts, out: Path | None) -> None:
    from fieldmark.cli.output import print_table

    entries = list(doubts.answers.entries())
    print(
        f"{len(entries):,} of {doubts.items:,} labels are doubted by cross-validated models "
        f"(accuracy {100 * doubts.agree:.0f} %)"
    )
    if doubts.few:
        print(f"note: {doubts.few:,} labels were not checked: their classes have fewer than three items")
    rows = [
        [str(entry.files[0]), entry.given or "", entry.name, f"{100 * (entry.probability or 0):.0f} %"]
        for entry in entries[:SHOWN]
    ]
    if rows:
        print_table(["file", "label", "could be", "probability"], rows)
    if len(entries) > SHOWN:
        print(f"and {len(entries) - SHOWN:,} more{'' if out else '; all of them with --out FOLDER'}")
    if out is not None:
        print(f"all in {out}; review them: fieldmark review {out}")
    if doubts.simulated:
        print("simulated release")
