"""Sets of labels of a given mean size."""

from __future__ import annotations

from fieldmark.benchmarks.declarations import Metric
from fieldmark.benchmarks.measures.readers import ANY_COST, Arguments
from fieldmark.metrics import geo
from fieldmark.questions.one_label import LabelEvaluation

__all__ = ["adaptive_top_30", "mean_set_size"]


def _sets(evaluation: LabelEvaluation) -> Arguments:
    return {"sets": evaluation.sets_of_30}


def _strict_sets(evaluation: LabelEvaluation) -> Arguments:
    return {"sets": evaluation.strict_sets_of_30}


def adaptive_top_30(*, strict: bool = False) -> Metric:
    """Accuracy of sets of 30 labels on average, cut by one threshold over all scored items."""
    rule = "above the threshold" if strict else "at or above the threshold"
    return Metric(
        name="adaptive_top_30_strict" if strict else "adaptive_top_30",
        title=f"Adaptive top-30 accuracy{', strict' if strict else ''}",
        value=geo.adaptive_accuracy,
        without_each_unit=geo.adaptive_accuracy_without_each_unit,
        reads=_strict_sets if strict else _sets,
        about=f"share of items whose label scores {rule} that leaves 30 labels per item on average; not listed: never",
        proportion=True,
    )


def mean_set_size() -> Metric:
    """How many labels the adaptive sets really hold."""
    return Metric(
        name="mean_set_size",
        title="Mean set size",
        unit="labels",
        value=geo.mean_set_size,
        reads=_sets,
        about="mean number of labels in the sets of adaptive_top_30; above 30 where scores tie at the threshold",
        bounds=ANY_COST,
    )
