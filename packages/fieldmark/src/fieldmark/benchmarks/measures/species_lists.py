"""F1 of lists of labels: by item, by group of items, by label, and of all pairs together."""

from __future__ import annotations

from typing import Literal

from fieldmark.benchmarks.declarations import Metric
from fieldmark.benchmarks.measures.classification import MACRO_CLASSES
from fieldmark.benchmarks.measures.presence import asked_pairs
from fieldmark.benchmarks.measures.readers import Arguments, unit_codes
from fieldmark.benchmarks.measures.support import on_decisions, on_groups_alike, on_listed_pairs
from fieldmark.metrics import species_lists
from fieldmark.metrics.classification import Over
from fieldmark.metrics.species_lists import BothEmpty
from fieldmark.questions.any_labels import PairEvaluation

__all__ = ["balanced_decisions", "list_macro_f1", "pooled_f1", "sample_f1"]


def _pairs(evaluation: PairEvaluation) -> Arguments:
    item, label, _ = evaluation.scored
    true_item, true_label = evaluation.true
    return {"item": item, "label": label, "true_item": true_item, "true_label": true_label}


def _pairs_of_items(evaluation: PairEvaluation) -> Arguments:
    return {**_pairs(evaluation), "n_items": len(evaluation.truth.items)}


def _pairs_by_unit(evaluation: PairEvaluation) -> Arguments:
    return {**_pairs_of_items(evaluation), "group": unit_codes(evaluation)}


def _pairs_of_all(evaluation: PairEvaluation) -> Arguments:
    return {**_pairs(evaluation), "n_classes": evaluation.n_classes}


def _decisions(evaluation: PairEvaluation) -> Arguments:
    asked = asked_pairs(evaluation)
    pairs = {"item": asked["item"], "cls": asked["cls"], "said": asked["score"] > 0, "holds": asked["present"]}
    return {**pairs, "n_classes": evaluation.n_classes}


def sample_f1(*, by: Literal["item", "unit"] = "item", both_empty: BothEmpty = "zero") -> Metric:
    """The mean F1 of the lists, each item with the same weight, or each independent unit (transect)."""
    weighted = "items" if by == "item" else "units of the mean over their items"
    return Metric(
        name="sample_f1" if by == "item" else "unit_f1",
        title="F1, mean over items" if by == "item" else "F1, mean over units",
        value=species_lists.mean_f1_of_items,
        without_each_unit=species_lists.mean_f1_of_items_without_each_unit,
        rests_on=None if by == "item" else on_groups_alike,
        reads=_pairs_of_items if by == "item" else _pairs_by_unit,
        options={"both_empty": both_empty},
        needs=() if by == "item" else ("unit",),
        about=f"mean over {weighted} of 2 TP / (2 TP + FP + FN) of the listed labels; nothing listed where nothing "
        f"is there counts {1 if both_empty == 'one' else 0}",
    )


def list_macro_f1(*, over: Over) -> Metric:
    """The mean over labels of their F1."""
    return Metric(
        name=f"macro_f1_{over}",
        title=f"Macro-F1, {'all classes' if over == 'all' else over}",
        value=species_lists.macro_f1_of_lists,
        without_each_unit=species_lists.macro_f1_of_lists_without_each_unit,
        reads=_pairs_of_all,
        options={"over": over},
        about=f"mean F1 of the listed labels over {MACRO_CLASSES[over]}",
    )


def pooled_f1() -> Metric:
    """The F1 of all pairs of item and label together."""
    return Metric(
        name="pooled_f1",
        title="F1 of all pairs",
        value=species_lists.pooled_f1,
        without_each_unit=species_lists.pooled_f1_without_each_unit,
        rests_on=on_listed_pairs,
        reads=_pairs,
        about="2 TP / (2 TP + FP + FN) over all pairs of item and label; what scikit-learn calls micro",
    )


def balanced_decisions() -> Metric:
    """The mean over labels of sensitivity and specificity of yes and no."""
    return Metric(
        name="balanced_decisions",
        title="Balanced accuracy by species",
        value=species_lists.balanced_decisions,
        without_each_unit=species_lists.balanced_decisions_without_each_unit,
        rests_on=on_decisions,
        reads=_decisions,
        about="mean over species of (sensitivity + specificity) / 2 over the pairs that were asked about; a species "
        "without a presence, or without an absence, counts the other half alone",
    )
