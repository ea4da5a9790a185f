"""Titles and units of metrics stand on the scorecard, so that a card imports no benchmarks to show them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

import fieldmark
from fieldmark.scoring import Scorecard
from fieldmark_tests.golden_files import VERSION_1, read_json, truth_files

# Shows two scorecards and compares them, and prints how many modules of challenges that imported.
PROGRAM = """
import sys
from fieldmark.scoring import Scorecard
from fieldmark.scoring.comparison import compare
cards = {path: Scorecard.read(path) for path in sys.argv[1:]}
shown = [card._repr_html_() for card in cards.values()]
assert all("Top 1" in text for text in shown)
def count():
    declared = [m for m in sys.modules.values() if m.__name__.startswith("fieldmark.benchmarks.")]
    return sum(any(type(value).__name__ == "Benchmark" for value in vars(module).values()) for module in declared)
before = count()
assert "Top 1" in compare(cards, metric="top_1")._repr_html_()
print(before, count())
"""


@pytest.fixture(scope="module")
def card():
    folder = VERSION_1 / "scorecards" / "folder"
    expected = read_json(folder / "expected.json")
    tables = truth_files(folder) | {"truth": folder / expected["files"]["truth"]}
    return fieldmark.score(f"{expected['scorecard']['benchmark']}@1", folder / expected["files"]["run"], **tables)


def test_a_card_describes_each_of_its_metrics(card, tmp_path):
    assert list(card.described) == list(card.metrics)
    assert card.described["top_1"] == {"title": "Top 1", "unit": "%", "higher_is_better": True}
    card.write(tmp_path / "scorecard.json")
    assert Scorecard.read(tmp_path / "scorecard.json").described == card.described


def test_a_card_of_before_looks_its_metrics_up_and_stays_as_it_was(card):
    before = replace(card, described={})
    assert before._repr_html_() == card._repr_html_()
    assert "described" not in before.to_json()


def test_showing_and_comparing_cards_imports_no_benchmark_but_their_own(card, tmp_path):
    paths = [str(tmp_path / name / "scorecard.json") for name in ("a", "b")]
    for path in paths:
        (tmp_path / path).parent.mkdir()
        card.write(path)
    shown = subprocess.run([sys.executable, "-c", PROGRAM, *paths], capture_output=True, text=True, check=True)
    before, after = map(int, shown.stdout.split())
    assert before == 0 and after <= 1
