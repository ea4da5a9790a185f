"""How answers look in a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from fieldmark.scoring import Score, Scorecard


def print_json(data: Any) -> None:
    """Writes one JSON document to standard output."""
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str | None = None) -> None:
    """Writes a table; without a terminal it is as wide as it needs to be."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number == 0 else "right", no_wrap=number == 0)
    for row in rows:
        table.add_row(*row)
    console = Console()
    if not console.is_terminal:
        console = Console(width=200)
    console.print(table)


def score_text(score: Score) -> str:
    """A score in percent with its interval.

    >>> score_text(Score(0.5, 0.4, 0.6, "jackknife-t"))
    '50.0 [40.0, 60.0]'
    """
    if score.low is None or score.high is None:
        return f"{100 * score.value:.1f} [no interval]"
    return f"{100 * score.value:.1f} [{100 * score.low:.1f}, {100 * score.high:.1f}]"


def print_scorecards(scorecards: Mapping[str, Scorecard]) -> None:
    """Writes a table with one row per scorecard and one column per metric, and a line on what it rests on."""
    first = next(iter(scorecards.values()))
    rows = [
        [name, *(score_text(card.metrics[metric]) for metric in first.metrics)] for name, card in scorecards.items()
    ]
    simulated = ", simulated data" if first.provenance.get("simulated") else ""
    print_table(["", *first.metrics], rows)
    print(
        f"percent [95 % interval] on {first.split}: {first.items} items, {first.units} independent units, "
        f"{first.classes} classes{simulated}"
    )
