"""Presence and absence of each species at places that were surveyed."""

from __future__ import annotations

import numpy as np

from fieldmark.benchmarks.declarations import Metric
from fieldmark.benchmarks.measures.readers import Arguments
from fieldmark.benchmarks.measures.support import on_presences_and_absences
from fieldmark.metrics import presence
from fieldmark.questions.any_labels import PairEvaluation

__all__ = ["species_cor", "species_prg_auc", "species_roc_auc"]

_OVER = "mean over species that were both found and looked for in vain; a pair that is not listed scores lowest"


def asked_pairs(evaluation: PairEvaluation) -> Arguments:
    """Every pair that was asked about, with its score and whether it is true.

    A pair that a run does not list scores 0, or what the lowest score of the run is where that is below 0.
    """
    item, cls, score = evaluation.scored
    n_items, n_classes = len(evaluation.truth.items), evaluation.n_classes
    unlisted = min(0.0, float(score.min(initial=0.0)))
    values = np.full((n_items, n_classes), unlisted)
    known = cls >= 0
    values[item[known], cls[known]] = score[known]
    present = np.zeros((n_items, n_classes), dtype=np.bool_)
    true_item, true_cls = evaluation.true
    present[true_item[true_cls >= 0], true_cls[true_cls >= 0]] = True
    asked = np.ones((n_items, n_classes), dtype=np.bool_)
    if evaluation.asked is not None:
        asked[:] = False
        asked_item, asked_cls = evaluation.asked
        asked[asked_item[asked_cls >= 0], asked_cls[asked_cls >= 0]] = True
    rows, columns = np.nonzero(asked)
    return {
        "item": rows.astype(np.int32),
        "cls": columns.astype(np.int32),
        "score": values[asked],
        "present": present[asked],
    }


def species_roc_auc() -> Metric:
    """The mean over species of the area under the ROC curve."""
    return Metric(
        name="species_roc_auc",
        title="ROC-AUC, mean over species",
        value=presence.mean_roc_auc,
        without_each_unit=presence.mean_roc_auc_without_each_unit,
        rests_on=on_presences_and_absences,
        reads=asked_pairs,
        about=f"{_OVER}; equal scores count one half",
    )


def species_cor() -> Metric:
    """The mean over species of the correlation of scores with presence."""
    return Metric(
        name="species_cor",
        title="COR, mean over species",
        value=presence.mean_correlation,
        without_each_unit=presence.mean_correlation_without_each_unit,
        rests_on=on_presences_and_absences,
        reads=asked_pairs,
        about=f"Pearson correlation of scores with presence (1) and absence (0), {_OVER}; 0 where scores do not differ",
        bounds=(-1.0, 1.0),
        unit="points",
    )


def species_prg_auc() -> Metric:
    """The mean over species of the area under the precision-recall-gain curve."""
    return Metric(
        name="species_prg_auc",
        title="PR-gain AUC, mean over species",
        value=presence.mean_prg_auc,
        without_each_unit=presence.mean_prg_auc_without_each_unit,
        rests_on=on_presences_and_absences,
        reads=asked_pairs,
        about=f"area over recall gains from 0 to 1 (Flach and Kull 2015), {_OVER}; equal scores stand or fall together",
        bounds=(float("-inf"), 1.0),
        unit="points",
    )
