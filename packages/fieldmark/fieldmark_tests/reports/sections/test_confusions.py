"""Which classes are taken for which."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from fieldmark.models import load_model
from fieldmark.reports.likeness import NearestTraining, features_of
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
    assert "8 of 8 photos of poisonous classes were predicted as a class that is not poisonous" in " ".join(
        html.split()
    )
    assert "poisonous predicted as not poisonous" in html


def test_a_confusion_is_shown_with_the_nearest_training_photos(color_model: Path) -> None:
    context = load_context([color_model])
    names, view = context.labels.names[:2], context.opened.view
    nearest = NearestTraining(context, [0, 1], names)
    assert nearest.items([0], context.labels.names[2]) == []  # not asked about
    model = load_model(color_model)
    labels = context.opened.items["train"]["label"].to_list()
    learned = features_of(model, view.train).astype(np.float64)
    center = learned[[label in names for label in labels]].mean(axis=0)
    photo = features_of(model, view.test)[list(view.test.item_ids).index(context.predictions.items[0])] - center
    away = learned - center
    closeness = away @ photo / np.linalg.norm(away, axis=1)
    for name in names:
        rows = sorted((row for row, label in enumerate(labels) if label == name), key=lambda row: -closeness[row])
        assert nearest.items([0], name) == [view.train.item_ids[row] for row in rows]


def test_without_a_model_training_photos_are_shown_all_the_same(context: Context) -> None:
    assert NearestTraining(context, [0], context.labels.names).items([0], context.labels.names[0]) == []
