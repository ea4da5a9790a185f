"""How frequent labels are among items without labels, from the answers of a classifier: functions of arrays.

A classifier was calibrated where labels have the frequencies `source`; among the items asked about they have others,
and what items of a label look like is the same. With the posterior p_i(c) of item i, the likelihood ratio
L_ic = p_i(c) / source(c) is what the classifier says about the item, whatever the frequencies, and

    p_i'(c) = L_ic prior(c) / sum_k L_ik prior(k)

is what it would say under others. Saerens, Latinne and Decaestecker, "Adjusting the outputs of a classifier to new a
priori probabilities" (2002); Lipton, Wang and Smola, "Detecting and correcting for label shift with black box
predictors" (2018); Azizzadenesheli et al., "Regularized learning for domain adaptation under label shifts" (2019);
Sulc and Matas, "Improving CNN classifiers by estimating test-time priors" (2019).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Posteriors = NDArray[np.floating[Any]]  # one row per item, one column per label, each row with the sum 1
Shares = NDArray[np.float64]  # one per label, with the sum 1

BLOCK_ITEMS = 8192
MOST_ROUNDS, MOST_ROUNDS_AT_LAST = 500, 24
# With more items than that, a sample of so many says where to begin.
SAMPLE_ITEMS = 8192
# What is left of the place to begin with where a sample says that a label does not occur.
REST = 0.02
# The log likelihood lies at most this far below its maximum when the search ends, for each label: frequencies are then
# within about a twentieth of their standard errors. Or all shares together move by less than that.
GAP, STILL = 1e-3, 1e-7
# A likelihood ratio beyond this says no more: shares as small as 1e-30 would make numbers that overflow.
LARGEST_RATIO = 1e12
# A row in which every label is ruled out says nothing about any.
SMALLEST = 1e-300


class PriorEstimate(NamedTuple):
    """Estimated frequencies, how many rounds that took, and how far the likelihood may lie below its maximum."""

    shares: Shares
    rounds: int
    gap: float


def mean_posterior(posteriors: Posteriors) -> Shares:
    """The mean posterior of some items and of one more that could be anything, so that no share is 0.

    >>> mean_posterior(np.array([[1.0, 0.0]]))
    array([0.75, 0.25])
    """
    labels = posteriors.shape[1]
    total = posteriors.sum(axis=0, dtype=np.float64) + 1 / labels
    return np.asarray(total / total.sum())


def em_prior(
    posteriors: Posteriors, source: Shares, *, pseudo: Shares | None = None, start: Shares | None = None
) -> PriorEstimate:
    """The frequencies of highest likelihood, or of highest posterior where pseudo-counts are given.

    Each round of EM takes the mean of the posteriors under the frequencies so far. Its slow convergence is helped by
    squared extrapolation (Varadhan and Roland, 2008), which is taken back wherever it does not raise the objective.
    The objective is concave, so that the slope bounds how much could still be gained.

    Args:
        posteriors: What the classifier says about each item.
        source: The frequencies that this rests on.
        pseudo: For each label so many items more, which are of this label for sure (a Dirichlet prior, less 1).
        start: Where to begin; at `source` if not given.

    Returns:
        Frequencies with the sum 1. Labels that no item could be have 0, unless they have a pseudo-count.
    """
    lent = np.zeros(len(source)) if pseudo is None else np.asarray(pseudo, dtype=np.float64)
    shares = np.asarray(source if start is None else start, dtype=np.float64)
    shares = shares / shares.sum()
    if not len(posteriors) and not lent.any():
        return PriorEstimate(shares, 0, 0.0)
    if len(posteriors) <= 2 * SAMPLE_ITEMS:
        return _climb(_Likelihood(posteriors, source, lent), shares, MOST_ROUNDS)
    apart = len(posteriors) // SAMPLE_ITEMS
    sample = posteriors[::apart].astype(np.float64)
    begun = _climb(_Likelihood(sample, source, lent / apart), shares, MOST_ROUNDS)
    shares = (1 - REST) * begun.shares + REST * shares
    polished = _climb(_Likelihood(posteriors, source, lent), shares, MOST_ROUNDS_AT_LAST)
    return polished._replace(rounds=begun.rounds + polished.rounds)


def _climb(problem: _Likelihood, shares: Shares, most: int) -> PriorEstimate:
    """Rounds of EM with squared extrapolation, until little can be gained."""
    _, following, gap = problem.round(shares)
    for number in range(1, most + 1):
        if gap <= GAP * len(shares) or np.abs(following - shares).sum() <= STILL:
            return PriorEstimate(following, number, gap)
        second = problem.round(following)
        jump = _extrapolated(shares, following, second[1])
        tried = problem.round(jump)
        better = tried[0] >= second[0]
        shares, (_, following, gap) = (jump, tried) if better else (following, second)
    return PriorEstimate(following, most, gap)


class _Likelihood:
    """The objective of `em_prior`: its value, what EM makes of some frequencies, and how much could be gained."""

    def __init__(self, posteriors: Posteriors, source: Shares, lent: Shares) -> None:
        self._posteriors, self._lent = posteriors, lent
        self._inverse = 1 / np.maximum(source, 1 / LARGEST_RATIO)
        self.items = len(posteriors)

    def round(self, shares: Shares) -> tuple[float, Shares, float]:
        """The objective at some frequencies, those after one round of EM, and a bound of what is missing."""
        kind = self._posteriors.dtype
        weights = (shares * self._inverse).astype(kind)
        slope, value, told = np.zeros(len(shares)), 0.0, 0
        for first in range(0, self.items, BLOCK_ITEMS):
            block = self._posteriors[first : first + BLOCK_ITEMS]
            likelihood = block @ weights
            possible = likelihood > SMALLEST
            told += int(possible.sum())
            value += float(np.log(likelihood, where=possible, out=np.zeros_like(likelihood)).sum(dtype=np.float64))
            share = np.divide(1, likelihood, where=possible, out=np.zeros_like(likelihood))
            slope += share @ block
        counts = shares * self._inverse * slope + self._lent
        has = self._lent > 0
        value += float((self._lent[has] * np.log(np.maximum(shares[has], SMALLEST))).sum())
        total = told + float(self._lent.sum())
        if total <= 0:  # nothing says anything
            return value, shares, 0.0
        rise = self._inverse * slope + np.divide(self._lent, shares, where=has & (shares > 0), out=np.zeros(len(has)))
        return value, np.asarray(counts / counts.sum()), max(float(rise.max()) - total, 0.0)


def _extrapolated(first: Shares, second: Shares, third: Shares) -> Shares:
    """Frequencies further along the way of two rounds of EM, kept above a tenth of where the second round ended."""
    step, bend = second - first, third - 2 * second + first
    length = np.sqrt((bend**2).sum())
    if length <= 0:
        return third
    stride = max(np.sqrt((step**2).sum()) / length, 1.0)
    jump = np.maximum(first + 2 * stride * step + stride**2 * bend, 0.1 * third)
    return np.asarray(jump / jump.sum())


def confusion_weights(
    joint: NDArray[np.float64], answered: Shares, *, items: int, regularize: bool = True
) -> NDArray[np.float64]:
    """How much more frequent each label is among the items asked about than on validation, by its confusions.

    BBSE solves joint @ weights = answered. RLLS looks for weights = 1 + theta with the smallest

        |joint @ theta - (answered - joint @ 1)| + penalty |theta|,

    so that what validation does not tell about (labels it does not have, labels that are never answered) keeps the
    weight 1. The penalty is that of the authors' code: 0.01 times three times the deviation of a confusion matrix of
    so many items. Weights below 0 become 0, and weights are scaled so that frequencies have the sum 1.

    Args:
        joint: How often each answer (row) is given to an item of each label (column) on validation, as shares.
        answered: The mean answer among the items asked about.
        items: How many items `joint` rests on.
        regularize: RLLS if true, else BBSE by least squares of smallest norm.
    """
    labels = joint.shape[1]
    rest = answered - joint.sum(axis=1)
    if not regularize:
        theta = np.linalg.lstsq(joint, rest, rcond=1e-9)[0]
    else:
        scale = np.log(2 * labels / 0.05) / max(items, 1)
        theta = _least_norms(joint, rest, 0.03 * (2 * scale / 3 + np.sqrt(2 * scale)))
    weights = np.maximum(1 + theta, 0.0)
    own = joint.sum(axis=0)
    total = float(own @ weights)
    return np.asarray(weights / total) if total > 0 else np.ones(labels)


def _least_norms(joint: NDArray[np.float64], rest: NDArray[np.float64], penalty: float) -> NDArray[np.float64]:
    """The theta of smallest |joint @ theta - rest| + penalty |theta|.

    Where it is not 0, it solves a ridge regression with ridge = penalty |residual| / |theta|, which rises with the
    ridge; so that the ridge is found by halving an interval of its logarithm.
    """
    left, sizes, right = np.linalg.svd(joint)
    inside = left.T @ rest

    def residual_and_length(ridge: float) -> tuple[float, float, NDArray[np.float64]]:
        theta = inside * sizes / (sizes**2 + ridge)
        missing = inside * ridge / (sizes**2 + ridge)
        return float(np.linalg.norm(missing)), float(np.linalg.norm(theta)), theta

    low, high = -34.0, 10.0  # natural logarithms: shares of shares below and above do not occur
    for _ in range(60):
        middle = (low + high) / 2
        missing, length, _ = residual_and_length(np.exp(middle))
        if penalty * missing > np.exp(middle) * length:
            low = middle
        else:
            high = middle
    theta = residual_and_length(np.exp((low + high) / 2))[2]
    return np.asarray(right.T @ theta)


def reweighted(log_posteriors: NDArray[np.float64], log_weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-posteriors under other frequencies.

    Args:
        log_posteriors: One row per item; -inf for what is ruled out.
        log_weights: For each label the log of how much more frequent it is; -inf where it does not occur.

    Returns:
        Log-posteriors. A row in which the two leave nothing possible stays as it was.
    """
    moved = log_posteriors + log_weights
    highest = moved.max(axis=1, keepdims=True)
    possible = np.isfinite(highest)
    safe = np.where(possible, moved - np.where(possible, highest, 0.0), log_posteriors)
    with np.errstate(divide="ignore"):
        return np.asarray(safe - np.log(np.exp(safe).sum(axis=1, keepdims=True)))


def prior_standard_errors(posteriors: Posteriors, source: Shares, shares: Shares) -> NDArray[np.float64]:
    """The standard errors of frequencies of highest likelihood, from the curvature of the likelihood.

    Args:
        posteriors: What the classifier says about each item.
        source: The frequencies that this rests on.
        shares: What `em_prior` found.

    Returns:
        One for each label; NaN for labels with the share 0, about which the curvature says nothing.
    """
    errors = np.full(len(shares), np.nan)
    inside = np.flatnonzero(shares > 0)
    ratios = posteriors[:, inside] / np.maximum(source[inside], 1 / LARGEST_RATIO)
    ratios = ratios / np.maximum(ratios @ shares[inside], SMALLEST)[:, None]
    slopes = ratios[:, :-1] - ratios[:, -1:]
    covariance = np.linalg.pinv(slopes.T @ slopes)
    back = np.vstack([np.eye(len(inside) - 1), -np.ones(len(inside) - 1)])
    errors[inside] = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", back, covariance, back), 0.0))
    return errors
