"""The entry point: gathers the verbs and turns errors into sentences and exit codes."""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer

from fieldmark.cli import (
    ablate,
    adapt,
    backbones,
    challenge,
    check,
    compare,
    demo,
    episodes,
    export,
    fit,
    foreground,
    get,
    identify,
    listing,
    models,
    predict,
    report,
    reproduce,
    score,
    serve,
    split,
    submit,
    truth,
    worker,
    world,
)
from fieldmark.cli.plain_flags import PlainFlags
from fieldmark.errors import FieldmarkError, of_system
from fieldmark.version import __version__

INTERRUPTED = 130
INTERRUPTED_SENTENCE = (
    "fieldmark: interrupted. Nothing half-written is left; the same command goes on from checkpoints, features and "
    "downloads where there are some, and starts over elsewhere."
)

app = typer.Typer(
    name="fieldmark",
    help="Biodiversity-recognition benchmarks: fit a baseline, score it exactly, say how sure the score is.",
    cls=PlainFlags,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
for verb in (
    listing,
    get,
    world,
    check,
    truth,
    split,
    fit,
    adapt,
    predict,
    identify,
    score,
    compare,
    ablate,
    report,
    foreground,
    export,
    models,
    episodes,
    reproduce,
    backbones,
    serve,
    worker,
    challenge,
    submit,
    demo,
):
    verb.add_to(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Runs the command line. Exit code 0: done; 1: the input is at fault; 2: misuse; 130: interrupted."""
    try:
        app()
    except FieldmarkError as error:
        _refuse(error)
    except OSError as error:
        refused = of_system(error)
        if refused is None:
            raise
        _refuse(refused)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:  # typer turns an interrupt into this, without a word
            print(INTERRUPTED_SENTENCE, file=sys.stderr)
        raise


def _refuse(error: FieldmarkError) -> NoReturn:
    print(f"fieldmark: {error}", file=sys.stderr)
    sys.exit(error.exit_code)
