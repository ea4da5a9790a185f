"""The entry point: gathers the verbs and turns errors into sentences and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any, NoReturn

import typer

from fieldmark.cli.flags_and_paths import PlainFlags
from fieldmark.errors import FieldmarkError, MissingExtraError, of_system
from fieldmark.registry import Registry
from fieldmark.version import __version__

INTERRUPTED = 130
INTERRUPTED_SENTENCE = (
    "fieldmark: interrupted. No partial output is left; the same command resumes from checkpoints, features and "
    "downloads."
)

# The verbs, each with the module that adds it; `cli.panels` has them in the order of the help.
OWN_VERBS = {
    "list": "fieldmark.cli.list_names",
    "get": "fieldmark.cli.get",
    "world": "fieldmark.cli.world",
    "check": "fieldmark.cli.check",
    "truth": "fieldmark.cli.truth",
    "split": "fieldmark.cli.split",
    "cite": "fieldmark.cli.cite",
    "names": "fieldmark.cli.names",
    "fit": "fieldmark.cli.fit",
    "adapt": "fieldmark.cli.adapt",
    "calibrate": "fieldmark.cli.calibrate",
    "ensemble": "fieldmark.cli.ensemble",
    "detector": "fieldmark.cli.detector",
    "encoder": "fieldmark.cli.encoder",
    "predict": "fieldmark.cli.predict",
    "tile": "fieldmark.cli.tile",
    "identify": "fieldmark.cli.identify",
    "species-at": "fieldmark.cli.species_at",
    "review": "fieldmark.cli.review",
    "search": "fieldmark.cli.search",
    "score": "fieldmark.cli.score",
    "compare": "fieldmark.cli.compare",
    "ablate": "fieldmark.cli.ablate",
    "report": "fieldmark.cli.report",
    "foreground": "fieldmark.cli.foreground",
    "detections": "fieldmark.cli.detections",
    "export": "fieldmark.cli.export",
    "app": "fieldmark.cli.app",
    "models": "fieldmark.cli.models",
    "episodes": "fieldmark.cli.episodes",
    "suite": "fieldmark.cli.suite",
    "reproduce": "fieldmark.cli.reproduce",
    "backbones": "fieldmark.cli.backbones",
    "submit": "fieldmark.cli.submit",
    "demo": "fieldmark.cli.demo",
}
# Verbs of distributions that need not be installed, with the extra that brings each.
EXTRA_VERBS = {"serve": "server", "worker": "server", "challenge": "server"}
VERBS: Registry[Callable[[typer.Typer], None]] = Registry(
    "verb", {verb: (f"{module}:add_to", "") for verb, module in OWN_VERBS.items()}, "fieldmark.verbs"
)


@cache
def application(*verbs: str) -> typer.Typer:
    """The command line with the given verbs, or with all of them; each is a module that is imported here."""
    made = typer.Typer(
        name="fieldmark",
        help="Score species-recognition models the way challenge organizers do, with confidence intervals.",
        cls=PlainFlags,
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
    )
    for verb in verbs or VERBS:
        VERBS[verb](made)
    made.callback()(_options)
    return made


def __getattr__(name: str) -> Any:
    if name == "app":
        return application()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def asked_verbs(arguments: Sequence[str]) -> tuple[str, ...]:
    """The verb that a command line begins with, so that no other one is built; none where all are needed.

    >>> asked_verbs(["score", "folder", "run.csv"]), asked_verbs(["--help"]), asked_verbs(["scroe"])
    (('score',), (), ())
    """
    verbs = [verb for verb in arguments[:1] if not verb.startswith("-")]
    for verb in verbs:
        if verb in EXTRA_VERBS and verb not in VERBS:
            raise MissingExtraError(EXTRA_VERBS[verb], "fieldmark-challenge", f"`fieldmark {verb}`")
    return tuple(verb for verb in verbs if verb in VERBS)


def main() -> None:
    """Runs the command line. Exit code 0: done; 1: the input is at fault; 2: misuse; 130: interrupted."""
    try:
        application(*asked_verbs(sys.argv[1:]))()
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
