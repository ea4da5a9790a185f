"""`fieldmark backbones`: what can be used right now."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command("backbones", epilog="Example: `fieldmark backbones`, then `fieldmark fit ... --set backbone=NAME`")(
        backbones
    )


def backbones(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List backbones and whether they are downloaded.

    Looks at installed packages and at the cache of the hub (HF_HUB_CACHE); nothing is downloaded or loaded.

    A network of your own is a backbone too: `--set backbone=FOLDER` takes the run or model of `fit --method finetune`,
    or of `cnn` for recordings, written with a slash, with its weights, size and preprocessing.
    """
    from fieldmark.cli.output import print_json, print_table
    from fieldmark.features.available import available_backbones

    available = available_backbones()
    if as_json:
        print_json([{**asdict(one), "weights": None if one.weights is None else str(one.weights)} for one in available])
        return
    rows = [
        [one.name, state, one.about, one.license or "", one.trained_on or "", one.repository or ""]
        for one in available
        for state in ["ready" if one.ready else "not downloaded"]
    ]
    print_table(["--set backbone=", "", "", "license", "trained on", "repository of the hub"], rows, numbers=False)
    to_do: dict[str, list[str]] = {}
    for one in available:
        if one.to_do:
            to_do.setdefault(one.to_do, []).append(one.name)
    for advice, names in to_do.items():
        listed = ", ".join(names) if len(names) < 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
        print(f"{listed}: {advice}.")
    print("Any other name of timm works the same way, and openclip:NAME, hf-hub:ORG/NAME and local-dir:FOLDER.")
    print("A network of your own, from Python: fieldmark.fit(..., backbone=MODULE) (docs/bring-your-own-model.md).")
    print(
        "A network that `fit --method finetune` (or cnn) has trained is named by its run or model: runs/NAME, ./NAME."
    )
