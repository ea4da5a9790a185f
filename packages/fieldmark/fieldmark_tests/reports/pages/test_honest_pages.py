"""A page never reassures with a figure that says nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fieldmark
from fieldmark.reports.pages.cards import best_answers
from fieldmark.reports.pages.page import render_page
from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.section import Context
from fieldmark.reports.sections import SECTIONS
from fieldmark.reports.sections.long_tail import part_frequencies
from fieldmark.reports.sections.ranks import rows_by_taxon
from fieldmark.scoring.measurement import FEW_UNITS_CAUTION
from fieldmark.tables.labels import UNKNOWN
from fieldmark_tests.reports.by_hand import FUNGI, FUNGI_TAXA, MakeRelease, MakeRun, noisy


@pytest.fixture(scope="module")
def open_set(fungi_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Context:
    """An open set whose run gives unknown species a probability of 41 %."""
    folder = tmp_path_factory.mktemp("open") / "run"
    fieldmark.fit("fungitastic/open", fungi_world, "frequent", folder)
    context = load_context([folder])
    scores = np.log(np.full((len(context.truth), len(context.labels)), 0.59 / len(context.labels)))
    predictions = context.predictions.with_scores(scores, "log_probability", np.log(np.full(len(context.truth), 0.41)))
    return replace(context, predictions=predictions)


def test_the_answers_of_an_observation_show_unknown_species_with_its_probability(open_set: Context) -> None:
    unknown = int(np.flatnonzero(open_set.truth == UNKNOWN)[0])
    known = int(np.flatnonzero(open_set.truth != UNKNOWN)[0])
    for row, right in ((unknown, True), (known, False)):
        first, *others = best_answers(open_set, [row])
        assert (first.title, first.right) == ("unknown species", right)
        assert first.probability == pytest.approx(0.41, abs=1e-3) and len(others) == 4


def test_where_a_rule_says_unknown_without_a_probability_it_stands_first(open_set: Context) -> None:
    scores = open_set.predictions.with_scores(open_set.predictions.scores, "log_probability")
    ruled = replace(open_set, predictions=scores.decided(np.full(len(open_set.truth), UNKNOWN)))
    answer = best_answers(ruled, [0])[0]
    assert (answer.title, answer.probability) == ("unknown species", None)


def test_photos_and_observations_of_a_part_are_counted_over_the_same_items(open_set: Context) -> None:
    for row in part_frequencies(open_set):
        items = open_set.opened.items[row.part]
        known = items.filter(pl.Series(open_set.labels.encode(items["label"]) != UNKNOWN))
        assert (row.items, row.units) == (len(known), known["observation_id"].n_unique())
    test = open_set.opened.items["test"]
    assert row.units < test["observation_id"].n_unique()
    assert "Unknown species are left out of this table." in SECTIONS["long-tail"].render(open_set)


def test_there_is_no_calm_over_no_poisonous_photo(make_release: MakeRelease, make_run: MakeRun) -> None:
    taxa = {label: {**about, "poisonous": "false"} for label, about in FUNGI_TAXA.items()}
    html = SECTIONS["confusions"].render(load_context([make_run(make_release(FUNGI, taxa=taxa), noisy)]))
    assert "calm" not in html and "nothing can be said about dangerous confusions" in html


def test_a_genus_that_is_not_known_is_not_called_wrong(make_release: MakeRelease, make_run: MakeRun) -> None:
    taxa = {
        label: {**about, "genus": about["genus"] if "Amanita" in label else ""} for label, about in FUNGI_TAXA.items()
    }
    context = load_context([make_run(make_release(FUNGI, taxa=taxa), noisy)])
    rows, total = rows_by_taxon(context, "genus")
    (unknown,) = [row for row in rows if row.kind == "unknown"]
    (amanita,) = [row for row in rows if row.kind == "taxon"]
    assert unknown.taxon_top_1 is None and unknown.inside_share is None and unknown.items == 9
    assert total.taxon_top_1 == amanita.taxon_top_1 and total.inside_share == amanita.inside_share
    html = SECTIONS["ranks"].render(context)
    assert '<td class="quiet">—</td>' in html and "14 photos whose genus is known" in html


def test_means_that_cannot_differ_are_shown_once(make_release: MakeRelease, make_run: MakeRun) -> None:
    every = {label: {**counts, "test": 4} for label, counts in FUNGI.items()}
    context = load_context([make_run(make_release(every, taxa=FUNGI_TAXA), noisy)])
    assert context.shown_metrics == ["macro_f1_all", "top_1", "top_3"]
    html = render_page(context)
    assert "Macro-F1, present and Macro-F1, union would be the same" in html
    some = load_context([make_run(make_release(FUNGI, taxa=FUNGI_TAXA, name="some"), noisy, name="other")])
    assert some.shown_metrics == list(some.first.scorecard.metrics)


def test_the_caution_about_few_units_stands_on_the_page(make_release: MakeRelease, make_run: MakeRun) -> None:
    context = load_context([make_run(make_release(FUNGI, taxa=FUNGI_TAXA), noisy)])
    assert context.first.scorecard.units < 20
    assert FEW_UNITS_CAUTION.split("{}")[1] in render_page(context)
