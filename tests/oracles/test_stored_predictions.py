"""Predictions stored as Parquet score the same as the naive program, ties by the order of the labels included."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.oracles.comparing import TABLE_BENCHMARKS, differences_of_case, report, score_files
from tests.oracles.stored import draw_stored

CASES = 15
BENCHMARKS = [name for name in TABLE_BENCHMARKS if name not in ("birdclef-2020", "fungitastic/temporal")]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_stored_scores_give_what_the_definitions_give(benchmark: str, tmp_path: Path) -> None:
    wrong: list[str] = []
    for seed in range(CASES):
        stored, case = draw_stored(benchmark, Random(f"stored {benchmark} {seed}"))
        paths = case.write(tmp_path) | {"run": stored.write(tmp_path / "run.parquet")}
        wrong += report(benchmark, seed, differences_of_case(case, score_files(benchmark, paths)))
    assert not wrong, "\n".join(wrong)
