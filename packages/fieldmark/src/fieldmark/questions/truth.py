"""The truth about some items, whatever kind of answer they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.runs.masks import Masks
from fieldmark.tables.given_tables import GivenTable
from fieldmark.tables.text_columns import column_of

# The column by which tables of truth, classes and media say that they are those of a world.
SIMULATED = "simulated"


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
        poisonous: For each item whether its species is, whether or not it is a known label; blank where nobody says.
            None where nothing is said of any.
        simulated: Whether it is that of a world; None where nobody says.
        given: The table that somebody gave it in; None for the truth of a release.
    """

    rows: pl.DataFrame
    items: Sequence[str]
    units: Sequence[str]
    groups: pl.DataFrame = field(default_factory=pl.DataFrame)
    asked: pl.DataFrame | None = None
    masks: Masks | None = None
    poisonous: pl.Series | None = None
    simulated: bool | None = None
    given: GivenTable | None = field(default=None, repr=False, compare=False)

    def with_units_within(self, column: str) -> Truth:
        """The truth in which a unit stands for one thing in each group of a column.

        Units whose name occurs in several groups are called `group/name`; the others keep their names.

        >>> rows = pl.DataFrame({"item_id": ["1", "2"], "label": ["a", "b"]})
        >>> Truth(rows, ("1", "2"), ("x", "x"), pl.DataFrame({"sea": ["n", "s"]})).with_units_within("sea").units
        ('n/x', 's/x')
        """
        groups = self.groups[column].cast(pl.String).fill_null("")
        named = pl.DataFrame({"unit": column_of(self.units), "group": groups})
        several = named.unique().filter(pl.col("unit").is_duplicated())["unit"].unique()
        if several.is_empty():
            return self
        own = pl.when(pl.col("unit").is_in(several.implode())).then(pl.format("{}/{}", "group", "unit"))
        return replace(self, units=tuple(named.select(own.otherwise("unit")).to_series()))

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
            poisonous=None if self.poisonous is None else self.poisonous.filter(pl.Series(rows)),
        )
