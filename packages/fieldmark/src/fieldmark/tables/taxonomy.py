"""Ranks above the label, and how scores roll up to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.tables.labels import UNKNOWN, Labels
from fieldmark.tables.schema import RANKS


@dataclass(frozen=True)
class Taxonomy:
    """For each label of a benchmark the taxon it belongs to at each known rank.

    Args:
        labels: The labels, in the order of their codes.
        ranks: For each known rank the taxa of that rank, and per label the code of its taxon (-1 where not known).
    """

    labels: Labels
    ranks: dict[str, tuple[Labels, NDArray[np.int32]]]

    @classmethod
    def of(cls, labels: Labels, taxa: pl.DataFrame) -> Taxonomy:
        """Takes the ranks from a `taxa` table; labels without a row belong to no taxon."""
        names = pl.DataFrame({"label": labels.names}, schema={"label": pl.String})
        rows = names.join(taxa, on="label", how="left", maintain_order="left")
        ranks = {}
        for rank in RANKS:
            if rank in rows.columns and rows[rank].is_not_null().any():
                taxon_labels = Labels.of(rows[rank].drop_nulls())
                ranks[rank] = (taxon_labels, taxon_labels.encode(rows[rank]))
        return cls(labels, ranks)

    def roll_up(
        self, scores: NDArray[np.floating], rank: str, *, by: Literal["sum", "max", "logsumexp"] = "sum"
    ) -> tuple[Labels, NDArray[np.floating]]:
        """Turns scores over labels into scores over the taxa of a rank.

        Args:
            scores: One row per item, one column per label.
            rank: The rank to roll up to.
            by: "sum" for probabilities, "logsumexp" for log-probabilities, "max" for scores of any other kind.

        Returns:
            The taxa of the rank, and one row per item with one column per taxon. Labels whose taxon is not known
            take no part.
        """
        taxa, taxon_of = self.ranks[rank]
        order = np.argsort(taxon_of, kind="stable")
        order = order[taxon_of[order] != UNKNOWN]
        starts = np.searchsorted(taxon_of[order], np.arange(len(taxa)))
        columns = scores[:, order]
        if by == "max":
            return taxa, np.maximum.reduceat(columns, starts, axis=1)
        if by == "sum":
            return taxa, np.add.reduceat(columns, starts, axis=1)
        peak = columns.max(axis=1, keepdims=True)
        peak = np.where(np.isfinite(peak), peak, 0)
        with np.errstate(divide="ignore"):  # a taxon without any mass has log-probability -inf
            return taxa, np.log(np.add.reduceat(np.exp(columns - peak), starts, axis=1)) + peak

    def taxon(self, code: int, rank: str) -> str | None:
        """The name of a label's taxon at a rank, or None where it is not known."""
        if rank not in self.ranks:
            return None
        taxa, taxon_of = self.ranks[rank]
        return taxa.names[taxon_of[code]] if taxon_of[code] != UNKNOWN else None
