"""Options that several verbs have, each told once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldmark.cli import completion

BenchmarkName = Annotated[
    str, typer.Argument(help="The benchmark (`fieldmark list benchmarks`).", autocompletion=completion.benchmarks)
]
Release = Annotated[Path, typer.Option(help="The root of the release.")]
ReleaseOrPhotos = Annotated[Path, typer.Option(help="The root of the release, or of your photos.")]
MethodSettings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the method or its features.")
]
DrawSeed = Annotated[
    int, typer.Option(min=0, help="The seed of random splits, where the release has no splits of its own.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the folder if it exists.")]


def _trust(context: typer.Context, value: bool) -> bool:
    """Trusts code for as long as the command runs."""
    from fieldmark.sandbox.trusted_code import trusting_code

    context.with_resource(trusting_code(value))
    return value


TrustCode = Annotated[
    bool,
    typer.Option(
        "--trust-code",
        callback=_trust,
        help="Load pickled networks and estimators. They can run any code: use it only if you trust their maker.",
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="local|ray",
        help="Where to compute: this machine, or a Ray cluster (ray:cpus=2,gpus=0.25 for what each block takes).",
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address",
        help="With --engine ray: HOST:PORT of the cluster to join, auto for the one that `ray start` has started here; "
        "else RAY_ADDRESS, or this machine alone.",
    ),
]
IdentifySeconds = Annotated[
    int,
    typer.Option(
        "--identify-seconds",
        envvar="FIELDMARK_IDENTIFY_SECONDS",
        min=1,
        help="Longest recording per request on the identify page, in seconds.",
    ),
]
IdentifyQuestions = Annotated[
    int,
    typer.Option(
        "--identify-questions",
        envvar="FIELDMARK_IDENTIFY_QUESTIONS",
        min=1,
        help="Requests per address in ten minutes on the identify page.",
    ),
]
