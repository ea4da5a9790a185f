"""`fieldmark foreground`: does the model look at the organism?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldmark.cli.options import DrawSeed, Release

if TYPE_CHECKING:
    from fieldmark.suites.foreground import ForegroundStudy

EXAMPLE = "Example: `fieldmark foreground folder --data my-photos --masks saliency --out foreground.html`"


def add_to(app: typer.Typer) -> None:
    app.command("foreground", epilog=EXAMPLE)(foreground)


def foreground(
    benchmark: Annotated[str, typer.Argument(help="A benchmark with one label for each photo.")],
    data: Release,
    masks: Annotated[
        str, typer.Option(help="Where masks come from: release, saliency, sam, or a folder or file of masks.")
    ] = "release",
    out: Annotated[Path | None, typer.Option(help="Write a page (.html) as well.")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the features: size=160."),
    ] = None,
    seed: DrawSeed = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Compare a classifier on whole photos, the object, its background and its parts."""
    from fieldmark.cli.output import print_json, print_table
    from fieldmark.features.settings import FeatureSettings
    from fieldmark.settings import configure, parse_pairs
    from fieldmark.suites.foreground import study_foreground, write_page

    settings = configure(parse_pairs(setting or []), FeatureSettings)[0]
    study = study_foreground(benchmark, data, masks=masks, settings=settings, seed=seed)
    if out is not None:
        write_page(study, out)
    if as_json:
        print_json(study.to_json())
        return
    print_table(["learned from", "shown", study.metric, "against whole photos"], _lines(study))
    for part, (number, photos) in study.left_out.items():
        if number:
            print(f"{number:,} of {photos:,} photos of {part} have no mask and are left out")
    if study.simulated:
        print("simulated data")


def _lines(study: ForegroundStudy) -> list[list[str]]:
    lines = []
    for row in study.rows:
        score = row.card.metrics[study.metric]
        bounds = "" if score.low is None else f" [{100 * score.low:.1f}, {100 * (score.high or 0):.1f}]"
        apart = ""
        if row.difference is not None:
            value, low, high = row.difference
            apart = f"{100 * value:+.1f}" + ("" if low is None else f" [{100 * low:+.1f}, {100 * (high or 0):+.1f}]")
        lines.append([row.learned, row.shown, f"{100 * score.value:.1f}{bounds}", apart])
    return lines
