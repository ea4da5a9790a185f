"""Known against unknown: by score, and with unknown as one more class."""

from __future__ import annotations

from functools import partial

from fieldmark.benchmarks.declarations import Metric
from fieldmark.benchmarks.measures.classification import MACRO_CLASSES, macro_title
from fieldmark.benchmarks.measures.readers import Arguments, first_answers, first_answers_of_all
from fieldmark.benchmarks.measures.support import on_known, on_known_and_unknown, on_unknown
from fieldmark.metrics import openset
from fieldmark.metrics.classification import Over
from fieldmark.metrics.openset import Threshold, TiedPairs
from fieldmark.questions.one_label import LabelEvaluation

__all__ = ["f1_known", "f1_unknown", "open_macro_f1", "roc_auc", "tnr_at_tpr"]


def _strangeness(evaluation: LabelEvaluation) -> Arguments:
    return {"unknown_score": evaluation.unknown_score, "is_known": evaluation.is_known}


def roc_auc(*, ties: TiedPairs = "half") -> Metric:
    """How well the unknown score separates known from unknown; a pair of equal scores counts one half or nothing."""
    half = ties == "half"
    counted = "one half" if half else "nothing, as in the organizers' code"
    return Metric(
        name="roc_auc" if half else "roc_auc_ties_zero",
        title="ROC-AUC" if half else "ROC-AUC, ties count 0",
        value=openset.known_roc_auc,
        without_each_unit=openset.known_roc_auc_without_each_unit,
        rests_on=on_known_and_unknown,
        reads=_strangeness,
        options={"ties": ties},
        about=f"area under the ROC curve of known against unknown by unknown_score; equal scores count {counted}",
        groups="is_known",
        otherwise={"ties=zero": partial(roc_auc, ties="zero")} if half else {},
    )


def tnr_at_tpr(*, threshold: Threshold = "first") -> Metric:
    """Share of unknown items rejected when 95 % of known ones are accepted."""
    rule = {
        "first": "the first threshold with at least 95 %",
        "nearest": "the threshold nearest to 95 %, as in the organizers' code",
    }[threshold]
    return Metric(
        name="tnr_at_95_tpr" if threshold == "first" else f"tnr_at_95_tpr_{threshold}",
        title="TNR at 95% TPR" if threshold == "first" else f"TNR {threshold} 95% TPR",
        value=openset.tnr_at_tpr,
        resampled=openset.tnr_at_tpr_resampled,
        rests_on=on_known_and_unknown,
        reads=_strangeness,
        options={"tpr": 0.95, "threshold": threshold},
        about=f"share of unknown items rejected when 95 % of the known are accepted; {rule}",
        groups="is_known",
        # With fewer the threshold is the strangest known item or the next, whose spread no sample of units shows.
        least_units=(25, 2),
    )


def open_macro_f1(*, over: Over) -> Metric:
    """Macro-averaged F1 with unknown as one more class."""
    return Metric(
        name=f"macro_f1_{over}",
        title=macro_title(over),
        value=openset.open_macro_f1,
        without_each_unit=openset.open_macro_f1_without_each_unit,
        reads=first_answers_of_all,
        first_answer=True,
        options={"over": over, "unknown": "averaged"},
        about=f"mean F1 over {MACRO_CLASSES[over]}; unknown (-1) is one class more",
    )


def f1_known() -> Metric:
    """Macro-averaged F1 over the known classes alone."""
    return Metric(
        name="f1_known",
        title="Macro-F1, known classes",
        value=openset.open_macro_f1,
        without_each_unit=openset.open_macro_f1_without_each_unit,
        rests_on=on_known,
        reads=first_answers_of_all,
        first_answer=True,
        options={"over": "all", "unknown": "left out"},
        about="mean F1 over every known class; unknown items answered with a known class count against it",
    )


def f1_unknown() -> Metric:
    """F1 of the unknown class."""
    return Metric(
        name="f1_unknown",
        title="F1 of unknown",
        value=openset.f1_of_class,
        without_each_unit=openset.f1_of_class_without_each_unit,
        rests_on=on_unknown,
        reads=first_answers,
        first_answer=True,
        options={"cls": -1},
        about="F1 of unknown (-1)",
    )
