"""Presence at sites equals the naive program's, on random cases: pairs that nobody asked about, ties, units."""

from __future__ import annotations

from pathlib import Path
from random import Random

from fieldmark_tests.oracles.comparing import differences, report, score_case, values_of
from fieldmark_tests.oracles.leaving_out import differences_left_out, items_of
from fieldmark_tests.oracles.presence import PRESENCE, draw_presence, present


def test_the_mean_over_species_equals_its_definition(tmp_path: Path) -> None:
    wrong: list[str] = []
    for seed in range(40):
        case = draw_presence(Random(seed))
        card = score_case(case, tmp_path)
        wanted = present(case, items_of(case))
        wrong += report(PRESENCE, seed, differences(values_of(card), wanted) + differences_left_out(case, card))
    assert not wrong, "\n".join(wrong)
