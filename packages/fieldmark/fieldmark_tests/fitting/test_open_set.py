"""Open set and costs from a release on disk to the folder of a run."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import fieldmark
from fieldmark.cli.main import app
from fieldmark.fitting.unknown_table import ALL_UNKNOWN, UnknownTable
from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.sections import SECTIONS
from fieldmark.reports.sections.costs import (
    CHEAPEST,
    LIKELIEST,
    cost_curve,
    costliest,
    costs_of,
    decisions,
    rule_and_prices,
)
from fieldmark.reports.sections.unknown import operating_point, roc_curve, strangeness, taken_for
from fieldmark.runs.predictions import read_predictions
from fieldmark.steps.costs import Prices
from fieldmark.steps.novelty import SCORES
from fieldmark.views.open_benchmark import NEW_IN_TEST, SEEN_IN_VAL
from fieldmark_tests.open_release import UNKNOWN, shuffle_test_labels, write_open_release

LITTLE = {"backbone": "resnet10t", "weights": "random", "size": 32}
ALL = LITTLE | {"score": "all"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_open_release(tmp_path_factory.mktemp("open") / "release")


@pytest.fixture(scope="module")
def opened(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("open-run") / "run"
    fieldmark.fit("fungitastic/open", root, "openset", out, settings=ALL)
    return out


@pytest.fixture(scope="module")
def poison(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cost-run") / "run"
    fieldmark.fit("fungitastic/cost-poison", root, "min-cost", out, settings=LITTLE)
    return out


def test_the_command_prints_every_score_with_the_chosen_one_marked(root, tmp_path):
    arguments = ["fit", "fungitastic/open", "--data", str(root), "--method", "openset", "--out", str(tmp_path / "run")]
    settings = [part for key, value in ALL.items() for part in ("--set", f"{key}={value}")]
    printed = CliRunner().invoke(app, [*arguments, *settings])
    assert printed.exit_code == 0, printed.output
    rows = [line.split() for line in printed.output.splitlines()]
    assert {row[0] for row in rows if row} >= {*SCORES, "combined"}
    table = UnknownTable.read(tmp_path / "run")
    assert [row[0] for row in rows if row[1:2] == ["*"]] == [table.chosen]
    assert "highest ROC-AUC on val-unknowns" in printed.output


def test_the_table_holds_val_and_test_and_tells_species_of_val_from_new_ones(opened):
    table = UnknownTable.read(opened)
    assert set(table.scores) == {"val", "test"}
    assert set(table.scores["test"]) == {ALL_UNKNOWN, SEEN_IN_VAL, NEW_IN_TEST} and set(table.scores["val"]) == {
        ALL_UNKNOWN
    }
    values = table.values["test"]
    stored = read_predictions(opened / "predictions" / "test.parquet")
    assert stored.unknown == pytest.approx(values[table.chosen].to_numpy())
    card = fieldmark.scoring.Scorecard.read(opened / "scorecard.json")
    assert table.scores["test"][ALL_UNKNOWN][table.chosen]["roc_auc"].value == pytest.approx(
        card.metrics["roc_auc"].value
    )
    # All pairs of known and unknown are pairs with either group: their mean is the whole.
    seen, new = (card.groups["unknown_species"][name]["roc_auc"].value for name in (SEEN_IN_VAL, NEW_IN_TEST))
    assert card.metrics["roc_auc"].value == pytest.approx((4 * seen + 5 * new) / 9)


def test_thresholds_scores_and_answers_do_not_change_with_the_labels_of_test(opened, tmp_path):
    other = write_open_release(tmp_path / "other")
    shuffle_test_labels(other)
    fieldmark.fit("fungitastic/open", other, "openset", tmp_path / "run", settings=ALL)
    one, two = (json.loads((folder / "run.json").read_text()) for folder in (opened, tmp_path / "run"))
    assert one["steps"] == two["steps"] and one["options"] == two["options"]
    assert (opened / "run.csv").read_bytes() == (tmp_path / "run" / "run.csv").read_bytes()


def test_the_run_answers_unknown_and_scoring_it_again_gives_the_same(opened, root):
    with (opened / "run.csv").open() as file:
        first = [row["predicted"].split()[0] for row in csv.DictReader(file)]
    assert "-1" in first and len(set(first)) > 1
    card = fieldmark.scoring.Scorecard.read(opened / "scorecard.json")
    again = fieldmark.score("fungitastic/open", opened, data=root)
    for name, score in card.metrics.items():
        assert again.metrics[name].value == pytest.approx(score.value, abs=1e-6), name


def test_a_loaded_model_answers_as_the_fitted_one(opened, poison, root):
    for run in (opened, poison):
        stored, again = read_predictions(run / "predictions" / "test.parquet"), fieldmark.predict(run, root)
        assert (again.decisions.codes == stored.decisions.codes).all()
        assert again.scores == pytest.approx(stored.scores, abs=1e-3)


def test_min_cost_pays_no_more_than_the_likeliest_label_by_its_own_probabilities(poison):
    predictions = read_predictions(poison / "predictions" / "test.parquet")
    costs = costs_of(load_context([poison]))
    expected, rows = costs.expected(predictions.probabilities()), np.arange(len(predictions.items))
    decided, likeliest = predictions.decisions.codes, predictions.scores.argmax(axis=1)
    assert (expected[rows, decided] <= expected[rows, likeliest] + 1e-9).all()


def test_costs_from_a_file_work_in_a_closed_set_and_are_kept_with_the_model(make_release, tmp_path):
    prices = tmp_path / "prices.csv"
    prices.write_text("true,predicted,cost\nRubra vera,Alba alba,50\nRubra vera,Alba nigra,50\n")
    root = make_release()
    fieldmark.fit("folder", root, "min-cost", tmp_path / "run", settings=LITTLE | {"cost": str(prices)})
    prices.unlink()
    stored = read_predictions(tmp_path / "run" / "predictions" / "test.parquet")
    assert (fieldmark.predict(tmp_path / "run", root).decisions.codes == stored.decisions.codes).all()
    assert "costs" in (
        section.name
        for section in map(SECTIONS.__getitem__, SECTIONS)
        if section.applies(load_context([tmp_path / "run"]))
    )


def test_the_page_shows_curve_histograms_and_what_the_unknown_were_taken_for(opened):
    context = load_context([opened])
    html = SECTIONS["unknown"].render(context)
    score, strange = strangeness(context), context.truth < 0
    x, y = roc_curve(score, strange)
    assert (x[0], y[0], x[-1], y[-1]) == (0, 0, 1, 1)
    area = float((np.diff(x) * (y[1:] + y[:-1]) / 2).sum())
    assert area == pytest.approx(context.first.scorecard.metrics["roc_auc"].value)
    point = operating_point(context)
    assert point.accepted.value == np.mean(context.predicted[~strange] != -1)
    assert point.rejected.value == np.mean(context.predicted[strange] == -1)
    assert sum(one.items for one in taken_for(context)) == int((strange & (context.predicted != -1)).sum())
    assert "chosen" in html and "answers of this run" in html and html.count("<svg") == 2
    for name in SECTIONS:
        if SECTIONS[name].applies(context):
            SECTIONS[name].render(context)


def test_the_page_of_costs_agrees_with_the_scorecard_and_never_dips_below_what_it_expects(poison):
    context = load_context([poison])
    found = {one.title: one for one in decisions(context, costs_of(context))}
    assert found[CHEAPEST].cost.value == pytest.approx(context.first.scorecard.metrics["cost_poison"].value)
    curve = cost_curve(context, "poison", Prices())
    assert curve.bound is None and len(curve.tried) == len(curve.cost[LIKELIEST])
    assert (np.diff(curve.cost[LIKELIEST]) >= -1e-9).all()  # the same answers, dearer and dearer
    html = SECTIONS["costs"].render(context)
    assert "Dangerous confusions that remain" in html and "<svg" in html


def test_the_page_of_costs_takes_the_prices_of_the_run_where_the_rule_is_that_of_the_task(root, tmp_path):
    fieldmark.fit("fungitastic/cost-poison", root, "min-cost", tmp_path / "run", settings=LITTLE | {"c_p": 10})
    context = load_context([tmp_path / "run"])
    assert rule_and_prices(context) == ("poison", Prices(c_p=10))
    assert costs_of(context).wrong.max() == 10


def test_the_costliest_confusions_of_a_table_of_prices_stand_on_the_page_with_photos(make_release, tmp_path):
    prices = tmp_path / "prices.csv"
    prices.write_text("true,predicted,cost\nRubra vera,Alba alba,50\nRubra vera,Alba nigra,7\n")
    fieldmark.fit("folder", make_release(), "min-cost", tmp_path / "run", settings=LITTLE | {"cost": str(prices)})
    context = load_context([tmp_path / "run"])
    costs = costs_of(context)
    # Whatever the run answers, here are mistakes: every item is taken for the next label.
    wrong = ((context.truth + 1) % len(context.labels)).astype(np.int32)
    context = replace(context, predictions=context.predictions.decided(wrong))
    paid = costliest(context, costs)
    assert sum(one.together for one in paid) == pytest.approx(costs.matrix[context.truth, wrong].sum())
    assert [one.together for one in paid] == sorted((one.together for one in paid), reverse=True)
    html = SECTIONS["costs"].render(context)
    assert "Costliest confusions that remain" in html and html.count('<li class="pair') == min(len(paid), 6)


def test_the_costs_of_all_confusions_add_up_with_unknown_among_them(root, tmp_path):
    fieldmark.fit("fungitastic/cost-unknown", root, "min-cost", tmp_path / "run", settings=LITTLE)
    context = load_context([tmp_path / "run"])
    assert "No mistake of this run costs anything" in SECTIONS["costs"].render(context) or not context.correct.all()
    costs, n_labels = costs_of(context), len(context.labels)
    codes = np.where(context.truth < 0, n_labels, context.truth)
    wrong = ((codes + 1) % (n_labels + 1)).astype(np.int32)  # every label for the next, the last for unknown
    decided = np.where(wrong < n_labels, wrong, -1)
    context = replace(context, predictions=context.predictions.decided(decided))
    paid = costliest(context, costs)
    assert len(paid) == n_labels + 1 and paid[0].each == 10
    assert sum(one.together for one in paid) == pytest.approx(costs.matrix[codes, wrong].sum())
    assert "an unknown species" in SECTIONS["costs"].render(context)


def test_a_run_that_never_answers_unknown_is_priced_all_the_same(root, tmp_path):
    fieldmark.fit("fungitastic/cost-unknown", root, "centroid", tmp_path / "run", settings=LITTLE)
    context = load_context([tmp_path / "run"])
    found = {one.title: one for one in decisions(context, costs_of(context))}
    assert found[LIKELIEST].cost.value == pytest.approx(context.first.scorecard.metrics["cost_unknown"].value)
    assert context.answer(0) in context.labels.names and set(UNKNOWN)
