"""A reproduced table for people and programs: Markdown, HTML, JSON, and plain rows for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from fieldmark.errors import MissingExtraError
from fieldmark.registry import require
from fieldmark.scoring import Score
from fieldmark.storage.files import appearing_file, write_json
from fieldmark.suites.tables.cells import CellOutcome, Reproduced
from fieldmark.version import __version__

MARKDOWN, HTML, JSON = "table.md", "table.html", "table.json"
MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"
MEANINGLESS = (
    "The data are simulated: a comparison with the numbers of the paper would be meaningless, and only ours are shown."
)
ABOUT = (
    "Percent with 95 % intervals over observations. The paper gives no intervals; a number of the paper inside ours "
    "does not contradict it."
)


def write_pages(reproduced: Reproduced, out: str | Path) -> list[Path]:
    """Writes the table as Markdown, as JSON and, where the extra `report` is installed, as HTML."""
    folder = Path(out)
    with appearing_file(folder / MARKDOWN) as partial:
        partial.write_text(to_markdown(reproduced), encoding="utf-8")
    write_json(folder / JSON, to_json(reproduced))
    written = [folder / MARKDOWN, folder / JSON]
    try:
        page = to_html(reproduced)
    except MissingExtraError:
        return written  # hours of runs are not lost because a template engine is missing
    with appearing_file(folder / HTML) as partial:
        partial.write_text(page, encoding="utf-8")
    return [*written, folder / HTML]


def groups_of(reproduced: Reproduced) -> dict[str, list[CellOutcome]]:
    """The outcomes by the part of the table they stand in."""
    groups: dict[str, list[CellOutcome]] = {}
    for outcome in reproduced.outcomes:
        groups.setdefault(outcome.cell.group, []).append(outcome)
    return groups


def notes_of(reproduced: Reproduced) -> list[str]:
    """What a reader must know, what failed, and what was run otherwise than declared."""
    notes = [MEANINGLESS] if reproduced.simulated else [ABOUT, *reproduced.table.notes]
    said: dict[str, list[str]] = {}
    for outcome in reproduced.outcomes:
        if outcome.problem:
            said.setdefault(outcome.problem, []).append(outcome.cell.name)
        elif outcome.changed:
            changed = ", ".join(f"{key}={value}" for key, value in outcome.changed.items())
            said.setdefault(f"run otherwise than declared (*), with {changed}.", []).append(outcome.cell.name)
    return [*notes, *(f"{', '.join(names)}: {sentence}" for sentence, names in said.items())]


def rows_of(reproduced: Reproduced, outcomes: Sequence[CellOutcome]) -> list[list[str]]:
    """One row per cell: its name in the table, then one text per metric."""
    papers, metrics = not reproduced.simulated, reproduced.table.metrics
    rows = []
    for outcome in outcomes:
        states = (outcome.state, *[DASH] * (len(metrics) - 1))  # said once in a row without scores
        texts = [
            _text(outcome, metric, state=state, papers=papers) for metric, state in zip(metrics, states, strict=True)
        ]
        rows.append([_title(outcome), *texts])
    return rows


def to_markdown(reproduced: Reproduced) -> str:
    """The table for a README."""
    table = reproduced.table
    parts = [f"# {table.source}\n\n{table.title}.\n"]
    for group, outcomes in groups_of(reproduced).items():
        head = ["", *table.metrics]
        lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows_of(reproduced, outcomes)]
        title = f"## {group}\n\n" if group else ""
        parts.append(title + "\n".join(f"| {' | '.join(_cell(text) for text in line)} |" for line in lines) + "\n")
    parts.append("\n".join(f"- {note}" for note in notes_of(reproduced)) + "\n")
    return "\n".join(parts)


def to_json(reproduced: Reproduced) -> dict[str, Any]:
    """The table as plain data. On simulated data the numbers of the paper are left out."""
    cells = []
    for outcome in reproduced.outcomes:
        card = outcome.scorecard
        cells.append(
            {
                "name": outcome.cell.name,
                "group": outcome.cell.group,
                "row": outcome.cell.row,
                "state": outcome.state,
                "problem": outcome.problem,
                "changed": dict(outcome.changed or {}),
                "split": None if card is None else card.split,
                "ours": {} if card is None else card.to_json()["metrics"],
                "paper": {}
                if reproduced.simulated
                else {reported.source: reported.values for reported in outcome.cell.reported},
            }
        )
    return {
        "table": reproduced.table.name,
        "source": reproduced.table.source,
        "simulated": reproduced.simulated,
        "notes": notes_of(reproduced),
        "code_version": __version__,
        "cells": cells,
    }


def to_html(reproduced: Reproduced) -> str:
    """The table as a page of its own."""
    markup: Any = require("fieldmark.reports.markup", "A page")
    from markupsafe import Markup

    style = resources.files("fieldmark.reports").joinpath("templates", "page.css").read_text(encoding="utf-8")
    groups = [
        {"title": group, "rows": [_html_row(reproduced, outcome) for outcome in outcomes]}
        for group, outcomes in groups_of(reproduced).items()
    ]
    page: str = markup.render(
        "reproduced.html.j2",
        table=reproduced.table,
        simulated=reproduced.simulated,
        meaningless=MEANINGLESS,
        groups=groups,
        notes=[note for note in notes_of(reproduced) if note != MEANINGLESS],
        style=Markup(style),
        version=__version__,
    )
    return page


def _html_row(reproduced: Reproduced, outcome: CellOutcome) -> dict[str, Any]:
    scores = []
    for metric in reproduced.table.metrics:
        paper = [] if reproduced.simulated else _papers(outcome, metric)
        score = _score(outcome, metric)
        difference = _difference(score, paper[0][1]) if score is not None and paper else None
        listed = ", ".join(f"{100 * value:.1f}" + (f" ({source})" if len(paper) > 1 else "") for source, value in paper)
        scores.append({"score": score, "paper": listed, "difference": difference})
    return {
        "name": _title(outcome),
        "cell": outcome.cell.name,
        "state": outcome.state,
        "problem": outcome.problem,
        "split": outcome.scorecard.split if outcome.scorecard else None,
        "scores": scores,
    }


def _text(outcome: CellOutcome, metric: str, *, state: str, papers: bool) -> str:
    """Ours with its interval (or the state of the cell), the paper's number, and the difference."""
    score = _score(outcome, metric)
    ours = state if score is None else _figures(score)
    if score is not None and outcome.scorecard is not None and outcome.scorecard.split != "test":
        ours += f" on {outcome.scorecard.split}"
    theirs = _papers(outcome, metric) if papers else []
    if not theirs:
        return ours
    listed = " and ".join(f"{100 * value:.1f}" for _, value in theirs)
    return f"{ours}; paper {listed}" + (f" ({_difference(score, theirs[0][1])})" if score is not None else "")


def _title(outcome: CellOutcome) -> str:
    """The line of the table, with a star where the run is not the declared one."""
    return f"{outcome.cell.row} *" if outcome.changed else outcome.cell.row


def _score(outcome: CellOutcome, metric: str) -> Score | None:
    return None if outcome.scorecard is None else outcome.scorecard.metrics.get(metric)


def _papers(outcome: CellOutcome, metric: str) -> list[tuple[str, float]]:
    """The paper's values with their sources, each value once."""
    papers: dict[float, str] = {}
    for reported in outcome.cell.reported:
        if metric in reported.values:
            papers.setdefault(reported.values[metric], reported.source)
    return [(source, value) for value, source in papers.items()]


def _difference(score: Score, paper: float) -> str:
    """Ours less theirs, in points."""
    points = 100 * (score.value - paper)
    return f"{'+' if points >= 0 else MINUS}{abs(points):.1f}"


def _figures(score: Score) -> str:
    if score.low is None or score.high is None:
        return f"{100 * score.value:.1f} [no interval]"
    return f"{100 * score.value:.1f} [{100 * score.low:.1f}, {100 * score.high:.1f}]"


def _cell(text: str) -> str:
    return text.replace("; paper", "<br>paper").replace("|", "\\|")
