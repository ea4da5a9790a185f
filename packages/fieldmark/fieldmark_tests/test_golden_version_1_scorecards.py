"""A small case of every benchmark scores as version 0.1.0 scored it."""

from __future__ import annotations

import pytest

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark_tests.golden_files import VERSION_1, card_differences, differences, pseudo_values, read_json, truth_files

CASES = sorted(path.parent.name for path in VERSION_1.glob("scorecards/*/expected.json"))


@pytest.mark.parametrize("case", CASES)
def test_a_small_case_of_each_benchmark_scores_as_it_did(case):
    folder = VERSION_1 / "scorecards" / case
    expected = read_json(folder / "expected.json")
    stored, files = expected["scorecard"], expected["files"]
    tables = truth_files(folder) | {"truth": folder / files["truth"]}
    card = fieldmark.score(f"{stored['benchmark']}@1", folder / files["run"], **tables)
    found, pseudo = card.to_json(), pseudo_values(card)
    for data in (found, stored):
        del data["provenance"]["code_version"]
    assert not card_differences(found, stored)
    assert [str(unit) for unit in card.unit_ids] == expected["unit_ids"]
    assert not differences(pseudo, expected["pseudo"])


def test_every_benchmark_of_version_0_1_0_has_a_small_case():
    stored = {read_json(VERSION_1 / "scorecards" / case / "expected.json")["scorecard"]["benchmark"] for case in CASES}
    assert len(CASES) == 23 and len(stored) == 21
    assert stored <= set(BENCHMARKS)
