"""What is known of a place in numbers, where a table holds them: a column for each, a row for each place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.tables.inputs import Input, KeyedBy, Layer

Numbers = NDArray[np.float64]

# Numbers that describe the place of an observation, from rasters or from columns.
ENVIRONMENT = Input("environment", extractor="numbers")


@dataclass(frozen=True, eq=False)
class EnvironmentColumns(Layer):
    """Numbers of places from columns of a table.

    Args:
        ids: The observations, each once.
        values: One row for each, NaN where a number is missing.
        names: What the columns are called.
    """

    ids: pl.Series
    values: Numbers
    names: tuple[str, ...]
    input: ClassVar[str] = "environment"
    by: ClassVar[KeyedBy] = "observation_id"

    @classmethod
    def of(cls, table: pl.DataFrame, names: Sequence[str]) -> EnvironmentColumns:
        """The numbers of a table with `observation_id`."""
        values = table.select(pl.col(name).cast(pl.Float64) for name in names).to_numpy()
        return cls(table["observation_id"], np.asarray(values, dtype=np.float64), tuple(names))

    @cached_property
    def _rows(self) -> pl.DataFrame:
        return pl.DataFrame({"id": self.ids}).with_row_index("row")

    def numbers(self, ids: Sequence[str]) -> Numbers:
        """One row for each id, NaN for those that the table does not have."""
        asked = pl.DataFrame({"id": pl.Series(ids, dtype=pl.String)})
        rows = asked.join(self._rows, on="id", how="left", maintain_order="left")["row"]
        there = rows.is_not_null().to_numpy()
        found = np.full((len(asked), len(self.names)), np.nan)
        found[there] = self.values[rows.drop_nulls().to_numpy()]
        return found

    def read(self, ids: Sequence[str]) -> list[Numbers | None]:
        """The numbers of each id; None where there is not a single one."""
        return [None if np.isnan(row).all() else row for row in self.numbers(ids)]
