"""Programs of participants, run within walls: `fieldmark challenge run-code`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldmark.cli.challenge.options import Json, answer


def add_to(group: typer.Typer) -> None:
    """Adds the verb."""
    epilog = "Example: `fieldmark challenge run-code team.tar.gz --inputs secret-test --out team.csv`"
    group.command("run-code", epilog=epilog)(run_code)


def run_code(
    archive: Annotated[Path, typer.Argument(help="A zip or tar archive with run.sh in it.")],
    inputs: Annotated[Path, typer.Option(help="A folder with images/ and metadata.csv, and no labels.")],
    out: Annotated[Path, typer.Option(help="The run file to write.")],
    seconds: Annotated[int, typer.Option(min=1, help="How long the program may take.")] = 3600,
    memory: Annotated[int, typer.Option(min=64, help="MiB that it may use.")] = 8192,
    processes: Annotated[int, typer.Option(min=2, help="How many processes it may start.")] = 64,
    disk: Annotated[int, typer.Option(min=1, help="MiB that it may write.")] = 1024,
    podman: Annotated[str | None, typer.Option(help="Use Podman with this image in place of bubblewrap.")] = None,
    as_json: Json = False,
) -> None:
    """Run the program of a participant on hidden inputs: no network, no labels, nothing kept but its predictions."""
    from fieldmark.challenge.coding.runners import BubblewrapRunner, CodeLimits, PodmanRunner
    from fieldmark.challenge.coding.running import run_archive

    runner = PodmanRunner(podman) if podman else BubblewrapRunner()
    limits = CodeLimits(float(seconds), memory, processes, disk)
    size = run_archive(archive, inputs, out, runner=runner, limits=limits)
    answer(as_json, {"predictions": str(out), "bytes": size}, f"{size} bytes of predictions in {out}")
