"""What a step is."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

import polars as pl
from numpy.typing import NDArray

from fieldmark.runs.predictions import Predictions


class Step(Protocol):
    """A change to predictions with parameters from val. A step is a dataclass whose fields are those parameters."""

    name: ClassVar[str]

    def fit(self, val: Predictions, truth: NDArray[Any], items: pl.DataFrame) -> Self:
        """Returns the step with its parameters set from predictions on val.

        Args:
            val: The predictions, after all earlier steps.
            truth: The label code of each item; where any number of labels may hold at once, one mark per item and
                label.
            items: What may be known about the items (date, place, ...).
        """
        ...

    def apply(self, predictions: Predictions, items: pl.DataFrame) -> Predictions:
        """Returns the changed predictions."""
        ...
