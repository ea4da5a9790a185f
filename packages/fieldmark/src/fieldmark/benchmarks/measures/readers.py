"""What several families of metrics read of an evaluation, and the bounds of a cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import InputError
from fieldmark.questions.answer import Evaluation
from fieldmark.questions.one_label import LabelEvaluation
from fieldmark.tables.labels import Labels

Arguments = Mapping[str, Any]

ANY_COST = (0.0, math.inf)


def first_answers(evaluation: LabelEvaluation) -> Arguments:
    """The true label of each item and the first answer."""
    return {"truth": evaluation.true_codes, "predicted": evaluation.first}


def first_answers_of_all(evaluation: LabelEvaluation) -> Arguments:
    """The same, and how many classes the benchmark has."""
    return {**first_answers(evaluation), "n_classes": evaluation.n_classes}


def first_answers_to_share(evaluation: LabelEvaluation) -> Arguments:
    """The same, and what several averages of them share."""
    return {**first_answers_of_all(evaluation), "shared": evaluation.shared_counts}


# What reads the first answers and, of the classes, their number alone.
OF_FIRST_ANSWERS = (first_answers_of_all, first_answers_to_share)


def group_codes(evaluation: Evaluation, column: str) -> NDArray[np.int32]:
    """The group of each item by a column of the truth, numbered; items without a value are a group of their own.

    Raises:
        InputError: When the truth has no such column.
    """
    groups = evaluation.truth.groups
    if column not in groups.columns:
        raise InputError("the truth", found="no such column", expected=f"a column {column!r}")
    names = groups[column].cast(str).fill_null("")
    return Labels.of(names).encode(names)


def unit_codes(evaluation: Evaluation) -> NDArray[np.int32]:
    """The independent unit of each item, numbered."""
    return Labels.of(evaluation.truth.units).encode(evaluation.truth.units)
