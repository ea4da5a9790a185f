"""Every metric of every later edition equals the naive program's, on random cases, and so does it without each unit."""

from __future__ import annotations

from pathlib import Path

import pytest

from fieldmark_tests.oracles.comparing import differences, report, score_case
from fieldmark_tests.oracles.editions import EDITIONS, draw_edition
from fieldmark_tests.oracles.leaving_out import differences_left_out, items_of, unit_of, values

CASES = 12


@pytest.mark.parametrize("benchmark", EDITIONS)
def test_metrics_equal_the_naive_program(benchmark: str, tmp_path: Path) -> None:
    wrong: list[str] = []
    for seed in range(CASES):
        case = draw_edition(benchmark, seed)
        card = score_case(case, tmp_path)
        found = {name: score.value for name, score in card.metrics.items()} | {"items": card.items, "units": card.units}
        wanted = values(case, items_of(case)) | {
            "items": len(items_of(case)),
            "units": len(set(unit_of(case).values())),
        }
        wrong += report(benchmark, seed, differences(found, wanted) + differences_left_out(case, card))
    assert not wrong, "\n".join(wrong)
