"""Random cases of the benchmarks in which a line answers an item: ranked labels, or a probability for each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from fieldmark_tests.oracles.drawing import (
    classes_table,
    draw_grid_score,
    draw_items,
    draw_labels,
    draw_truth,
    truth_table,
)
from fieldmark_tests.oracles.tables import UNKNOWN, Case, Row, Table


@dataclass(frozen=True)
class Form:
    """What a ranked run looks like, as `docs/challenges.md` has it.

    Args:
        columns: The header.
        at_least, at_most: How many labels a line lists.
        separator: What stands between two labels.
        unknown: Whether -1 is an answer and a truth.
        flag: The flag of the classes that its metrics need.
        by: The columns of the truth that metrics are shown by.
        lenient: Whether other ids and longer lists are passed over.
        more_columns: Whether other columns are passed over.
    """

    columns: Row = ("id", "predicted")
    at_least: int = 1
    at_most: int = 10
    separator: Literal[" ", "|"] = " "
    unknown: bool = False
    flag: str = ""
    by: Row = ()
    lenient: bool = False
    more_columns: bool = False


OPEN = ("id", "predicted", "unknown_score")
TEMPORAL = Form(OPEN, unknown=True, by=("month",))
VARIANTS = ("", "-day-batch", "-delayed-labels")
SEMI = Form(("Id", "Category"), at_most=5, by=("phylum",))
FORMS: dict[str, Form] = {
    "folder": Form(separator="|"),
    "occurrences": Form(separator="|"),
    "occurrences/places": Form(separator="|", at_most=30),
    "fungitastic/closed": Form(),
    "fungitastic/dna": Form(),
    "fungitastic-fewshot": Form(),
    "fungitastic-mini/closed": Form(),
    "fungitastic-mini/dna": Form(),
    "fungitastic/open": Form(OPEN, unknown=True),
    "fungitastic-mini/open": Form(OPEN, unknown=True),
    **{f"{name}/temporal{variant}": TEMPORAL for name in ("fungitastic", "fungitastic-mini") for variant in VARIANTS},
    **{f"fungitastic-mini/temporal-closed{variant}": Form(by=("month",)) for variant in VARIANTS},
    "fungitastic/cost-poison": Form(OPEN, unknown=True, flag="poisonous"),
    "fungitastic/cost-unknown": Form(OPEN, unknown=True),
    "fungitastic-mini/cost-poison": Form(OPEN, unknown=True, flag="poisonous"),
    "fungitastic-mini/cost-unknown": Form(OPEN, unknown=True),
    "fungiclef-2023": Form(("observationID", "class_id"), at_most=1, unknown=True, flag="poisonous", more_columns=True),
    "fungiclef-2025": Form(("observationId", "predictions")),
    "fgvcx-fungi-2018": Form(at_least=3, at_most=5, by=("usage",), lenient=True),
    "semi-inat-2021": SEMI,
    "semi-aves-2020": SEMI,
}


def draw_ranked(benchmark: str, rng: Random) -> Case:
    """A case of a benchmark with ranked labels."""
    form = FORMS[benchmark]
    labels = draw_labels(rng, rng.randint(max(form.at_least, 2), 12), any_text=form.separator == "|")
    items = draw_items(rng, rng.randint(5, 40))
    true = draw_truth(rng, items, labels, unknown=form.unknown)
    pool = [*labels, UNKNOWN] if form.unknown else labels
    accuracy = rng.choice((0.0, 0.3, 0.6, 0.9, 1.0))
    favorites = rng.sample(pool, rng.choice((1, len(pool), len(pool))))
    rows: list[Row] = []
    for item, label in zip(items, true, strict=True):
        first = label if rng.random() < accuracy else rng.choice(favorites)
        rows.append((item, form.separator.join(draw_list(rng, form, first, label, pool))))
    if form.lenient:
        rows += [(f"other {n}", form.separator.join(rng.sample(pool, 3))) for n in range(rng.choice((0, 0, 2)))]
    rng.shuffle(rows)
    listed = form.flag or rng.random() < 0.8
    classes = classes_table(rng, labels, flag=form.flag, unknown=form.unknown) if listed else None
    run = draw_further_columns(rng, form, rows, dict(zip(items, true, strict=True)))
    return Case(benchmark, run, truth_table(rng, items, true, by=form.by), classes)


def draw_list(rng: Random, form: Form, first: str, true: str, pool: Sequence[str]) -> list[str]:
    """A list of answers that begins with one; the true label may follow anywhere."""
    others = [label for label in pool if label != first]
    rng.shuffle(others)
    others.sort(key=lambda label: label == true and rng.random() < 0.3, reverse=True)
    longest = len(pool) if form.lenient else min(form.at_most, len(pool))
    return [first, *others[: rng.randint(form.at_least, longest) - 1]]


def draw_further_columns(rng: Random, form: Form, rows: Sequence[Row], true: dict[str, str]) -> Table:
    """The run: with a score for unknown where the format has one, with columns to pass over where it allows them."""
    columns, table = form.columns, [list(row) for row in rows]
    if "unknown_score" in columns:
        steps, help_given = rng.choice((4, 16, 1024)), rng.choice((0.0, 0.5, 1.0))
        for row in table:
            strange = help_given * (true.get(row[0]) == UNKNOWN) + draw_grid_score(rng, steps) - 0.5
            row.append(str(strange))
    if form.more_columns:
        columns = (rng.choice(("observationID", "observation_id", "observationId")), *columns[1:])
        if rng.random() < 0.3:
            columns, table = (*columns, "remark"), [[*row, "none"] for row in table]
        places = rng.sample(range(len(columns)), len(columns)) if rng.random() < 0.3 else range(len(columns))
        columns = tuple(columns[place] for place in places)
        table = [[row[place] for place in places] for row in table]
    return Table(columns, tuple(tuple(row) for row in table))


def draw_snakes(rng: Random, *, ties: bool = True) -> Case:
    """A case of SnakeCLEF: probabilities that need not sum to 1, with ties and zeros.

    Args:
        rng: What it is drawn with.
        ties: Whether two classes of a row may have the same probability.
    """
    labels = draw_labels(rng, rng.randint(2, 10))
    items = draw_items(rng, rng.randint(5, 30))
    true = draw_truth(rng, items, labels, unknown=False)
    accuracy, steps = rng.choice((0.0, 0.4, 0.8, 1.0)), rng.choice((4, 64, 1024)) if ties else 1 << 20
    columns = rng.sample(labels, len(labels))
    rows: list[Row] = []
    for item, label in zip(items, true, strict=True):
        scores = {name: draw_grid_score(rng, steps) for name in columns}
        if rng.random() < accuracy:
            scores[label] = 1.0
        if not any(scores.values()):
            scores[columns[0]] = 0.5
        rows.append((item, *(repr(scores[name]) for name in columns)))
    rng.shuffle(rows)
    classes = classes_table(rng, labels, flag=rng.choice(("", "poisonous"))) if rng.random() < 0.8 else None
    return Case("snakeclef-2020", Table(("hashed_id", *columns), tuple(rows)), truth_table(rng, items, true), classes)
