"""What several families of metrics read of an evaluation, and the bounds of a cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fieldmark.questions.one_label import LabelEvaluation

Arguments = Mapping[str, Any]

ANY_COST = (0.0, math.inf)


def first_answers(evaluation: LabelEvaluation) -> Arguments:
    """The true label of each item and the first answer."""
    return {"truth": evaluation.true_codes, "predicted": evaluation.first}


def first_answers_of_all(evaluation: LabelEvaluation) -> Arguments:
    """The same, and how many classes the benchmark has."""
    return {**first_answers(evaluation), "n_classes": evaluation.n_classes}
