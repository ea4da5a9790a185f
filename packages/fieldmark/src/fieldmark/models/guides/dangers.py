"""From which probability of a poisonous or venomous species on a person is warned.

A warning that was not needed costs `c_e`, one that was needed and not given costs `c_p`: warning pays once the
probability of danger exceeds c_e / (c_p + c_e), 1 in 101 at the prices of the poison challenge (`steps.costs`).
Where val has enough dangerous observations, the line is lowered until at most the share `MISSED` of such observations
is expected to lie below it.

A label is dangerous where its taxa say so (`poisonous`, which is "venomous" for snakes). Among fungi a label of which
nothing is said counts as dangerous too: nobody has called it harmless.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.models.guides.living_groups import FUNGI, SNAKES
from fieldmark.steps.costs import Prices
from fieldmark.tables.labels import Labels

MISSED = 0.01
NEVER = {
    FUNGI: "Never eat a mushroom because a model named it.",
    SNAKES: "Never touch a snake because a model named it.",
}

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DangerLine:
    """The line.

    Args:
        line: A person is warned where the probability of danger exceeds it.
        by_costs: What the costs alone allow.
        dangerous_on_val: How many dangerous observations of val had a say.
    """

    line: float
    by_costs: float
    dangerous_on_val: int = 0

    def to_data(self) -> dict[str, Any]:
        """As plain data that a model can keep."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """From what `to_data` made."""
        return cls(**data)


def allowed_by(prices: Prices | None = None) -> float:
    """The probability of danger that the prices allow.

    >>> round(allowed_by(), 5)
    0.0099
    """
    prices = prices or Prices()
    return prices.c_e / (prices.c_p + prices.c_e)


def dangerous_labels(labels: Labels, taxa: pl.DataFrame, groups: Sequence[str]) -> NDArray[np.bool_]:
    """Whether each label counts as dangerous."""
    flag = {row["label"]: row.get("poisonous") for row in taxa.iter_rows(named=True)}
    return np.array(
        [
            bool(flag.get(label)) or (group == FUNGI and flag.get(label) is None)
            for label, group in zip(labels.names, groups, strict=True)
        ],
        dtype=np.bool_,
    )


def never_because_of_a_model(groups: Iterable[str]) -> tuple[str, ...]:
    """What must not be done because of a model's answer, for the groups of its labels; nothing for other groups.

    >>> never_because_of_a_model(["birds", "fungi", "fungi"]), never_because_of_a_model(["birds"])
    (('Never eat a mushroom because a model named it.',), ())
    """
    return tuple(sentence for group, sentence in NEVER.items() if group in set(groups))


def draw_line(danger: Floats, is_dangerous: NDArray[np.bool_], prices: Prices | None = None) -> DangerLine:
    """The line from the prices and from val.

    Args:
        danger: The probability of danger of each observation of val.
        is_dangerous: Whether each of them is.
        prices: What mistakes cost, if not as the poison challenge says.
    """
    allowed = allowed_by(prices)
    own = np.sort(danger[is_dangerous])
    place = int(np.floor((len(own) + 1) * MISSED))
    if place < 1:
        return DangerLine(allowed, allowed, len(own))
    lowest = float(np.nextafter(own[place - 1], -1.0))  # what lies exactly on it is warned of
    return DangerLine(min(allowed, max(lowest, 0.0)), allowed, len(own))
