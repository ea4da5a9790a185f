"""A small case of every benchmark scores as version 0.1.0 scored it."""

from __future__ import annotations

import pytest

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from tests.golden_files import VERSION_1, card_differences, differences, pseudo_values, read_json, truth_files

# Since version 3 of that benchmark the last row of a photo is its whole, as in the organizers' code; what was computed
# before has a name of its own.
THEN = {"fungitastic-mini-segmentation-parquet": ("iou", "iou:whole=joined", "iou_joined")}
CASES = sorted(path.parent.name for path in VERSION_1.glob("scorecards/*/expected.json"))


@pytest.mark.parametrize("case", CASES)
def test_a_small_case_of_each_benchmark_scores_as_it_did(case):
    folder = VERSION_1 / "scorecards" / case
    expected = read_json(folder / "expected.json")
    stored, files = expected["scorecard"], expected["files"]
    tables = truth_files(folder) | {"truth": folder / files["truth"]}
    card = fieldmark.score(stored["benchmark"], folder / files["run"], **tables)
    found, pseudo = card.to_json(), pseudo_values(card)
    if case in THEN:
        name, metric, called = THEN[case]
        before = fieldmark.score(stored["benchmark"], folder / files["run"], **tables, metrics=[metric])
        found["metrics"][name], pseudo[name] = before.to_json()["metrics"][called], pseudo_values(before)[called]
    for data in (found, stored):
        del data["provenance"]["code_version"]
    assert not card_differences(found, stored)
    assert [str(unit) for unit in card.unit_ids] == expected["unit_ids"]
    assert not differences(pseudo, expected["pseudo"])


def test_every_benchmark_of_version_0_1_0_has_a_small_case():
    stored = {read_json(VERSION_1 / "scorecards" / case / "expected.json")["scorecard"]["benchmark"] for case in CASES}
    assert len(CASES) == 23 and len(stored) == 21
    assert stored <= set(BENCHMARKS)
