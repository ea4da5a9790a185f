"""Metrics with their conventions fixed, as benchmarks declare them."""

from __future__ import annotations

from fieldmark.benchmarks.declarations import Metric
from fieldmark.metrics import classification
from fieldmark.metrics.classification import Over

_MACRO_CLASSES = {
    "all": "every class of the benchmark; a class absent from truth and answers counts 0",
    "present": "classes that occur in the truth",
    "union": "classes that occur in the truth or in the answers",
}


def macro_f1(*, over: Over) -> Metric:
    """Macro-averaged F1 over `all` classes, those `present` in the truth, or the `union` of truth and answers."""
    return Metric(
        name=f"macro_f1_{over}",
        value=classification.macro_f1,
        without_each_unit=classification.macro_f1_without_each_unit,
        reads=("truth", "predicted", "n_classes"),
        options={"over": over},
        about=f"mean F1 over {_MACRO_CLASSES[over]}; first answer of each item; F1 is 0 without a true positive",
    )


def top(k: int) -> Metric:
    """Accuracy within the first `k` answers."""
    return Metric(
        name=f"top_{k}",
        value=classification.top_k,
        without_each_unit=classification.top_k_without_each_unit,
        reads=("truth", "ranked"),
        options={"k": k},
        about=f"share of items whose label is among the first {k} answers; equal scores are ranked by label code",
        proportion=True,
    )
