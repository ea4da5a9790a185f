"""How answers look in a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fieldmark.fitting.unknown_table import UnknownTable
    from fieldmark.scoring import Score, Scorecard

# Values that agree in so many digits are the same number, computed in another order.
SAME_DIGITS = 12


def print_json(data: Any) -> None:
    """Writes one JSON document to standard output."""
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = True) -> None:
    """Writes a table, numbers to the right; without a terminal it is as wide as it needs to be."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place and numbers else "left", no_wrap=place == 0)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # as text: brackets are not markup
    console = Console()
    if not console.is_terminal:
        console = Console(width=200)
    console.print(table)


def score_text(score: Score, *, percent: bool = True) -> str:
    """A score with its interval, in percent or as it is.

    >>> from fieldmark.scoring import Score
    >>> score_text(Score(0.5, 0.4, 0.6, "jackknife-t")), score_text(Score(3.25, 1, 5, "jackknife-t"), percent=False)
    ('50.0 [40.0, 60.0]', '3.250 [1.000, 5.000]')
    """
    from fieldmark.notebooks import shown_bounds

    value, low, high = shown_bounds(score.value, score.low, score.high, percent=percent)
    return f"{value} [{low}, {high}]" if low else f"{value} [no interval]"


def print_external_data(card: Scorecard) -> None:
    """Writes what of the items a run has read and what besides the release went into it, where the run says so."""
    from fieldmark.runs.provenance import external_data_in_words

    if card.provenance.get("modalities"):
        print(f"modalities: {', '.join(card.provenance['modalities'])}")
    if "external_data" in card.provenance:
        print(f"external data: {external_data_in_words(card.provenance['external_data'])}")
    if card.provenance.get("extra_annotations"):
        print(f"extra annotations: {'; '.join(card.provenance['extra_annotations'])}")


def print_scorecards(scorecards: Mapping[str, Scorecard]) -> None:
    """Writes a table with one row per scorecard and one column per metric, and a line on what it rests on.

    A metric by another convention (macro-F1 over all classes, over those present) that has the same values here as one
    before it is named below the table instead.
    """
    first = next(iter(scorecards.values()))
    shares = {metric for metric in first.metrics if first.is_share(metric)}
    same_as = _repeated(list(scorecards.values()))
    shown = [metric for metric in first.metrics if metric not in same_as]
    rows = [
        [_marked(name, card), *(score_text(card.metrics[metric], percent=metric in shares) for metric in shown)]
        for name, card in scorecards.items()
    ]
    simulated = ", simulated data" if first.provenance.get("simulated") else ""
    print_table(["", *shown], rows)
    for metric in dict.fromkeys(same_as.values()):
        repeated = [other for other, one in same_as.items() if one == metric]
        print(f"{' and '.join(repeated)}: the same as {metric} here")
    unit = "percent [95 % interval]" if shares >= set(first.metrics) else "[95 % interval], shares in percent,"
    print(
        f"{unit} on {first.split}: {first.items} items, {first.units} independent units, "
        f"{first.classes} classes{simulated}"
    )
    print_cautions([card.metrics for card in scorecards.values()])
    for name, card in scorecards.items():
        for remark in card.remarks:
            print(f"note: {f'{name}: ' if len(scorecards) > 1 else ''}{remark}")
    if "provisional" in first.conventions:
        print(f"note: {first.conventions['provisional']}")
    for digest in sorted({card.provenance["split"]["digest"] for card in scorecards.values() if _other_split(card)}):
        print(f"note: not the official split of {first.benchmark}, but one with the digest {digest}")
    tied = [name for name, card in scorecards.items() if card.rests_on_ties]
    if tied:
        print(
            f"note: {' and '.join(tied)} gives many segments the same score, and cmap puts the right ones first among "
            "equals: compare cmap_expected"
        )


def _repeated(cards: Sequence[Scorecard]) -> dict[str, str]:
    """Metrics with the values of an earlier metric of the same kind on all cards, each with that metric."""
    earlier: dict[tuple[str, tuple[float, ...]], str] = {}
    repeated = {}
    for metric in cards[0].metrics:
        kind, _, convention = cards[0].title(metric).partition(", ")
        values = tuple(round(card.metrics[metric].value, SAME_DIGITS) for card in cards)
        known = earlier.setdefault((kind, values), metric)
        if convention and known != metric:
            repeated[metric] = known
    return repeated


def _other_split(card: Scorecard) -> bool:
    """Whether a run was made with another split than that of its benchmark."""
    split = card.provenance.get("split")
    return split is not None and split.get("benchmark") != card.benchmark


def print_cautions(cards: Iterable[Mapping[str, Score]]) -> None:
    """Writes why to be careful with scores, once for each reason."""
    from fieldmark.scoring import cautions

    for reason, metrics in cautions(cards).items():
        print(f"note: {', '.join(metrics)}: {reason}")


def _marked(name: str, card: Scorecard) -> str:
    """The name of a run, with what it saw where that was more than one item."""
    from fieldmark.runs.provenance import UNKNOWN

    sees = card.provenance.get("sees")
    return name if sees in (None, "item", UNKNOWN) else f"{name} (sees the {sees})"


def print_unknown(table: UnknownTable) -> None:
    """Writes how well each score identifies the unknown: one row per score, one column per part, group and metric."""
    from fieldmark.fitting.unknown_table import ALL_UNKNOWN

    columns = [
        (f"{part}: {metric}" + ("" if group == ALL_UNKNOWN else f", {group}"), part, group, metric)
        for part, groups in table.scores.items()
        for group in groups
        for metric in ("roc_auc", *(("tnr_at_95_tpr",) if group == ALL_UNKNOWN else ()))
    ]
    print_table(
        ["score", *(title for title, *_ in columns)],
        [
            [
                f"{name} *" if name == table.chosen else name,
                *(score_text(table.scores[part][group][name][metric]) for _, part, group, metric in columns),
            ]
            for name in table.names
        ],
    )
    print(f"percent [95 % interval]; * the score of this run, {table.rule}")
