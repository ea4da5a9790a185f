"""`fieldmark models`: what a model is, and models on the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(
        help="Show a model card; push to or pull from the hub.",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        epilog="Example: `fieldmark models show runs/folder-linear`",
    )
    group.command("show", epilog="Example: `fieldmark models show runs/folder-linear`")(show)
    group.command("push", epilog="Example: `fieldmark models push runs/folder-finetune me/my-birds --license mit`")(
        push
    )
    group.command("pull", epilog="Example: `fieldmark models pull hf://me/my-birds --out my-birds`")(pull)
    app.add_typer(group, name="models")


def show(
    model: Annotated[str, typer.Argument(help="The folder of a model or a run, or hf://owner/name.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print a model's card."""
    from fieldmark.cli.output import print_json
    from fieldmark.models import load_model

    opened = load_model(model)
    if as_json:
        facts = {"method": opened.name, "labels": len(opened.labels), "license": opened.license, **opened.trained}
        print_json(facts)
    else:
        print(opened.card())


def push(
    model: Annotated[str, typer.Argument(help="The folder of a model, or of the run that made it.")],
    name: Annotated[str, typer.Argument(help="Where to: owner/name.")],
    license: Annotated[str, typer.Option(help="The terms of use, as the hub names them (cc-by-nc-4.0, mit, ...).")],
    private: Annotated[bool, typer.Option("--private", help="Keep a new repository private.")] = False,
) -> None:
    """Upload a model with its card to the hub."""
    import tempfile
    from dataclasses import replace

    from fieldmark.errors import MisuseError
    from fieldmark.methods.base import NOT_STATED
    from fieldmark.models import hub, load_model

    opened = load_model(model)
    if opened.license not in (NOT_STATED, license):
        raise MisuseError(f"This model came with the license {opened.license}; it cannot be pushed under {license}.")
    with tempfile.TemporaryDirectory() as folder:
        replace(opened, license=license).save(Path(folder))
        print(hub.push(Path(folder), name, private=private))


def pull(
    address: Annotated[str, typer.Argument(help="hf://owner/name, or hf://owner/name@revision.")],
    out: Annotated[Path, typer.Option(help="The folder to write.")],
) -> None:
    """Download a model from the hub into a folder."""
    import shutil

    from fieldmark.models import hub, load_model
    from fieldmark.storage.files import appearing_folder

    copy = hub.pull(address)
    load_model(copy)  # refuses what is no model of ours
    with appearing_folder(out) as folder:
        shutil.copytree(copy, folder, dirs_exist_ok=True)
    print(f"model in {out}; answer photos with it: fieldmark predict {out} photo.jpg")
