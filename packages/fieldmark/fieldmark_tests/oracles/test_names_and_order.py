"""Names and the order of rows, columns and classes carry no meaning, but where ties are decided by it.

The cases here have no tied probabilities of snakes and no tied scores of places, since those are decided by the order
of the classes and of the lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from fieldmark.errors import InputError
from fieldmark_tests.oracles.comparing import TABLE_BENCHMARKS, differences, draw, report, score_case, values_of
from fieldmark_tests.oracles.lists import draw_places
from fieldmark_tests.oracles.photos import FORMS, draw_snakes
from fieldmark_tests.oracles.programs import known_labels
from fieldmark_tests.oracles.tables import UNKNOWN, Case, Table

SEEDS = range(3000, 3003)
COLUMNS_IN_ANY_ORDER = ("fungiclef-2023", "snakeclef-2020")


def draw_untied(benchmark: str, seed: int) -> Case:
    """A case in which neither the order of lines nor that of classes decides anything."""
    rng = Random(f"untied {benchmark} {seed}")
    if benchmark == "snakeclef-2020":
        return draw_snakes(rng, ties=False)
    return draw_places(rng, ties=False) if benchmark == "geolifeclef-2020" else draw(benchmark, seed)


def shuffled(rng: Random, table: Table) -> Table:
    return table.with_rows(rng.sample(table.rows, len(table.rows)))


def shuffled_columns(rng: Random, table: Table) -> Table:
    return table.with_columns(rng.sample(table.columns, len(table.columns)))


def with_rows_shuffled(case: Case, rng: Random) -> Case:
    return case.with_tables({name: shuffled(rng, table) for name, table in case.tables().items()})


def with_columns_of_tables_shuffled(case: Case, rng: Random) -> Case:
    tables = {name: table for name, table in case.tables().items() if name != "run" and table.header}
    return case.with_tables({name: shuffled_columns(rng, table) for name, table in tables.items()})


def with_labels_renamed(case: Case, rng: Random) -> Case:
    """Every class bears the name of another one."""
    labels = known_labels(case)
    return renamed(case, dict(zip(labels, rng.sample(labels, len(labels)), strict=True)), {})


def with_items_renamed(case: Case, rng: Random) -> Case:
    """Every item (or recording) has a new id."""
    table = case.truth if case.media is None else case.media
    ids = table.column("id" if case.media is None else "MediaId")
    return renamed(case, {}, {name: f"new {number}.jpg" for number, name in enumerate(rng.sample(ids, len(ids)))})


def renamed(case: Case, label_of: Mapping[str, str], item_of: Mapping[str, str]) -> Case:
    """The case with other names for labels and items, in every table."""
    tables = {name: renamed_columns(table, label_of, item_of) for name, table in case.tables().items()}
    if case.benchmark == "snakeclef-2020":
        columns = tuple(label_of.get(name, name) for name in case.run.columns)
        tables["run"] = replace(tables["run"], columns=columns)
    if case.benchmark in FORMS or "Predicted" in case.run.columns:
        tables["run"] = renamed_lists(case, label_of, item_of)
    return case.with_tables(tables)


def renamed_columns(table: Table, label_of: Mapping[str, str], item_of: Mapping[str, str]) -> Table:
    """A table with other names in the columns that hold labels or ids."""
    items = ("id", "MediaId", "hashed_id", "ObservationId", "observation_id")
    labels = ("label", "ClassId", "species_id")
    name_of = [item_of if name in items else label_of if name in labels else {} for name in table.columns]
    return table.with_rows(
        tuple(names.get(field, field) for names, field in zip(name_of, row, strict=True)) for row in table.rows
    )


def renamed_lists(case: Case, label_of: Mapping[str, str], item_of: Mapping[str, str]) -> Table:
    """A run of ranked lists with other names in the lists."""
    separator = FORMS[case.benchmark].separator if case.benchmark in FORMS else " "
    lists = ("predicted", "class_id", "predictions", "Category", "Predicted")
    rows = []
    for row in case.run.rows:
        fields = []
        for name, field in zip(case.run.columns, row, strict=True):
            listed = separator.join(label_of.get(label, label) for label in field.split(separator))
            fields.append(listed if name in lists else item_of.get(field, field))
        rows.append(tuple(fields))
    return case.run.with_rows(rows)


CHANGES = [with_rows_shuffled, with_columns_of_tables_shuffled, with_labels_renamed, with_items_renamed]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("benchmark", TABLE_BENCHMARKS)
def test_the_score_stays_the_same(benchmark: str, change: Callable[[Case, Random], Case], tmp_path: Path) -> None:
    wrong: list[str] = []
    for seed in SEEDS:
        case = draw_untied(benchmark, seed)
        changed = change(case, Random(seed))
        before, after = (values_of(score_case(one, tmp_path)) for one in (case, changed))
        wrong += report(benchmark, seed, differences(after, before))
    assert not wrong, "\n".join(wrong)


def test_renaming_changes_every_table() -> None:
    for benchmark in TABLE_BENCHMARKS:
        case = draw(benchmark, 3000)
        labels, items = with_labels_renamed(case, Random(0)), with_items_renamed(case, Random(0))
        assert labels.truth != case.truth or set(case.truth.column("label")) == {UNKNOWN}
        assert labels.run != case.run and items.run != case.run and items.truth != case.truth


@pytest.mark.parametrize("benchmark", COLUMNS_IN_ANY_ORDER)
def test_the_columns_of_a_run_may_come_in_any_order(benchmark: str, tmp_path: Path) -> None:
    for seed in SEEDS:
        case = draw_untied(benchmark, seed)
        first, *others = case.run.columns
        rng = Random(seed)
        if benchmark == "snakeclef-2020":
            run = case.run.with_columns((first, *rng.sample(others, len(others))))
        else:
            run = shuffled_columns(rng, case.run)
        before, after = (values_of(score_case(one, tmp_path)) for one in (case, replace(case, run=run)))
        assert not differences(after, before), f"{benchmark}, seed {seed}"


@pytest.mark.parametrize("benchmark", [name for name in TABLE_BENCHMARKS if name not in COLUMNS_IN_ANY_ORDER])
def test_elsewhere_columns_in_another_order_are_refused(benchmark: str, tmp_path: Path) -> None:
    case = draw(benchmark, 3000)
    reverse = case.run.with_columns(reversed(case.run.columns))
    with pytest.raises(InputError, match=r"run\.csv"):
        score_case(replace(case, run=reverse), tmp_path)


@pytest.mark.parametrize("column", ["first", "last"])
def test_equal_probabilities_go_to_the_class_that_is_listed_first(column: str, tmp_path: Path) -> None:
    names = ("boa", "cobra")
    case = Case(
        "snakeclef-2020",
        Table(("hashed_id", *names), (("1", "0.5", "0.5"),)),
        Table(("id", "label"), (("1", "boa"),)),
        Table(("label",), tuple((name,) for name in (names if column == "first" else names[::-1]))),
    )
    assert score_case(case, tmp_path).metrics["top_1"].value == (1.0 if column == "first" else 0.0)
