"""Scores by genus, or by the lowest rank above species that groups classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fieldmark.reports.markup import render
from fieldmark.reports.section import Context, Section
from fieldmark.tables.labels import UNKNOWN
from fieldmark.tables.schema import RANKS

MOST_ROWS = 25

Kind = Literal["taxon", "rest", "unknown", "total"]


@dataclass(frozen=True)
class TaxonRow:
    """One taxon, or several summed.

    Args:
        title: Its name.
        items, classes: Items of the scored part, classes of the benchmark.
        hits: Items whose class was answered right.
        taxon_hits: Items whose taxon comes first when the scores of classes are summed by taxon.
        inside: Wrong answers that name a class of the right taxon.
        placed, placed_hits: Items whose taxon is known, and how many of those have their class right.
        taxa: How many taxa are summed.
        kind: "taxon", "rest" for the smaller taxa summed, "unknown" for classes without a taxon, or "total".
    """

    title: str
    items: int
    classes: int
    hits: int
    taxon_hits: int
    inside: int
    placed: int
    placed_hits: int
    taxa: int = 1
    kind: Kind = "taxon"

    @property
    def top_1(self) -> float:
        return self.hits / self.items

    @property
    def taxon_top_1(self) -> float | None:
        """The share of items with the right taxon, among those whose taxon is known; None without any."""
        return self.taxon_hits / self.placed if self.placed else None

    @property
    def inside_share(self) -> float | None:
        """The share of errors that stay inside the taxon, where it is known; None without errors."""
        errors = self.placed - self.placed_hits
        return self.inside / errors if errors else None


class Ranks(Section):
    """How near the errors are."""

    name = "ranks"
    title = "Close relatives"

    def applies(self, context: Context) -> bool:
        return grouping_rank(context) is not None

    def render(self, context: Context) -> str:
        rank = grouping_rank(context)
        assert rank is not None  # applies() said so
        rows, total = rows_by_taxon(context, rank)
        return render("sections/ranks.html.j2", context=context, rank=rank, rows=rows, total=total)


def grouping_rank(context: Context) -> str | None:
    """The lowest rank above species in which some taxon holds several classes, or None."""
    for rank in reversed(RANKS[: RANKS.index("species")]):
        if rank in context.taxonomy.ranks:
            taxon_of = context.taxonomy.ranks[rank][1]
            taxa = taxon_of[taxon_of != UNKNOWN]
            if len(np.unique(taxa)) < len(taxa):
                return rank
    return None


def rows_by_taxon(context: Context, rank: str) -> tuple[list[TaxonRow], TaxonRow]:
    """One row per taxon, most items first, the smaller ones summed; and the total."""
    taxa, taxon_of = context.taxonomy.ranks[rank]
    true_taxon = np.where(context.truth == UNKNOWN, UNKNOWN, taxon_of[context.truth])
    answered = np.where(context.predicted == UNKNOWN, UNKNOWN, taxon_of[context.predicted])
    known = true_taxon != UNKNOWN
    taxon_right = known & (first_taxon(context, rank) == true_taxon)
    inside = known & ~context.correct & (answered == true_taxon)

    def row(title: str, items: NDArray[np.bool_], classes: int, kind: Kind, summed: int = 1) -> TaxonRow:
        wanted = (context.correct, taxon_right, inside, known, known & context.correct)
        hits, taxon_hits, near, placed, placed_hits = (int((items & one).sum()) for one in wanted)
        return TaxonRow(title, int(items.sum()), classes, hits, taxon_hits, near, placed, placed_hits, summed, kind)

    sizes = np.bincount(true_taxon[known], minlength=len(taxa))
    classes = np.bincount(taxon_of[taxon_of != UNKNOWN], minlength=len(taxa))
    order = [int(code) for code in np.lexsort((np.arange(len(taxa)), -sizes)) if sizes[code]]
    # A single leftover is shown by itself: a row that sums one taxon says less and takes as much room.
    shown = order if len(order) <= MOST_ROWS + 1 else order[:MOST_ROWS]
    rest = order[len(shown) :]
    rows = [row(taxa.names[code], true_taxon == code, int(classes[code]), "taxon") for code in shown]
    if rest:
        rows.append(row("more", np.isin(true_taxon, rest), int(classes[rest].sum()), "rest", len(rest)))
    if not known.all():
        rows.append(row("not known", ~known, int((taxon_of == UNKNOWN).sum()), "unknown"))
    everything = np.ones(len(context.truth), dtype=bool)
    return rows, row("All", everything, len(context.labels), "total", len(order))


def first_taxon(context: Context, rank: str) -> NDArray[np.int32]:
    """The taxon that comes first for each item, once scores of classes are rolled up."""
    if not context.predictions.dense:
        taxon_of = context.taxonomy.ranks[rank][1]
        return np.where(context.predicted == UNKNOWN, UNKNOWN, taxon_of[context.predicted]).astype(np.int32)
    if context.probabilities is not None:
        rolled = context.taxonomy.roll_up(context.probabilities, rank, by="sum")[1]
    else:
        rolled = context.taxonomy.roll_up(context.predictions.scores, rank, by="max")[1]
    return np.asarray(rolled.argmax(axis=1), dtype=np.int32)


SECTION = Ranks()
