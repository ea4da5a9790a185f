from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from fieldmark.metrics import costs
from fieldmark_tests.metrics.drawing import draw_units, generators, recomputed


@st.composite
def priced(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = draw(generators)
    n, n_classes = int(rng.integers(2, 40)), int(rng.integers(2, 7))
    truth = rng.integers(-1, n_classes, n).astype(np.int32)
    predicted = np.where(rng.random(n) < 0.5, truth, rng.integers(-1, n_classes, n)).astype(np.int32)
    return truth, predicted, rng.random(n_classes) < 0.5, draw_units(rng, n)


def naive_poison(truth: int, predicted: int, dangerous: set[int], c_p: float = 100, c_e: float = 1) -> float:
    if (truth in dangerous) == (predicted in dangerous):
        return 0
    return c_p if truth in dangerous else c_e


def naive_unknown(truth: int, predicted: int, c_u: float = 10, c_k: float = 1, as_unknown: float = 1) -> float:
    if truth == predicted:
        return 0
    if truth == -1:
        return c_u
    return as_unknown if predicted == -1 else c_k


@given(case=priced())
def test_poison_and_unknown_costs_follow_the_formulas_item_by_item(case):
    truth, predicted, flags, _ = case
    dangerous = set(np.flatnonzero(flags).tolist())
    pairs = list(zip(truth.tolist(), predicted.tolist(), strict=True))
    expected = np.mean([naive_poison(*pair, dangerous) for pair in pairs])
    assert costs.poison_cost(truth, predicted, dangerous=flags) == pytest.approx(expected)
    assert costs.unknown_cost(truth, predicted) == pytest.approx(np.mean([naive_unknown(*pair) for pair in pairs]))


@given(case=priced())
def test_fungiclef_tracks_follow_the_evaluator_item_by_item(case):
    truth, predicted, flags, _ = case
    dangerous = set(np.flatnonzero(flags).tolist())
    pairs = list(zip(truth.tolist(), predicted.tolist(), strict=True))
    error = np.mean([a != b for a, b in pairs])
    poison = np.mean([naive_poison(*pair, dangerous) for pair in pairs])
    unknown = np.mean([naive_unknown(*pair, as_unknown=0.1) for pair in pairs])
    for track, expected in ((1, error), (2, poison), (3, error + poison), (4, unknown)):
        assert costs.fungiclef_track(truth, predicted, dangerous=flags, track=track) == pytest.approx(expected)


@given(case=priced())
def test_a_cost_matrix_gives_the_same_as_the_rule_it_spells_out(case):
    truth, predicted, flags, _ = case
    n_classes, dangerous = len(flags), set(np.flatnonzero(flags).tolist())
    codes = [*range(n_classes), -1]
    poison = np.array([[naive_poison(a, b, dangerous) for b in codes] for a in codes], dtype=float)
    expected = costs.poison_cost(truth, predicted, dangerous=flags)
    assert costs.mean_cost(truth, predicted, cost=poison) == pytest.approx(expected)


def organizers_venom_score(truth: np.ndarray, predicted: np.ndarray, venomous: np.ndarray) -> float:
    species = np.flatnonzero(venomous)
    kind, said, wrong = np.isin(truth, species), np.isin(predicted, species), truth != predicted
    harmless, poisonous = (~kind & (truth != -1)).sum(), kind.sum()
    shares = [
        np.round((wrong & ~kind & ~said).sum() / harmless * 100, 2),
        np.round((wrong & ~kind & said).sum() / harmless * 100, 2),
        np.round((wrong & kind & ~said).sum() / poisonous * 100, 2),
        np.round((wrong & kind & said).sum() / poisonous * 100, 2),
    ]
    f1 = np.round(f1_score(truth, predicted, average="macro") * 100, 2)
    weighted = f1 + sum(weight * (100 - share) for weight, share in zip((1, 2, 5, 2), shares, strict=True))
    return float(np.round(weighted / 11, 2))


@given(case=priced())
def test_venom_scores_agree_with_the_organizers_to_the_last_digit(case):
    truth, predicted, venomous, _ = case
    score = costs.venom_score(truth, predicted, venomous=venomous, rounded=True)
    kind = np.isin(truth, np.flatnonzero(venomous))
    if not kind.any() or not (~kind & (truth >= 0)).any():
        assert np.isnan(score)
        return
    assert score == organizers_venom_score(truth, predicted, venomous)
    assert costs.venom_score(truth, predicted, venomous=venomous) == pytest.approx(score, abs=0.02)


@given(case=priced())
def test_venom_cost_is_a_sum_over_observations(case):
    truth, predicted, venomous, _ = case
    price = {(False, False): 1, (False, True): 2, (True, False): 5, (True, True): 2}
    species = set(np.flatnonzero(venomous).tolist())
    pairs = zip(truth.tolist(), predicted.tolist(), strict=True)
    expected = sum(price[a in species, b in species] for a, b in pairs if a != b)
    assert costs.venom_cost(truth, predicted, venomous=venomous) == expected


@given(case=priced())
def test_leaving_out_a_unit_equals_computing_without_its_rows(case):
    truth, predicted, flags, unit = case
    if unit.max() == 0:
        return
    matrix = np.random.default_rng(0).random((len(flags) + 1, len(flags) + 1))
    for name, options in [
        ("mean_cost", {"cost": matrix}),
        ("poison_cost", {"dangerous": flags}),
        ("unknown_cost", {"c_known_as_unknown": 0.1}),
        ("fungiclef_track", {"dangerous": flags, "track": 3}),
        ("fungiclef_track", {"dangerous": flags, "track": 4}),
        ("venom_cost", {"venomous": flags}),
        ("venom_score", {"venomous": flags}),
    ]:
        fast = getattr(costs, f"{name}_without_each_unit")(truth, predicted, unit, **options)
        slow = recomputed(getattr(costs, name), (truth, predicted), unit, **options)
        np.testing.assert_allclose(fast, slow, atol=1e-9, err_msg=name)


def test_unknown_counts_as_not_dangerous_on_both_sides():
    dangerous = np.array([True, False])
    assert costs.poison_cost(np.array([-1]), np.array([0]), dangerous=dangerous) == 1
    assert costs.poison_cost(np.array([0]), np.array([-1]), dangerous=dangerous) == 100
    assert costs.poison_cost(np.array([1]), np.array([-1]), dangerous=dangerous) == 0


def test_the_paper_and_the_organizers_price_a_known_item_taken_for_unknown_differently():
    truth, predicted = np.array([0, 0]), np.array([-1, 0])
    assert costs.unknown_cost(truth, predicted) == 0.5
    assert costs.fungiclef_track(truth, predicted, dangerous=np.array([False]), track=4) == 0.05


@given(case=priced(), rng=generators)
def test_order_of_rows_and_numbering_of_classes_do_not_matter(case, rng):
    truth, predicted, flags, _ = case
    order, renamed = rng.permutation(len(truth)), np.append(rng.permutation(len(flags)), -1)
    moved = np.zeros_like(flags)
    moved[renamed[:-1]] = flags
    before = costs.fungiclef_track(truth, predicted, dangerous=flags, track=3)
    after = costs.fungiclef_track(renamed[truth][order], renamed[predicted][order], dangerous=moved, track=3)
    assert before == pytest.approx(after)
