"""`fieldmark detections`: boxes or masks of instances against those of a file, as COCO scores them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command("detections", epilog="Example: `fieldmark detections objects.json results.json --boxes`")(detections)


def detections(
    truth: Annotated[Path, typer.Argument(help="COCO JSON with images, categories and annotations.")],
    results: Annotated[Path, typer.Argument(help="A list of COCO results with scores.")],
    boxes: Annotated[bool, typer.Option("--boxes", help="Compare boxes; masks if not given.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Score instances as COCO does (average precision at overlaps from 0.50 to 0.95), with intervals over images."""
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
