"""Places as items: a release without media."""

from __future__ import annotations

from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.places import Places
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark_tests.questions.surveys import benchmark


def test_a_release_of_places_needs_no_media(survey):
    opened = open_benchmark(benchmark(Places(), OneLabel()), survey)
    assert opened.view.train.item_ids == ("p1", "p2")
    assert opened.view.train.truth is not None and opened.view.train.truth.tolist() == [0, 1]
    assert set(opened.view.train.items.columns) >= {"lat", "lon"}
    assert opened.truth["test"].rows.rows() == [("p4", "c"), ("p5", "b")]
