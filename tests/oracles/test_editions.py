"""Every metric of every later edition equals the naive program's, on random cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracles.comparing import differences, report, score_case
from tests.oracles.editions import EDITIONS, draw_edition

CASES = 15


@pytest.mark.parametrize("benchmark", EDITIONS)
def test_metrics_equal_the_naive_program(benchmark: str, tmp_path: Path) -> None:
    wrong: list[str] = []
    for seed in range(CASES):
        judged = draw_edition(benchmark, seed)
        card = score_case(judged.case, tmp_path)
        found = {name: score.value for name, score in card.metrics.items()}
        wrong += report(benchmark, seed, differences(found, judged.metrics))
    assert not wrong, "\n".join(wrong)
