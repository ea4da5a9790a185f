"""What a model keeps to answer people, from probabilities and features that are drawn."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fieldmark.models.guides import calibration_on_val
from fieldmark.models.guides.calibration_on_val import AnsweredVal, learn_guide
from fieldmark.models.guides.conformal import SMALLEST_GROUP, ConformalSets, calibrate, check_by_halves
from fieldmark.models.guides.dangers import MISSED, allowed_by, dangerous_labels, draw_line
from fieldmark.models.guides.living_groups import groups_of
from fieldmark.models.guides.novelty import ACCEPTED, learn_strangers, neighbor_distances
from fieldmark.models.guides.rollup import BANDS, OF_LABEL, RollUp, learn_roll_up
from fieldmark.questions.targets import LabelTargets
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.costs import Prices
from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part

LABELS = Labels(("a", "b", "c", "d"))
TAXA = pl.DataFrame({"label": LABELS.names, "genus": ["A", "A", "C", "C"], "kingdom": ["Fungi"] * 4})


def drawn(n: int, seed: int, sharpness: float = 1.5, labels: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities that are exactly right: the truth is drawn from them."""
    rng = np.random.default_rng(seed)
    logits = sharpness * rng.standard_normal((n, labels))
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    truth = np.array([rng.choice(labels, p=row) for row in chances])
    return chances, truth


def test_short_lists_cover_what_they_promise_in_every_group_with_a_line():
    counts = np.array([3, 3, 50, 500])
    shares = {}
    for seed in range(20):
        chances, truth = drawn(4000, seed)
        sets = calibrate(chances[:2000], truth[:2000], counts)
        inside = sets.listed(chances[2000:], counts)
        hit = inside[np.arange(2000), truth[2000:]]
        groups = sets.groups(counts)[truth[2000:]]
        for group in range(len(sets.lines)):
            shares.setdefault(group, []).append(hit[groups == group].mean())
        shares.setdefault("all", []).append(hit.mean())
    assert set(shares) == {0, 1, 2, "all"}
    assert all(abs(np.mean(share) - 0.9) < 0.02 for share in shares.values())


def test_groups_with_too_few_observations_are_merged_with_their_neighbors():
    chances, truth = drawn(800, 0)
    counts = np.array([3, 500, 500, 500])
    own = int((truth == 0).sum())
    assert len(calibrate(chances, truth, counts).lines) == 2 and own >= SMALLEST_GROUP
    fewer = np.concatenate([np.flatnonzero(truth == 0)[: SMALLEST_GROUP - 1], np.flatnonzero(truth != 0)])
    merged = calibrate(chances[fewer], truth[fewer], counts)
    assert len(merged.lines) == 1 and merged.calibrated_on == (len(fewer),)
    assert calibrate(chances[:29], truth[:29], counts) is None


def test_no_list_is_empty_and_a_lower_line_never_shortens_one():
    chances, _ = drawn(200, 1)
    counts = np.ones(4, dtype=np.int64)
    strict, loose = (ConformalSets((), (line,), (100,)).listed(chances, counts) for line in (0.99, 0.2))
    assert strict.any(axis=1).all() and (loose | strict == loose).all()


def test_halves_of_val_tell_coverage_and_size():
    chances, truth = drawn(1500, 2)
    checked = check_by_halves(chances, truth, np.full(4, 50))
    assert checked["splits"] == 20 and abs(checked["coverage"] - 0.9) < 0.03 and 1 <= checked["size"] <= 4
    assert check_by_halves(chances[:40], truth[:40], np.full(4, 50)) is None
    data = ConformalSets((5,), (0.1, 0.2), (140, 300), checked=checked).to_data()
    assert ConformalSets.from_data(data).checked == checked


def test_an_answer_climbs_until_it_is_sure_enough():
    taxonomy = Taxonomy.of(LABELS, TAXA)
    rule = RollUp(
        {OF_LABEL: 0.8, "genus": 0.8, "kingdom": 0.8},
        dict.fromkeys((OF_LABEL, "genus", "kingdom"), (1.0,) * len(BANDS)),
        dict.fromkeys((OF_LABEL, "genus", "kingdom"), (10, 9)),
    )
    said = [
        rule.answer(np.array(row), taxonomy) for row in ([0.9, 0.1, 0, 0], [0.5, 0.45, 0.05, 0], [0.3, 0.3, 0.4, 0])
    ]
    assert [(one.rank, one.taxon) for one in said] == [("name", "a"), ("genus", "A"), ("kingdom", "Fungi")]
    assert said[1].codes.tolist() == [0, 1] and said[1].probability == pytest.approx(0.95)
    never = RollUp({**rule.lines, OF_LABEL: None}, rule.bands, rule.right)
    assert never.answer(np.array([0.9, 0.1, 0, 0]), taxonomy).rank == "genus"


def test_rolled_up_answers_are_right_at_least_as_often_as_they_claim_even_of_a_model_that_is_too_sure():
    taxonomy = Taxonomy.of(LABELS, TAXA)
    right, claimed = [], []
    for seed in range(5):
        chances, truth = drawn(1600, seed)
        sharper = chances**1.6 / (chances**1.6).sum(axis=1, keepdims=True)
        rule = learn_roll_up(sharper[:800], truth[:800], taxonomy)
        for row, true in zip(sharper[800:], truth[800:], strict=True):
            found = rule.answer(row, taxonomy)
            right.append(true in found.codes)
            claimed.append(found.probability)
    assert np.mean(right) >= np.mean(claimed)
    assert RollUp.from_data(rule.to_data()) == rule


def test_unknown_observations_of_val_make_a_rule_more_careful():
    taxonomy = Taxonomy.of(LABELS, TAXA)
    chances, truth = drawn(600, 3)
    strange = np.where(np.arange(600) % 4 == 0, -1, truth)
    plain, careful = (learn_roll_up(chances, codes, taxonomy) for codes in (truth, strange))
    assert careful.lines[OF_LABEL] is None or careful.lines[OF_LABEL] >= plain.lines[OF_LABEL]


def test_the_line_to_unknown_accepts_what_val_is_like_and_not_what_lies_elsewhere():
    rng = np.random.default_rng(0)
    centers = rng.normal(0, 1, (5, 16))

    def near(n):
        return centers[rng.integers(0, 5, n)] + rng.normal(0, 0.3, (n, 16))

    train, val, test, elsewhere = near(300), near(400), near(400), rng.normal(0, 1, (200, 16))
    strangers = learn_strangers(neighbor_distances(val, train), rng.uniform(0, 0.5, 400), train)

    def called(features):
        return np.mean([strangers.score(far, 0.25) > strangers.line for far in strangers.distances(features)])

    assert called(test) < 1 - ACCEPTED + 0.03 and called(elsewhere) > 0.9
    assert strangers.score(0.0, 1.0) > strangers.line  # doubt alone is enough
    rows, likeness = strangers.nearest(train[7:8], 3)
    assert rows[0] == 7 and likeness[0] == pytest.approx(1, abs=1e-3) and (np.diff(likeness) <= 0).all()


def test_the_costs_draw_the_line_of_danger_and_val_only_lowers_it():
    assert allowed_by(Prices(c_p=9, c_e=1)) == pytest.approx(0.1)
    rng = np.random.default_rng(0)
    dangerous = np.ones(1000, dtype=bool)
    high = draw_line(rng.uniform(0.5, 1, 1000), dangerous)
    assert high.line == high.by_costs == allowed_by()
    low = rng.uniform(0, 0.02, 1000)
    line = draw_line(low, dangerous)
    assert line.line < line.by_costs and (low <= line.line).mean() <= MISSED
    assert draw_line(low[:50], dangerous[:50]).line == allowed_by()  # too few to tell


def test_groups_follow_from_taxa_and_danger_from_what_is_said():
    labels = Labels(("Turdus merula", "Naja naja", "Amanita", "Boletus edulis", "x"))
    taxa = pl.DataFrame(
        {
            "label": labels.names,
            "kingdom": ["Animalia", "Animalia", None, "Fungi", "Plantae"],
            "class": ["Aves", None, None, None, None],
            "poisonous": [None, True, None, False, None],
        }
    )
    groups = groups_of(labels, taxa)
    assert groups == ("birds", "snakes", "fungi", "fungi", "plants")
    assert dangerous_labels(labels, taxa, groups).tolist() == [False, True, True, False, False]
    assert set(groups_of(Labels(("wren", "robin")), TAXA.head(0))) == {"other"}


def test_of_a_large_val_whole_observations_are_drawn(monkeypatch):
    chances, truth = drawn(400, 5)
    ids = [str(number) for number in range(400)]
    pairs = [str(number // 2) for number in range(400)]
    items = pl.DataFrame({"item_id": ids, "observation_id": pairs, "media_ids": [[one] for one in ids]})
    truth = np.repeat(truth[::2], 2).astype(np.int32)
    part = Part(items, LabelTargets(truth))
    said = LabelScores(tuple(ids), LABELS, np.log(chances), "log_probability")
    val = AnsweredVal(part, said, lambda predictions, items: predictions)
    taxa = TAXA.with_columns(poisonous=pl.lit(None, pl.Boolean))
    every = learn_guide(LABELS, taxa, (), part, val)
    assert len(every.record.truth) == 200 and every.counts.sum() == 200 and not len(every.strangers.kept)
    monkeypatch.setattr(calibration_on_val, "MOST_HELD", 4 * 100)
    some = learn_guide(LABELS, taxa, (), part, val)
    assert len(some.record.truth) == 50 and some.conformal[""].calibrated_on == (50,)
