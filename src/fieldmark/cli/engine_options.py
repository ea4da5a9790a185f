"""The options that say which engine does the work, for every verb that works in blocks."""

from __future__ import annotations

from typing import Annotated

import typer

EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="local|ray",
        help="What does the work: this machine, or a Ray cluster (ray:cpus=2,gpus=0.25 for what each block takes).",
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address", help="With --engine ray: the cluster to join, auto for the one that `ray start` has started here."
    ),
]
