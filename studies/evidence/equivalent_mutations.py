"""Mutations that no test can notice, because they change nothing that is promised; and why.

The key is the file, the line, and what becomes of the line, so that an entry stays valid when lines move.
"""

from __future__ import annotations

EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "fieldmark/stats/intervals.py",
        "if n_units > 2 and 0 < value < 1:",
        "if n_units > 2 and 0 < value <= 1:",
    ): "A share of 1 comes here with as many effective items as units, for which the correction is a factor of 1.",
    (
        "fieldmark/metrics/classification.py",
        "return np.asarray(2.0 * hits / np.maximum(true + answered, 1))",
        "return np.asarray(2.0 * hits / np.maximum(true + answered, 2))",
    ): "A class with a hit is named twice, by the truth and by the answer; without a hit F is 0 in any case.",
    (
        "fieldmark/stats/logistic.py",
        "size /= 2",
        "size /= 3",
    ): "By what a step that is too long is shortened changes the way to the minimum, which is only one.",
    (
        "fieldmark/metrics/geo.py",
        "narrow, wide = nth(max(wanted - reach, 1) - 1), nth(min(wanted + reach, listed) - 1)",
        "narrow, wide = nth(max(wanted - reach, 2) - 1), nth(min(wanted + reach, listed) - 1)",
    ): "It differs only for one item and a set of one; wider sets are not larger then, and the gain is 0 both times.",
    (
        "fieldmark/stats/two_groups.py",
        "shrunk = min(effective, float(n_units)) * (float(ndtri(0.5 + level / 2)) / quantile) ** 2",
        "shrunk = min(effective, float(n_units)) * (float(ndtri(0.5 - level / 2)) / quantile) ** 2",
    ): "The two quantiles of the normal distribution differ in sign only, and are squared.",
    (
        "fieldmark/runs/ranked_tables.py",
        "if counts.has_nulls() or fewest < lengths[0] or most > lengths[1]:  # type: ignore[operator]",
        "if counts.has_nulls() or fewest < lengths[0] or most > lengths[0]:  # type: ignore[operator]",
    ): "More files are read line by line, the slow way, which gives the same.",
    (
        "fieldmark/metrics/retrieval.py",
        "width = int(true_document.max(initial=-1)) + 1",
        "width = int(true_document.max(initial=1)) + 1",
    ): "Any width above the highest document keeps queries and documents apart.",
    (
        "fieldmark/metrics/retrieval.py",
        "return np.concatenate([[0], np.cumsum(1 / np.arange(1, n + 1, dtype=np.longdouble))])",
        "return np.concatenate([[0], np.cumsum(1 / np.arange(1, n + 2, dtype=np.longdouble))])",
    ): "One harmonic number more than is ever looked up.",
    (
        "fieldmark/metrics/probabilistic.py",
        "BLOCK_CELLS = 4_000_000",
        "BLOCK_CELLS = 4000001",
    ): "The size of a block is a matter of memory; rows are independent.",
}
