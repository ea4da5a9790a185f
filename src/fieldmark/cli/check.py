"""`fieldmark check`: a release against what is published about it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldmark.cli import completing

if TYPE_CHECKING:
    from fieldmark.datasets.checking import CheckReport


def add_to(app: typer.Typer) -> None:
    app.command("check", epilog="Example: `fieldmark check fungitastic data/FungiTastic`")(check)


def check(
    name: Annotated[
        str, typer.Argument(help="The dataset (`fieldmark list datasets`).", autocompletion=completing.datasets)
    ],
    root: Annotated[Path, typer.Argument(help="The root of the release.")],
    media: Annotated[
        bool, typer.Option("--media", "--photos", help="Also open every photo or recording to its end.")
    ] = False,
    near_duplicates: Annotated[
        bool,
        typer.Option("--near-duplicates", help="Also look for photos that look the same in two parts or classes."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Count what a release holds beside what is published, and list what is missing, broken or leaking.

    Exit code 1 where something is broken or leaking.
    """
    from fieldmark.cli.printing import print_json
    from fieldmark.datasets import release_of
    from fieldmark.datasets.checking import CHECKS
    from fieldmark.errors import InputError

    report = CHECKS[name](release_of(name, root), media=media, near_duplicates=near_duplicates)
    if not any(number for part in report.counts for number in asdict(part.found).values()):
        hint = "Is the path right, and the release of this dataset?"
        raise InputError(root, found=f"no part of {name}", expected="the root of a release", hint=hint)
    if as_json:
        print_json(report.to_json())
    else:
        _print(report)
    if not report.sound:
        raise typer.Exit(1)


def _print(report: CheckReport) -> None:
    from fieldmark.cli.printing import print_table

    rows = []
    for part in report.counts:
        rows.append((part.part, asdict(part.found)))
        if not report.simulated:
            rows += [(f"  {source}", asdict(count)) for source, count in part.published.items()]
    counted = [name for name in (rows[0][1] if rows else {}) if any(count[name] is not None for _, count in rows)]
    table = [[title, *("" if count[name] is None else f"{count[name]:,}" for name in counted)] for title, count in rows]
    print_table(["part", *(name.replace("_", " ") for name in counted)], table)
    if report.simulated:
        print("simulated release: the published counts are not shown beside it")
    for problem in report.problems:
        print(f"{problem.severity}: {problem.what} ({problem.times:,})")
        for place in problem.places:
            print(f"    {place}")
    if not report.problems:
        print("nothing is missing, broken or leaking")
