"""`fieldmark get`: a release, downloaded or found on disk."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fieldmark.releases.download.fetch import FileReport, Listed, Report
    from fieldmark.releases.download.manifest import Manifest


def add_to(app: typer.Typer) -> None:
    app.command(
        "get", epilog="Example: `fieldmark get fungitastic data/FungiTastic --only metadata --only photos,mini,300p`"
    )(get)


def get(
    name: Annotated[str, typer.Argument(help="The release: fungitastic, fgvcx-fungi-2018, semi-inat-2021, ...")],
    root: Annotated[Path | None, typer.Argument(help="The folder of the release; not needed with --list.")] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="TAG", help="A part (`--list` shows the tags); with commas: all of them at once; or all."),
    ] = None,
    found: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="A folder with files downloaded earlier.")
    ] = None,
    mirror: Annotated[list[str] | None, typer.Option(metavar="URL", help="A mirror to try first.")] = None,
    list_only: Annotated[bool, typer.Option("--list", help="Show the files without downloading.")] = False,
    keep_archives: Annotated[bool, typer.Option("--keep-archives", help="Keep archives after unpacking.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Download a release, verify and unpack it."""
    from fieldmark.cli.output import print_json
    from fieldmark.errors import MisuseError
    from fieldmark.releases.download.fetch import get as get_release
    from fieldmark.releases.download.fetch import list_files, manifest_of

    manifest = manifest_of(name)
    if root is None and not list_only:
        raise MisuseError(f"Name a folder: fieldmark get {name} ROOT, or --list to see what there is.")
    # The terms come first, and on standard error, so that --json stays one document.
    print(f"{manifest.name}: {manifest.homepage}\nlicense: {manifest.license}", file=sys.stderr)
    if list_only:
        files = list_files(manifest, root or Path(name), choose=only or ("all",), found=found or ())
        if as_json:
            print_json([asdict(file) for file in files])
        else:
            _print_listing(files)
            _print_by_hand(manifest, files)
        return
    assert root is not None  # refused above
    report = get_release(
        manifest, root, choose=only or (), mirrors=mirror or (), found=found or (), keep_archives=keep_archives
    )
    if as_json:
        print_json(report.to_json())
    else:
        _print_report(report, manifest.layout)
    if not report.complete:
        raise typer.Exit(1)


def _print_listing(files: Sequence[Listed]) -> None:
    from fieldmark.cli.output import print_table
    from fieldmark.releases.download.room import show_size

    rows = [
        [
            file.name,
            ("" if file.size_is_exact or file.size is None else "about ") + show_size(file.size),
            ", ".join(file.tags),
            file.checksum or "none published",
            file.standing,
        ]
        for file in files
    ]
    print_table(["file", "size", "tags", "checksum", ""], rows)


def _print_by_hand(manifest: Manifest, files: Sequence[Listed]) -> None:
    """Where to register and how the files must lie, where a person has to fetch them."""
    if any(file.standing == "by hand" for file in files):
        print(manifest.by_hand)
    if manifest.layout:
        print(f"It must lie on disk as:{manifest.layout}Then: fieldmark check {manifest.name} ROOT")


def _print_report(report: Report, layout: str) -> None:
    from fieldmark.cli.output import print_table

    print_table(["file", "", "checked by", "files"], [_row(file) for file in report.files])
    for file in report.files:
        for remark in file.remarks:
            print(f"{file.name}: {remark}" if not remark.startswith(f"{file.name}:") else remark, file=sys.stderr)
    there = sum(file.outcome != "failed" for file in report.files)
    print(f"{there} of {len(report.files)} files of {report.name} are in {report.root}")
    if report.complete:
        print(f"check it: fieldmark check {report.name} {report.root}")
    elif layout:
        print(f"It must lie on disk as:{layout}", end="")


def _row(file: FileReport) -> list[str]:
    from fieldmark.releases.download.room import show_size

    outcome: str = file.outcome
    if file.outcome == "downloaded":
        kept = f", {show_size(file.resumed_from)} were there" if file.resumed_from else ""
        outcome = f"downloaded {show_size(file.received)}{kept}"
    unpacked = f"{file.unpacked:,}" if file.unpacked else ""
    return [file.name, outcome, file.checked or "", unpacked]
