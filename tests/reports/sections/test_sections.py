"""The numbers of each section against the same numbers computed another way, item by item."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from fieldmark.reports.charts.estimates import Axis, share
from fieldmark.reports.markup import EN_DASH
from fieldmark.reports.pages.loading import load_context
from fieldmark.reports.section import Context
from fieldmark.reports.sections import SECTIONS, confusions, long_tail, look, origin, ranks, reliability, season
from tests.reports.by_hand import FUNGI, FUNGI_TAXA, MakeRelease, MakeRun, noisy, perfect, soft


@pytest.fixture
def context(fungi: Path, make_run: MakeRun) -> Context:
    return load_context([make_run(fungi, noisy)])


def answers(context: Context) -> list[tuple[str, str, float]]:
    """(true label, first answer, its probability) of each item, from the raw scores."""
    names = context.labels.names
    label_of = dict(context.items.select("item_id", "label").iter_rows())
    rows = []
    for item, scores in zip(context.predictions.items, context.predictions.scores.astype(np.float64), strict=True):
        probabilities = np.exp(scores) / np.exp(scores).sum()
        rows.append((label_of[item], names[int(scores.argmax())], float(probabilities.max())))
    return rows


def test_sections_are_named_as_they_are_registered() -> None:
    assert [SECTIONS[name].name for name in SECTIONS] == list(SECTIONS)


def test_a_share_is_the_mean_and_its_interval_holds_it() -> None:
    estimate = share(np.array([True, True, False, True] * 10), np.arange(40) // 2)
    assert (estimate.value, estimate.items, estimate.units) == (0.75, 40, 20)
    assert estimate.low is not None and estimate.high is not None
    assert 0.5 < estimate.low < 0.75 < estimate.high < 1


def test_items_of_one_unit_count_as_one_for_the_interval() -> None:
    holds = np.repeat(np.array([True, False] * 15), 4)
    alone, together = share(holds, np.arange(120)), share(holds, np.arange(120) // 4)
    assert alone.high is not None and together.high is not None
    assert together.high - together.value > 1.8 * (alone.high - alone.value)


def test_an_axis_holds_what_it_shows() -> None:
    estimates = [share(np.array([True, False, True] * 9), np.arange(27)), share(np.array([True] * 9), np.arange(9))]
    axis = Axis.around(estimates)
    for estimate in estimates:
        assert estimate.low is not None and estimate.high is not None
        assert 0 <= axis.at(estimate.low) <= axis.at(estimate.value) <= axis.at(estimate.high) <= 100


def test_an_axis_of_one_value_has_a_length() -> None:
    assert Axis.around([share(np.array([True]), np.array([0]))]) == Axis(0.9, 1.0)


def test_runs_stand_in_the_table_best_first(fungi: Path, make_run: MakeRun) -> None:
    worse, best = make_run(fungi, noisy, name="worse"), make_run(fungi, perfect, name="best")
    context = load_context([worse, best])
    html = SECTIONS["scores"].render(context)
    assert html.index(">best<") < html.index(">worse<")
    for scored in context.runs:
        for score in scored.scorecard.metrics.values():
            assert f"{100 * score.value:.1f}%" in html
            assert score.low is None or f"{100 * score.low:.1f}{EN_DASH}{100 * score.high:.1f}" in html
    assert f"leaving out one of {context.first.scorecard.units} observations at a time" in " ".join(html.split())
    for convention in context.first.scorecard.conventions.values():
        assert convention[1:] in html


def test_recall_by_class_and_frequency(context: Context) -> None:
    rows = answers(context)
    for column in long_tail.frequency_columns(context):
        of_class = [truth == answer for truth, answer, _ in rows if truth == column.name]
        assert column.training == FUNGI[column.name]["train"]
        assert column.further == {"val": FUNGI[column.name]["val"], "test": FUNGI[column.name]["test"]}
        assert np.isnan(column.recall) if not of_class else column.recall == pytest.approx(np.mean(of_class))
    counts = [column.training for column in long_tail.frequency_columns(context)]
    assert counts == sorted(counts, reverse=True)


def test_bins_hold_each_class_and_item_once(context: Context) -> None:
    rows = answers(context)
    expected = {
        f"1{EN_DASH}4": ["Boletus <b>&nus", "Galerina marginata"],
        f"5{EN_DASH}9": ["Amanita rubescens", "Boletus edulis"],
    }
    expected[f"10{EN_DASH}19"] = ["Amanita muscaria"]
    found = long_tail.bins(context)
    assert [group.title for group in found] == list(expected)
    for group in found:
        right = [truth == answer for truth, answer, _ in rows if truth in expected[group.title]]
        assert group.classes == len(expected[group.title])
        assert group.recall is not None
        assert (group.recall.value, group.recall.items) == (pytest.approx(np.mean(right)), len(right))


def test_val_counts_as_training_where_the_model_learned_from_it(fungi: Path, make_run: MakeRun) -> None:
    context = load_context([make_run(fungi, noisy, trained_on=["train", "val"])])
    assert context.train_counts.sum() == sum(counts["train"] + counts["val"] for counts in FUNGI.values())


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


def test_rows_by_genus_match_item_by_item_counts(context: Context) -> None:
    assert ranks.grouping_rank(context) == "genus"
    rows, total = ranks.rows_by_taxon(context, "genus")
    names, genus_of = context.labels.names, {name: about["genus"] for name, about in FUNGI_TAXA.items()}
    counted: dict[str, Counter[str]] = {}
    for (truth, answer, _), scores in zip(answers(context), context.predictions.scores, strict=True):
        mass: Counter[str] = Counter()
        for name, score in zip(names, scores, strict=True):
            mass[genus_of[name]] += float(np.exp(score))
        tally = counted.setdefault(genus_of[truth], Counter())
        tally["items"] += 1
        tally["hits"] += truth == answer
        tally["taxon_hits"] += mass.most_common(1)[0][0] == genus_of[truth]
        tally["inside"] += truth != answer and genus_of[truth] == genus_of[answer]
    assert {row.title for row in rows} == set(counted)
    for row in rows:
        tally = counted[row.title]
        assert (row.items, row.hits, row.taxon_hits, row.inside) == tuple(
            tally[key] for key in ("items", "hits", "taxon_hits", "inside")
        )
        assert row.classes == sum(genus == row.title for genus in genus_of.values())
    assert total.items == len(context.truth) and total.hits == sum(row.hits for row in rows)


def test_many_genera_are_summed_without_losing_items(make_release: MakeRelease, make_run: MakeRun) -> None:
    names = [f"Genus{chr(97 + n // 6)}{chr(97 + n % 6)} {epithet}" for n in range(36) for epithet in ("alba", "nigra")]
    root = make_release({name: {"train": 1, "val": 1, "test": 1} for name in names})
    context = load_context([make_run(root, noisy)])
    rows, total = ranks.rows_by_taxon(context, "genus")
    assert len(rows) == 26 and rows[-1].kind == "rest" and rows[-1].taxa == 11
    for name in ("items", "classes", "hits", "taxon_hits", "inside", "taxa"):
        assert sum(getattr(row, name) for row in rows) == getattr(total, name)


def test_bands_hold_each_item_once_and_give_the_calibration_error(context: Context) -> None:
    rows = answers(context)
    assert context.confidence is not None
    bands = reliability.bands(context.confidence, context.correct, context.unit)
    assert sum(band.right.items for band in bands) == len(rows)
    gap = 0.0
    for band in bands:
        inside = [(truth == answer, sure) for truth, answer, sure in rows if band.low <= sure < band.high]
        assert band.right.items == len(inside)
        assert band.right.value == pytest.approx(np.mean([right for right, _ in inside]))
        gap += abs(sum(right - sure for right, sure in inside)) / len(rows)
    assert f"<strong>{100 * gap:.1f}%</strong>" in SECTIONS["reliability"].render(context)


def test_months_match_the_dates(context: Context) -> None:
    rows = answers(context)
    dates: list[date] = context.items["date"].to_list()
    found = season.months(context)
    assert [month.number for month in found] == sorted({day.month for day in dates})
    for month in found:
        inside = [row for row, day in enumerate(dates) if day.month == month.number]
        wrong = [rows[row][0] != rows[row][1] for row in inside]
        assert (month.wrong.value, month.wrong.items) == (pytest.approx(np.mean(wrong)), len(wrong))
        assert month.wrong.units == len({context.items["observation_id"][row] for row in inside})


def test_the_first_look_shows_what_was_answered(context: Context) -> None:
    answer_of = dict(zip(context.predictions.items, answers(context), strict=True))
    shown = look.answers(context)
    assert len({one.item for one in shown}) == 12
    for one in shown:
        truth, answer, sure = answer_of[one.item]
        assert (one.truth, one.answer, one.right) == (truth, answer, truth == answer)
        assert one.confidence == pytest.approx(sure, rel=1e-5)


def test_the_origin_tells_what_the_run_file_says(context: Context) -> None:
    facts = dict(origin.facts(context.first))
    assert facts["Options"] == "pen = blue"
    assert facts["Digest of the data"] == context.first.run.data_digest
    assert facts["Phases"] == "fit 1.50 s"
    assert facts["Data"] == "release"
