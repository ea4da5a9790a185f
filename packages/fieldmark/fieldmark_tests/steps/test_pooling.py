"""Pooling of the photos of a specimen: order-free, one photo keeps its answer, better photos count more."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldmark.errors import MisuseError
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps import make_step, step_from_data, step_to_data
from fieldmark.steps.observation import ObservationAttention
from fieldmark.steps.pooling import POOLINGS, confidence, pool
from fieldmark.tables.labels import Labels
from fieldmark_tests.lessons import learned, with_columns

LABELS = Labels(("x", "y", "z"))


def photos(seed: int, n: int = 12, specimens: int = 5) -> tuple[LabelScores, np.ndarray]:
    rng = np.random.default_rng(seed)
    specimen = np.concatenate([np.arange(specimens), rng.integers(0, specimens, n - specimens)])
    scores = rng.normal(0, 3, (n, 3)).astype(np.float32)
    return LabelScores(tuple(map(str, range(n))), LABELS, scores, "logit"), specimen


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(POOLINGS)), st.floats(0, 5))
@settings(max_examples=40, deadline=None)
def test_the_order_of_photos_does_not_matter_and_one_photo_keeps_its_answer(seed, name, sharpness):
    predictions, specimen = photos(seed)
    pooled = pool(predictions, specimen, name, sharpness=sharpness)
    order = np.random.default_rng(seed).permutation(len(specimen))
    mixed = predictions.select(predictions.items[row] for row in order)
    assert pool(mixed, specimen[order], name, sharpness=sharpness) == pytest.approx(pooled, abs=1e-5)
    assert np.exp(pooled).sum(axis=1) == pytest.approx(1, abs=1e-5)
    for one in np.flatnonzero(np.bincount(specimen) == 1):
        (row,) = np.flatnonzero(specimen == one)
        assert np.exp(pooled[one]) == pytest.approx(predictions.probabilities()[row], abs=1e-6)


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(POOLINGS)))
@settings(max_examples=20, deadline=None)
def test_the_same_photo_twice_says_what_it_says_once(seed, name):
    predictions, _ = photos(seed)
    twice = LabelScores.concat([predictions, LabelScores(tuple("abcdefghijkl"), LABELS, predictions.scores, "logit")])
    pooled = pool(twice, np.tile(np.arange(12), 2), name)
    assert np.exp(pooled) == pytest.approx(predictions.probabilities(), abs=1e-5)


def test_attention_by_hand():
    probabilities = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]])
    two = LabelScores(("a", "b"), LABELS, np.log(probabilities), "logit")
    pooled = np.exp(pool(two, np.zeros(2, np.int64), "attention", quality=np.log(np.array([3.0, 1.0]))))
    expected = probabilities[0] ** 0.75 * probabilities[1] ** 0.25
    assert pooled[0] == pytest.approx(expected / expected.sum())


def test_with_sharpness_0_attention_is_the_mean_and_with_much_it_takes_the_surest_photo():
    predictions, specimen = photos(3)
    mean, sharp = (pool(predictions, specimen, "attention", sharpness=value) for value in (0.0, 1e4))
    assert mean == pytest.approx(pool(predictions, specimen, "mean"), abs=1e-6)
    sure = confidence(np.log(predictions.probabilities()))
    for one in range(5):
        rows = np.flatnonzero(specimen == one)
        assert np.exp(sharp[one]) == pytest.approx(predictions.probabilities()[rows[sure[rows].argmax()]], abs=1e-5)


def specimens(seed: int = 0, n: int = 150) -> tuple[LabelScores, np.ndarray, pl.DataFrame]:
    """Three photos of each specimen, one sharp and two blurred; blurred ones tell nothing, and say so."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(rng.integers(0, 3, n), 3)
    sharp = np.tile([5.0, 0.3, 0.3], n)
    noise = rng.normal(0, 1, (3 * n, 3)) * np.where(sharp > 1, 1.5, 0.8)[:, None]
    scores = (sharp[:, None] * np.eye(3)[codes] * 0.7 + noise).astype(np.float32)
    ids = [f"{row}" for row in range(3 * n)]
    items = pl.DataFrame({"item_id": ids, "observation_id": [f"o{row // 3}" for row in range(3 * n)], "focus": sharp})
    return LabelScores(tuple(ids), LABELS, scores, "logit"), codes, with_columns(items)


@pytest.mark.parametrize("quality", ["confidence", "focus"])
def test_sharpness_comes_from_val_and_never_loses_to_the_mean_there(quality):
    predictions, truth, items = specimens()
    step = learned(make_step(f"observation-attention:quality={quality}"), predictions, truth, items)
    assert isinstance(step, ObservationAttention)
    assert step.chosen > 0 and step.tried[f"{step.chosen:g}"] == min(step.tried.values()) < step.tried["0"]
    unseen, codes, others = specimens(1)

    def loss(name: str) -> float:
        chosen = step if name == "attention" else make_step(f"observation-{name}")
        p = chosen.apply(unseen, others).probabilities()
        return float(-np.log(p[np.arange(len(codes)), codes]).mean())

    assert loss("attention") < loss("mean")
    assert step_from_data(step_to_data(step)) == step
    turned = step.apply(unseen.select(unseen.items[::-1]), others).select(unseen.items)
    assert turned.scores == pytest.approx(step.apply(unseen, others).scores, abs=1e-5)


def test_what_cannot_be_is_refused_in_a_sentence():
    predictions, truth, items = specimens(n=4)
    with pytest.raises(
        MisuseError, match="observation-attention:sharpness=-1: expected a number of at least 0, or val"
    ):
        make_step("observation-attention:sharpness=-1")
    with pytest.raises(MisuseError, match="no column 'moon' of numbers"):
        learned(make_step("observation-attention:quality=moon"), predictions, truth, items)
    with pytest.raises(MisuseError, match="these scores only rank"):
        learned(ObservationAttention(), predictions.with_scores(predictions.scores, "score"), truth, items)
    with pytest.raises(MisuseError, match="no pooling called 'median'"):
        pool(predictions, np.zeros(12, np.int64), "median")
