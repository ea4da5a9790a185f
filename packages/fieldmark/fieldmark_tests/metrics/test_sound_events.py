"""Windows, events and their scores against programs that look at every pair."""

import numpy as np
import pytest

from fieldmark.metrics.sound_events import (
    Matches,
    average_precision,
    average_precision_without_each_unit,
    overlapping_pairs,
    precision_at,
    precision_without_each_unit,
    recall_at,
    recall_without_each_unit,
)

CASES = 2000


def _intervals(draw, many, groups):
    start = np.round(draw.uniform(0, 20, many), draw.integers(0, 4))
    length = np.round(draw.exponential(2, many), draw.integers(0, 3)) * (draw.random(many) > 0.1)
    return start, start + length, draw.integers(0, groups, many)


def _overlap(a, b, c, d, at_least):
    shared, shorter = min(b, d) - max(a, c), min(b - a, d - c)
    if a == b or c == d:
        point, low, high = (a, c, d) if a == b else (c, a, b)
        return low <= point < high or low == point == high
    return shared > 0 and shared >= min(at_least, shorter)


def test_overlaps_are_those_of_every_pair_looked_at_in_turn():
    draw = np.random.default_rng(0)
    for _ in range(CASES):
        groups, at_least = int(draw.integers(1, 4)), float(draw.choice([0, 0.5, 1, 2]))
        one, two = (_intervals(draw, int(draw.integers(0, 9)), groups) for _ in range(2))
        found = set(zip(*(part.tolist() for part in overlapping_pairs(*one, *two, at_least=at_least)), strict=True))
        naive = {
            (i, j)
            for i in range(len(one[0]))
            for j in range(len(two[0]))
            if one[2][i] == two[2][j] and _overlap(one[0][i], one[1][i], two[0][j], two[1][j], at_least)
        }
        assert found == naive


def _naive(score, right, best, at):
    said = [good for value, good in zip(score, right, strict=True) if value >= at]
    precision = sum(said) / len(said) if said else float("nan")
    recall = sum(value >= at and value != -np.inf for value in best) / len(best) if len(best) else float("nan")
    return precision, recall


def _naive_ap(score, right, best):
    if not len(best):
        return float("nan")
    area, before = 0.0, 0.0
    for at in sorted(set(score), reverse=True):
        precision, recall = _naive(score, right, best, at)
        area += (recall - before) * precision
        before = recall
    return area


def test_scores_are_those_of_a_naive_program_with_each_unit_left_out_as_well():
    draw = np.random.default_rng(1)
    for case in range(CASES):
        answers, positives, units = (int(draw.integers(low, 12)) for low in (0, 0, 1))
        score = np.round(draw.random(answers), 1)
        best = np.where(draw.random(positives) < 0.3, -np.inf, np.round(draw.random(positives), 1))
        right, unit = draw.random(answers) < 0.6, draw.integers(0, units, answers)
        matches = Matches(score, right, unit, best, draw.integers(0, units, positives))
        at = float(draw.choice([-np.inf, np.round(draw.random(), 1)]))
        ours = (precision_at(matches, at), recall_at(matches, at), average_precision(matches))
        theirs = (*_naive(score, right, best, at), _naive_ap(score, right, best))
        assert np.allclose(ours, theirs, atol=1e-12, rtol=0, equal_nan=True)
        if case % 4:
            continue
        without = (
            precision_without_each_unit(matches, at, units=units),
            recall_without_each_unit(matches, at, units=units),
            average_precision_without_each_unit(matches, units=units),
        )
        for left in range(units):
            kept, others = unit != left, matches.positive_unit != left
            naive = (
                *_naive(score[kept], right[kept], best[others], at),
                _naive_ap(score[kept], right[kept], best[others]),
            )
            assert np.allclose([values[left] for values in without], naive, atol=1e-12, rtol=0, equal_nan=True)


def test_average_precision_is_that_of_scikit_learn_where_every_window_has_a_score():
    metrics = pytest.importorskip("sklearn.metrics")
    draw = np.random.default_rng(2)
    for _ in range(50):
        score, right = np.round(draw.random(40), 2), draw.random(40) < 0.3
        right[0] = True
        zero = np.zeros(40, dtype=np.int64)
        matches = Matches(score, right, zero, score[right], zero[right])
        assert average_precision(matches) == pytest.approx(metrics.average_precision_score(right, score), abs=1e-12)
