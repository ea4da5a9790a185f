"""Lists of labels: against scikit-learn, and leaving out a unit against computing anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score

from fieldmark.metrics import species_lists

N_ITEMS, N_CLASSES, N_UNITS = 30, 7, 9


def drawn(seed: int) -> tuple[dict[str, Any], np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of truth and answers, the matrices behind them, and the unit of each item (each at least once)."""
    rng = np.random.default_rng(seed)
    true, answered = rng.random((N_ITEMS, N_CLASSES)) < 0.25, rng.random((N_ITEMS, N_CLASSES)) < 0.3
    unit = np.concatenate([np.arange(N_UNITS), rng.integers(N_UNITS, size=N_ITEMS - N_UNITS)]).astype(np.int32)
    return pairs_of(true, answered), true, answered, unit


def pairs_of(true: np.ndarray, answered: np.ndarray) -> dict[str, Any]:
    (item, label), (true_item, true_label) = np.nonzero(answered), np.nonzero(true)
    return {"item": item, "label": label, "true_item": true_item, "true_label": true_label}


@pytest.mark.parametrize("seed", range(5))
def test_the_mean_over_items_is_what_sklearn_calls_samples(seed):
    pairs, true, answered, _ = drawn(seed)
    value = species_lists.mean_f1_of_items(**pairs, n_items=N_ITEMS)
    assert value == pytest.approx(f1_score(true, answered, average="samples", zero_division=0), abs=1e-12)
    value = species_lists.mean_f1_of_items(**pairs, n_items=N_ITEMS, both_empty="one")
    assert value == pytest.approx(f1_score(true, answered, average="samples", zero_division=1), abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_pooled_and_macro_are_those_of_sklearn(seed):
    pairs, true, answered, _ = drawn(seed)
    assert species_lists.pooled_f1(**pairs) == pytest.approx(f1_score(true, answered, average="micro"), abs=1e-12)
    macro = species_lists.macro_f1_of_lists(**pairs, n_classes=N_CLASSES, over="all")
    assert macro == pytest.approx(f1_score(true, answered, average="macro", zero_division=0), abs=1e-12)


def test_groups_have_the_same_weight_whatever_their_size():
    pairs = pairs_of(np.ones((4, 1), dtype=bool), np.array([[True], [False], [False], [False]]))
    assert species_lists.mean_f1_of_items(**pairs, n_items=4) == 0.25
    assert species_lists.mean_f1_of_items(**pairs, n_items=4, group=np.array([0, 1, 1, 1])) == 0.5


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["items", "groups", "all", "present", "union", "pooled"])
def test_leaving_out_a_unit_is_computing_without_it(seed, name):
    pairs, true, answered, unit = drawn(seed)
    group = np.random.default_rng(seed).integers(4, size=N_ITEMS).astype(np.int32)

    def value(kept: np.ndarray) -> float:
        inside = pairs_of(true[kept], answered[kept])
        if name == "pooled":
            return species_lists.pooled_f1(**inside)
        if name in ("items", "groups"):
            grouping = np.unique(group[kept], return_inverse=True)[1] if name == "groups" else None
            return species_lists.mean_f1_of_items(**inside, n_items=int(kept.sum()), group=grouping)
        return species_lists.macro_f1_of_lists(**inside, n_classes=N_CLASSES, over=name)  # type: ignore[arg-type]

    if name == "pooled":
        left_out = species_lists.pooled_f1_without_each_unit(**pairs, unit=unit)
    elif name in ("items", "groups"):
        left_out = species_lists.mean_f1_of_items_without_each_unit(
            **pairs, unit=unit, n_items=N_ITEMS, group=group if name == "groups" else None
        )
    else:
        left_out = species_lists.macro_f1_of_lists_without_each_unit(
            **pairs,
            unit=unit,
            n_classes=N_CLASSES,
            over=name,  # type: ignore[arg-type]
        )
    np.testing.assert_allclose(left_out, [value(unit != one) for one in range(N_UNITS)], atol=1e-12)


def test_a_label_that_one_unit_alone_names_leaves_the_mean_with_it():
    true, answered = np.eye(2, dtype=bool), np.eye(2, dtype=bool)
    pairs, unit = pairs_of(true, answered), np.array([0, 1], dtype=np.int32)
    left_out = species_lists.macro_f1_of_lists_without_each_unit(**pairs, unit=unit, n_classes=2, over="present")
    assert left_out.tolist() == [1.0, 1.0]


def test_a_pair_that_is_named_twice_is_refused():
    twice = np.array([0, 0])
    with pytest.raises(ValueError, match="twice in the answers"):
        species_lists.pooled_f1(twice, twice, np.array([0]), np.array([0]))


@pytest.mark.parametrize("seed", range(4))
def test_balanced_decisions_are_the_mean_of_balanced_accuracies(seed):
    rng = np.random.default_rng(seed)
    cls, holds, said = rng.integers(4, size=200), rng.random(200) < 0.3, rng.random(200) < 0.4
    by_hand = np.mean([balanced_accuracy_score(holds[cls == one], said[cls == one]) for one in range(4)])
    assert species_lists.balanced_decisions(np.arange(200), cls, said, holds, n_classes=9) == pytest.approx(
        by_hand, abs=1e-12
    )


@pytest.mark.parametrize("seed", range(4))
def test_balanced_decisions_without_a_unit_are_those_of_the_others(seed):
    rng = np.random.default_rng(seed)
    cls, holds, said = rng.integers(5, size=40), rng.random(40) < 0.3, rng.random(40) < 0.4
    unit, item = np.concatenate([np.arange(8), rng.integers(8, size=32)]).astype(np.int32), np.arange(40)
    left_out = species_lists.balanced_decisions_without_each_unit(item, cls, said, holds, unit, n_classes=5)
    by_hand = [
        species_lists.balanced_decisions(*(column[unit != one] for column in (item, cls, said, holds)), n_classes=5)
        for one in range(8)
    ]
    np.testing.assert_allclose(left_out, by_hand, atol=1e-12)
