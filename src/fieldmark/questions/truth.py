"""The truth about some items, whatever kind of answer they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.runs.masks import Masks


@dataclass(frozen=True)
class Truth:
    """The true labels of some items, and what is independent among them.

    Args:
        rows: The long table (`tables.TrueLabel`): any number of labels per item, or none.
        items: The items to be answered, those without any label included.
        units: For each item the independent unit it belongs to.
        groups: For each item what it is shown by (month, site, split), one column each; a column of lists where an
            item stands in several groups.
        asked: The pairs of item and label that were asked about, where a pair that `rows` does not name is an absence
            only if somebody looked (surveys by group); None where every pair was.
        masks: The true masks, where those are asked for.
    """

    rows: pl.DataFrame
    items: Sequence[str]
    units: Sequence[str]
    groups: pl.DataFrame = field(default_factory=pl.DataFrame)
    asked: pl.DataFrame | None = None
    masks: Masks | None = None

    def take(self, rows: NDArray[np.bool_]) -> Truth:
        """The truth of some of the items."""
        kept = [item for item, keep in zip(self.items, rows, strict=True) if keep]
        units = tuple(unit for unit, keep in zip(self.units, rows, strict=True) if keep)
        inside = pl.col("item_id").is_in(kept)
        return replace(
            self,
            rows=self.rows.filter(inside),
            items=tuple(kept),
            units=units,
            groups=self.groups.filter(pl.Series(rows)) if self.groups.width else self.groups,
            asked=None if self.asked is None else self.asked.filter(inside),
            masks=None if self.masks is None else self.masks.select(kept),
        )
