"""`fieldmark demo`: the whole way in one command."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fieldmark.scoring import Scorecard


def add_to(app: typer.Typer) -> None:
    app.command("demo", epilog="Example: `fieldmark demo --out demo`")(demo)


def demo(
    out: Annotated[Path, typer.Option(help="The folder for the world, the runs and the report.")] = Path("demo"),
    seed: Annotated[int, typer.Option(min=0, help="The seed of the world.")] = 0,
) -> None:
    """Simulate a tiny dataset, fit and score baselines, and write a report."""
    from fieldmark.cli.output import print_scorecards
    from fieldmark.registry import require

    module = require("fieldmark.suites.demo", "The demo")
    made = module.run_demo(out, seed=seed)  # type: ignore[attr-defined]
    print_scorecards({name: _in_short(result.scorecard) for name, result in made.runs.items()})
    print(f"report in {made.report}")
    model = made.runs["linear"].folder
    print(f"identify photos of its simulated species: fieldmark identify --serve --model {model}")
    if find_spec("fieldmark_challenge"):
        print(f"the platform with that model: fieldmark serve --model {model}")


def _in_short(card: Scorecard) -> Scorecard:
    """The scorecard with one metric of each kind; the report has the same by other conventions."""
    kinds = {card.title(metric).partition(",")[0]: metric for metric in reversed(card.metrics)}
    return replace(card, metrics={metric: card.metrics[metric] for metric in card.metrics if metric in kinds.values()})
