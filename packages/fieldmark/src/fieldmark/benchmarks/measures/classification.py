"""Macro-F1, accuracy and error within the first answers, and log loss."""

from __future__ import annotations

from functools import partial

from fieldmark.benchmarks.declarations import Metric
from fieldmark.benchmarks.measures.readers import (
    ANY_COST,
    Arguments,
    first_answers_of_all,
    first_answers_to_share,
    group_codes,
)
from fieldmark.benchmarks.measures.support import on_classes_of_groups
from fieldmark.metrics import classification, probabilistic, ranking
from fieldmark.metrics.classification import Over
from fieldmark.metrics.probabilistic import Renormalize
from fieldmark.questions.one_label import LabelEvaluation
from fieldmark.runs.label_scores import Ties

__all__ = ["balanced_accuracy", "country_macro_f1", "log_loss", "macro_f1", "top", "top_error"]

MACRO_CLASSES = {
    "all": "every class of the benchmark; a class absent from truth and answers counts 0",
    "present": "classes that occur in the truth",
    "union": "classes that occur in the truth or in the answers",
}

_EQUALS = {
    "lowest": "equal scores are ranked by label code",
    "highest": "equal scores are ranked by falling label code, as the organizers of FGVC do",
}


def _ranked(evaluation: LabelEvaluation) -> Arguments:
    return {"truth": evaluation.true_codes, "ranked": evaluation.ranked}


def _ranked_ties_highest(evaluation: LabelEvaluation) -> Arguments:
    return {"truth": evaluation.true_codes, "ranked": evaluation.ranked_ties_highest}


def _probabilities(evaluation: LabelEvaluation) -> Arguments:
    return {"truth": evaluation.true_codes, "probability": evaluation.probabilities}


def macro_title(over: Over) -> str:
    """What a macro-averaged F1 over these classes is called in tables."""
    return "Macro-F1, all classes" if over == "all" else f"Macro-F1, {over}"


def macro_f1(*, over: Over) -> Metric:
    """Macro-averaged F1 over `all` classes, those `present` in the truth, or the `union` of truth and answers."""
    return Metric(
        name=f"macro_f1_{over}",
        title=macro_title(over),
        value=classification.macro_f1,
        without_each_unit=classification.macro_f1_without_each_unit,
        reads=first_answers_to_share,
        first_answer=True,
        options={"over": over},
        about=f"mean F1 over {MACRO_CLASSES[over]}; first answer of each item; F1 is 0 without a true positive",
    )


def _first_answers_by_country(evaluation: LabelEvaluation) -> Arguments:
    return {**first_answers_of_all(evaluation), "group": group_codes(evaluation, "country")}


def country_macro_f1(*, over: Over = "union") -> Metric:
    """Macro-averaged F1 inside each country, averaged over countries."""
    return Metric(
        name="country_macro_f1",
        title="Macro-F1, mean over countries",
        value=classification.grouped_macro_f1,
        without_each_unit=classification.grouped_macro_f1_without_each_unit,
        rests_on=on_classes_of_groups,
        reads=_first_answers_by_country,
        first_answer=True,
        options={"over": over},
        about=f"mean over countries of the mean F1 inside each over {MACRO_CLASSES[over]}",
        optional=True,
        needs=("country",),
    )


def balanced_accuracy() -> Metric:
    """Mean recall over the classes that occur in the truth."""
    return Metric(
        name="balanced_accuracy",
        title="Balanced accuracy",
        value=classification.balanced_accuracy,
        without_each_unit=classification.balanced_accuracy_without_each_unit,
        reads=first_answers_of_all,
        first_answer=True,
        about="mean recall over classes that occur in the truth; first answer of each item",
    )


def top(k: int, *, ties: Ties = "lowest") -> Metric:
    """Accuracy within the first `k` answers; among equal scores the label with the lowest or highest code is first."""
    lowest = ties == "lowest"
    return Metric(
        name=f"top_{k}" if lowest else f"top_{k}_ties_{ties}",
        title=f"Top {k}" if lowest else f"Top {k}, ties {ties} first",
        value=classification.top_k,
        without_each_unit=classification.top_k_without_each_unit,
        reads=_ranked if lowest else _ranked_ties_highest,
        options={"k": k},
        about=f"top-{k} accuracy{'' if k == 1 else f': the label is one of the {k} best answers'}; {_EQUALS[ties]}",
        proportion=True,
        otherwise={"ties=highest": partial(top, k, ties="highest")} if lowest else {},
    )


def top_error(k: int, *, ties: Ties = "lowest") -> Metric:
    """Share of items whose label is not among the first `k` answers; ties as in `top`."""
    lowest = ties == "lowest"
    return Metric(
        name=f"top_{k}_error" if lowest else f"top_{k}_error_ties_{ties}",
        title=f"Top {k} error" if lowest else f"Top {k} error, ties {ties} first",
        value=ranking.top_k_error,
        without_each_unit=ranking.top_k_error_without_each_unit,
        reads=_ranked if lowest else _ranked_ties_highest,
        options={"k": k},
        about=f"share of items whose label is not among the first {k} answers{'' if lowest else f'; {_EQUALS[ties]}'}",
        proportion=True,
        higher_is_better=False,
        otherwise={"ties=highest": partial(top_error, k, ties="highest")} if lowest else {},
    )


def log_loss(*, eps: float, renormalize: Renormalize) -> Metric:
    """Logarithmic loss of stated probabilities."""
    return Metric(
        name="log_loss",
        title="Log loss",
        unit="nats",
        value=probabilistic.log_loss,
        without_each_unit=probabilistic.log_loss_without_each_unit,
        reads=_probabilities,
        options={"eps": eps, "renormalize": renormalize},
        about=f"mean of -ln p(true label); rows renormalized: {renormalize}; clipped to [{eps:g}, 1 - {eps:g}]",
        higher_is_better=False,
        bounds=ANY_COST,
    )
