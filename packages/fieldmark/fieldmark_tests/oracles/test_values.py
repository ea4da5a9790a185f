"""Every metric of every benchmark equals the naive program's, on hundreds of random cases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark_tests.oracles.comparing import (
    TABLE_BENCHMARKS,
    VARIANTS,
    differences_of_case,
    draw,
    report,
    score_case,
    score_files,
)
from fieldmark_tests.oracles.editions import EDITIONS
from fieldmark_tests.oracles.leaving_out import differences_left_out
from fieldmark_tests.oracles.programs import CLOSED
from fieldmark_tests.oracles.tables import Case
from fieldmark_tests.places import declared_in_tests

CASES_PER_TEST = 12
# Open sets take resampled intervals, which cost more than everything else; closed sets share a program, and so do the
# open ones and the two of Semi.
SHARED = {
    "fungitastic-mini/open": 1,
    "fungitastic/temporal": 2,
    "fungitastic-mini/temporal-closed": 1,
    "fungitastic-mini/cost-poison": 1,
    "fungitastic-mini/cost-unknown": 1,
}
BLOCKS = {**dict.fromkeys(CLOSED, 2), "fungitastic/open": 3, "semi-inat-2021": 3, "semi-aves-2020": 1, **SHARED}
OTHER_BLOCKS = 4
# Both are scored by the same metrics, from masks alone (test_masks.py).
PRESENCE = "occurrences/presence"  # a table of truth with a line for each pair (test_presence.py)
MASKS = ("fungitastic-mini/segmentation", "folder/segmentation")


def blocks() -> Iterator[tuple[str, int]]:
    for benchmark in TABLE_BENCHMARKS:
        for block in range(BLOCKS.get(benchmark, OTHER_BLOCKS)):
            yield benchmark, block


def test_every_benchmark_has_a_naive_program() -> None:
    here = (*TABLE_BENCHMARKS, *VARIANTS, *MASKS, *EDITIONS, PRESENCE)
    assert sorted((*here, *declared_in_tests("ORACLES"))) == sorted(BENCHMARKS)


@pytest.mark.parametrize(("benchmark", "block"), list(blocks()))
def test_every_metric_equals_its_definition(benchmark: str, block: int, tmp_path: Path) -> None:
    wrong: list[str] = []
    for seed in range(block * CASES_PER_TEST, (block + 1) * CASES_PER_TEST):
        case = draw(benchmark, seed)
        wrong += report(benchmark, seed, differences_of_case(case, score_case(case, tmp_path)))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("benchmark", TABLE_BENCHMARKS)
def test_every_metric_without_each_unit_equals_its_definition(benchmark: str, tmp_path: Path) -> None:
    wrong: list[str] = []
    for seed in range(2000, 2003):
        case = draw(benchmark, seed)
        wrong += report(benchmark, seed, differences_left_out(case, score_case(case, tmp_path)))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("benchmark", VARIANTS)
def test_variants_in_time_order_are_scored_like_the_plain_one(benchmark: str, tmp_path: Path) -> None:
    plain = "fungitastic-mini/temporal-closed" if "closed" in benchmark else "fungitastic/temporal"
    assert BENCHMARKS[benchmark].task.metrics == BENCHMARKS[plain].task.metrics
    case = draw(benchmark, 0)
    assert not differences_of_case(case, score_case(case, tmp_path))


def as_columns(case: Case, folder: Path) -> dict[str, object]:
    """The run as a file, everything else as mappings of columns."""
    tables = {name: table.by_column() for name, table in case.tables().items() if name != "run"}
    return {"run": case.write(folder)["run"], **tables}


@pytest.mark.parametrize("benchmark", TABLE_BENCHMARKS)
def test_truth_classes_and_media_may_be_tables_in_memory(benchmark: str, tmp_path: Path) -> None:
    wrong: list[str] = []
    for seed in range(1000, 1005):
        case = draw(benchmark, seed)
        wrong += report(benchmark, seed, differences_of_case(case, score_files(benchmark, as_columns(case, tmp_path))))
    assert not wrong, "\n".join(wrong)
