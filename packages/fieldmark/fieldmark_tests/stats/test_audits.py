"""The stopping rule of a review: exact bounds, and how often it is misled."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import hypergeom

from fieldmark.identification.review.queue import Drawn, ReviewQueue
from fieldmark.stats.audits import StoppingRule, most_wrong


@pytest.mark.parametrize(("wrong", "drawn", "population"), [(0, 20, 100), (3, 20, 100), (7, 60, 61), (2, 2, 9)])
def test_the_bound_is_the_last_number_that_the_hypergeometric_does_not_rule_out(wrong, drawn, population):
    bound = most_wrong(wrong, drawn, population, risk=0.05)
    allowed = [
        number
        for number in range(wrong, population - drawn + wrong + 1)
        if hypergeom.cdf(wrong, population, number, drawn) > 0.05
    ]
    assert bound == max(allowed)


def test_impossible_draws_are_refused():
    with pytest.raises(ValueError, match="cannot be"):
        most_wrong(3, 2, 10, risk=0.05)


def simulated_review(rng: np.random.Generator, entries: int, share_wrong: float, one_in: int) -> tuple[float, int]:
    """The share of the list that is right when the rule says so, and how many looks it took."""
    certainty = rng.random(entries)
    wrong = rng.random(entries) < 2 * share_wrong * (1 - certainty)
    ids = [f"{number:04d}" for number in range(entries)]
    is_wrong = dict(zip(ids, wrong.tolist(), strict=True))
    rule = StoppingRule(0.9, 0.1, entries, one_in)
    queue = ReviewQueue(dict(zip(ids, certainty.tolist(), strict=True)), seed=int(rng.integers(1 << 30)), one_in=one_in)
    looks = 0
    while (shown := queue.next()) is not None:
        queue.note(*shown)
        looks += 1
        if shown[1] is Drawn.RANDOM and len(queue.drawn) in rule.looks:
            audit = queue.audit(rule, lambda one: not is_wrong[one])
            if audit.share_right >= rule.share:
                break
    seen = {*queue.reached, *queue.drawn}
    return 1 - sum(is_wrong[one] for one in ids if one not in seen) / entries, looks


@pytest.mark.parametrize("one_in", [1, 3])
def test_the_rule_is_misled_no_more_often_than_it_says(one_in):
    rng = np.random.default_rng(1)
    ends = [simulated_review(rng, 400, 0.2, one_in) for _ in range(150)]
    misled = np.mean([right < 0.9 for right, _ in ends])
    assert misled <= 0.1
    assert np.mean([looks for _, looks in ends]) < 399  # it does stop
