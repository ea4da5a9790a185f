"""A row too many is refused; a row too few is refused, or changes exactly what it should."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from fieldmark.errors import InputError
from fieldmark_tests.oracles.comparing import TABLE_BENCHMARKS, differences_of_case, draw, report, score_case
from fieldmark_tests.oracles.tables import Case, Row

SEEDS = range(4000, 4010)
# In these formats an item may have no line at all.
SILENCE_ALLOWED = ("plantclef-2020", "geolifeclef-2020", "birdclef-2020")


def may_be_silent(case: Case) -> bool:
    return case.benchmark in SILENCE_ALLOWED and case.run.columns != ("Id", "Predicted")


def asked_rows(case: Case) -> list[Row]:
    """The rows of a run about items that the truth has."""
    ids = set(case.truth.column("MediaId" if case.media is not None else "id"))
    return [row for row in case.run.rows if ids & set(row)]


def rows_to_delete(case: Case) -> list[Row]:
    """The rows that may go without leaving a gap in the ranks of an observation."""
    rows = asked_rows(case)
    if case.benchmark != "plantclef-2020":
        return rows
    last = {row[0]: max(int(other[3]) for other in rows if other[0] == row[0]) for row in rows}
    return [row for row in rows if int(row[3]) == last[row[0]]]


@pytest.mark.parametrize("benchmark", TABLE_BENCHMARKS)
def test_a_row_that_stands_twice_in_a_run_is_refused(benchmark: str, tmp_path: Path) -> None:
    for seed in SEEDS:
        rng, case = Random(seed), draw(benchmark, seed)
        rows = list(case.run.rows)
        rows.insert(rng.randint(0, len(rows)), rng.choice(asked_rows(case)))
        with pytest.raises(InputError, match="again"):
            score_case(replace(case, run=case.run.with_rows(rows)), tmp_path)


@pytest.mark.parametrize("benchmark", TABLE_BENCHMARKS)
def test_a_row_deleted_from_a_run_is_refused_or_counts_as_silence(benchmark: str, tmp_path: Path) -> None:
    wrong: list[str] = []
    for seed in SEEDS:
        rng, case = Random(seed), draw(benchmark, seed)
        deleted = rng.choice(rows_to_delete(case))
        rest = replace(case, run=case.run.with_rows(row for row in case.run.rows if row != deleted))
        if may_be_silent(case):
            if rest.run.rows:
                wrong += report(benchmark, seed, differences_of_case(rest, score_case(rest, tmp_path)))
            continue
        with pytest.raises(InputError, match="no line for 1 of"):
            score_case(rest, tmp_path)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("benchmark", [name for name in TABLE_BENCHMARKS if name != "birdclef-2020"])
def test_an_id_that_stands_twice_in_the_truth_is_refused(benchmark: str, tmp_path: Path) -> None:
    for seed in SEEDS:
        rng, case = Random(seed), draw(benchmark, seed)
        again = case.truth.with_rows((*case.truth.rows, rng.choice(case.truth.rows)))
        with pytest.raises(InputError, match="again"):
            score_case(replace(case, truth=again), tmp_path)


def test_an_event_that_stands_twice_in_the_truth_is_one_event(tmp_path: Path) -> None:
    for seed in SEEDS:
        case = draw("birdclef-2020", seed)
        again = replace(case, truth=case.truth.with_rows((*case.truth.rows, Random(seed).choice(case.truth.rows))))
        assert not differences_of_case(again, score_case(again, tmp_path)), f"birdclef-2020, seed {seed}"


@pytest.mark.parametrize("benchmark", [name for name in TABLE_BENCHMARKS if name != "birdclef-2020"])
def test_an_answer_to_an_item_that_the_truth_lacks_is_refused_or_passed_over(benchmark: str, tmp_path: Path) -> None:
    for seed in SEEDS:
        case = draw(benchmark, seed)
        gone = Random(seed).choice([row for row in case.truth.rows if any(row[0] in line for line in case.run.rows)])
        rest = replace(case, truth=case.truth.with_rows(row for row in case.truth.rows if row != gone))
        if benchmark == "fgvcx-fungi-2018":
            assert not differences_of_case(rest, score_case(rest, tmp_path)), f"{benchmark}, seed {seed}"
            continue
        with pytest.raises(InputError, match="expected an id of the benchmark"):
            score_case(rest, tmp_path)


@pytest.mark.parametrize(("benchmark", "metric"), [("plantclef-2020", "mrr"), ("geolifeclef-2020", "recall_at_30")])
def test_deleting_a_wrong_answer_never_lowers_the_score(benchmark: str, metric: str, tmp_path: Path) -> None:
    for seed in SEEDS:
        case = draw(benchmark, seed)
        if not may_be_silent(case):
            continue
        label_of = {row[0]: row[1] for row in case.truth.rows}
        wrong = [row for row in rows_to_delete(case) if label_of[row[0]] != row[1]]
        if not wrong or len(case.run.rows) == 1:
            continue
        deleted = Random(seed).choice(wrong)
        rest = replace(case, run=case.run.with_rows(row for row in case.run.rows if row != deleted))
        before, after = (score_case(one, tmp_path).metrics[metric].value for one in (case, rest))
        assert after >= before - 1e-12, f"{benchmark}, seed {seed}"
