"""`fieldmark demo`: the whole way in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command("demo", epilog="Example: `fieldmark demo --out demo`")(demo)


def demo(
    out: Annotated[Path, typer.Option(help="The folder for the world, the runs and the report.")] = Path("demo"),
    seed: Annotated[int, typer.Option(min=0, help="The seed of the world.")] = 0,
) -> None:
    """Make a tiny world, fit baselines to it, score them, and write a report."""
    from fieldmark.cli.output import print_scorecards
    from fieldmark.registry import require

    module = require("fieldmark.suites.demo", "The demo")
    made = module.run_demo(out, seed=seed)  # type: ignore[attr-defined]
    print_scorecards({name: result.scorecard for name, result in made.runs.items()})
    print(f"report in {made.report}")
    model = made.runs["linear"].folder
    print(f"a page that names photos of its simulated species: fieldmark identify --serve --model {model}")
    print(f"the platform with that page: fieldmark serve --model {model}")
