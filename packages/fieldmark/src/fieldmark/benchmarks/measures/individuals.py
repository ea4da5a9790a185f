"""Individuals: known ones by name, new ones as new, and clusters of photos."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Metric
from fieldmark.benchmarks.measures.readers import Arguments, group_codes, unit_codes
from fieldmark.benchmarks.measures.support import on_individuals
from fieldmark.metrics import individuals
from fieldmark.questions.answer import Evaluation
from fieldmark.questions.clusters import ClusterEvaluation
from fieldmark.questions.one_label import LabelEvaluation

__all__ = ["adjusted_rand", "known_and_new"]

_DATASETS = "every dataset has the same weight"


def _datasets(evaluation: Evaluation) -> NDArray[np.int32]:
    """The dataset of each item where the truth names it, else one for all (as version 1 has it)."""
    if "dataset" in evaluation.truth.groups.columns:
        return group_codes(evaluation, "dataset")
    return np.zeros(len(evaluation.truth.items), dtype=np.int32)


def _answered(evaluation: LabelEvaluation) -> Arguments:
    return {
        "right": evaluation.true_codes == evaluation.first,
        "identity": unit_codes(evaluation),
        "is_new": ~evaluation.is_known,
        "dataset": _datasets(evaluation),
    }


def _clustered(evaluation: ClusterEvaluation) -> Arguments:
    return {
        "identity": evaluation.identity,
        "cluster": evaluation.cluster,
        "dataset": _datasets(evaluation),
    }


def known_and_new() -> Metric:
    """The geometric mean of balanced accuracies on known and on new individuals, averaged over datasets."""
    return Metric(
        name="known_and_new",
        title="Geometric mean of BAKS and BAUS",
        value=individuals.geometric_mean_by_dataset,
        without_each_unit=individuals.geometric_mean_by_dataset_without_each_unit,
        rests_on=on_individuals,
        reads=_answered,
        first_answer=True,
        groups="is_new",
        needs=("unit", "dataset"),
        about="sqrt(BAKS x BAUS): the mean over known individuals of the share of photos named right, and over new "
        f"ones of the share called new; 0 for a dataset that lacks one of them; {_DATASETS}",
    )


def adjusted_rand() -> Metric:
    """The adjusted Rand index of clusters against individuals, averaged over datasets."""
    return Metric(
        name="adjusted_rand",
        title="Adjusted Rand index",
        value=individuals.adjusted_rand,
        without_each_unit=individuals.adjusted_rand_without_each_unit,
        reads=_clustered,
        needs=("unit", "dataset"),
        about=f"adjusted Rand index of clusters against individuals; {_DATASETS}",
        bounds=(-1.0, 1.0),
        unit="points",
    )
