"""Which classes are taken for which."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.section import Context
from fieldmark.reports.sections import SECTIONS, confusions
from fieldmark_tests.reports.by_hand import FUNGI, FUNGI_TAXA, MakeRun, soft
from fieldmark_tests.reports.sections.first_answers import answers


def test_pairs_are_all_errors_counted_once(context: Context) -> None:
    expected = Counter((truth, answer) for truth, answer, _ in answers(context) if truth != answer)
    pairs = confusions.all_pairs(context)
    assert {(pair.truth, pair.answer): pair.items for pair in pairs} == dict(expected)
    assert [pair.items for pair in pairs] == sorted(expected.values(), reverse=True)
    for pair in pairs:
        assert pair.of == FUNGI[pair.truth]["test"]
        danger = FUNGI_TAXA[pair.truth]["poisonous"] == "true" and FUNGI_TAXA[pair.answer]["poisonous"] == "false"
        assert pair.dangerous == danger


def test_dangerous_pairs_are_shown_though_others_are_more_frequent() -> None:
    def pair(items: int, dangerous: bool) -> confusions.Pair:
        return confusions.Pair("a", "b", items, items, 10, dangerous, (), 0.5)

    pairs = [pair(5, False)] * 8 + [pair(2, True), pair(1, True), pair(1, True)]
    shown = confusions.shown_pairs(pairs)
    assert [(pair.items, pair.dangerous) for pair in shown] == [(5, False)] * 6 + [(2, True), (1, True)]


def test_poisonous_items_taken_for_harmless_ones_are_counted(fungi: Path, make_run: MakeRun) -> None:
    def always_edible(opened: object, truth: np.ndarray) -> np.ndarray:
        return soft(np.full(len(truth), sorted(FUNGI).index("Boletus edulis")), len(FUNGI))

    html = SECTIONS["confusions"].render(load_context([make_run(fungi, always_edible)]))
    assert "8 of 8 photos of poisonous classes were taken for a class that is not poisonous" in " ".join(html.split())
    assert "poisonous taken for not poisonous" in html
