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
        "fieldmark/metrics/retrieval.py",
        "width = max(_TABLE_CELLS // (2 * len(level) + 1), 1)",
        "width = max(_TABLE_CELLS // (3 * len(level) + 1), 1)",
    ): "How many units are counted in one go is a matter of memory; the sums are the same.",
    (
        "fieldmark/stats/logistic.py",
        "size /= 2",
        "size /= 3",
    ): "By what a step that is too long is shortened changes the way to the minimum, which is only one.",
}
