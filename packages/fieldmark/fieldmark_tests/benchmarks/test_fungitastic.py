"""FungiTastic: the open set, time order, costs."""

from __future__ import annotations

import math

import pytest
from sklearn.metrics import f1_score, roc_auc_score

import fieldmark
from fieldmark.errors import InputError
from fieldmark_tests.benchmarks.open_set import CLASSES, OPEN_RUN, OPEN_TRUTH


def test_open_set(run):
    metrics = fieldmark.score("fungitastic/open", run(OPEN_RUN), truth=OPEN_TRUTH, classes=CLASSES).metrics
    truth, first = OPEN_TRUTH["label"], ["a", "b", "-1", "b", "-1", "a"]
    known = [label != "-1" for label in truth]
    score = [0.1, 0.3, 0.9, 0.2, 0.7, 0.5]
    assert metrics["roc_auc"].value == pytest.approx(roc_auc_score(known, [-s for s in score]))
    assert metrics["macro_f1_all"].value == pytest.approx(
        f1_score(truth, first, labels=["a", "b", "c", "-1"], average="macro", zero_division=0)
    )
    assert metrics["f1_unknown"].value == pytest.approx(f1_score(truth, first, labels=["-1"], average="macro"))
    assert metrics["f1_known"].value == pytest.approx(
        f1_score(truth, first, labels=["a", "b", "c"], average="macro", zero_division=0)
    )
    # 95 % of four known items are all four: the threshold is 0.7, and one of two unknown items lies above it.
    assert metrics["tnr_at_95_tpr"].value == 0.5


def test_time_order_is_shown_by_month(run):
    card = fieldmark.score("fungitastic/temporal", run(OPEN_RUN), truth=OPEN_TRUTH, classes=CLASSES)
    assert set(card.groups["month"]) == {"09", "10", "11"}
    assert card.groups["month"]["09"]["top_1"].value == 0.5
    assert math.isnan(card.groups["month"]["09"]["roc_auc"].value)  # nothing unknown in September
    card.write(run("").with_name("card.json"))
    assert (
        fieldmark.scoring.Scorecard.read(run("").with_name("card.json")).groups["month"]["10"]
        == card.groups["month"]["10"]
    )


def test_costs(run):
    poison = fieldmark.score("fungitastic/cost-poison", run(OPEN_RUN), truth=OPEN_TRUTH, classes=CLASSES)
    # Item 2: poisonous a taken for b, 100. Item 6: unknown (harmless) taken for a, 1.
    assert poison.metrics["cost_poison"].value == pytest.approx(101 / 6)
    unknown = fieldmark.score("fungitastic/cost-unknown", run(OPEN_RUN), truth=OPEN_TRUTH, classes=CLASSES)
    # Item 2 wrong 1, item 5 known taken for unknown 1, item 6 unknown missed 10.
    assert unknown.metrics["cost_unknown"].value == pytest.approx(12 / 6)
    with pytest.raises(InputError, match="expected a column 'poisonous'"):
        fieldmark.score("fungitastic/cost-poison", run(OPEN_RUN), truth=OPEN_TRUTH, classes={"label": list("abc")})


def test_a_poisonous_species_that_is_not_known_costs_as_much_as_a_known_one(run):
    # Items 3 and 6 are unknown; 3 is answered -1 and 6 with the poisonous a.
    told = {**OPEN_TRUTH, "poisonous": ["1", "1", "1", "0", "0", "1"]}
    name = "fungitastic/cost-poison"
    cost = fieldmark.score(name, run(OPEN_RUN), truth=told, classes=CLASSES)
    # Item 2 as before 100; item 3, poisonous and unknown, passed for harmless 100; item 6 is poisonous and called so.
    assert cost.metrics["cost_poison"].value == pytest.approx(200 / 6)
    assert not any("whether they are poisonous" in remark for remark in cost.remarks)
    before = fieldmark.score(f"{name}@2", run(OPEN_RUN), truth=told, classes=CLASSES)
    assert before.metrics["cost_poison"].value == pytest.approx(101 / 6)
    by_name = fieldmark.score(
        name, run(OPEN_RUN), truth=told, classes=CLASSES, metrics=["cost_poison:unknown=harmless"]
    )
    assert by_name.metrics["cost_poison_unknown_harmless"].value == pytest.approx(101 / 6)
    silent = fieldmark.score(name, run(OPEN_RUN), truth=OPEN_TRUTH, classes=CLASSES)
    assert any("of 2 unknown items whether they are poisonous" in remark for remark in silent.remarks)


def test_top_3_is_shown_in_the_open_set_and_in_time_order(run):
    for name in ("fungitastic/open", "fungitastic/temporal", "fungitastic-mini/open", "fungitastic-mini/temporal"):
        metrics = fieldmark.score(name, run(OPEN_RUN), truth=OPEN_TRUTH, classes=CLASSES).metrics
        assert metrics["top_1"].value <= metrics["top_3"].value <= 1


def test_an_open_set_run_without_strangeness_is_refused(run):
    with pytest.raises(InputError, match="expected the header 'id,predicted,unknown_score'"):
        fieldmark.score("fungitastic/open", run("id,predicted\n1,a\n"), truth=OPEN_TRUTH, classes=CLASSES)
