"""Counts of labels in contexts as ratios, shrunk toward wider contexts and toward the taxon of a label.

For label c and context g let n_cg be the count, n_c and n_g its sums, N the sum of all, P(c) = n_c / N, P(g) = n_g / N.
The ratio P(g | c) / P(g) = P(c | g) / P(c) is estimated as

    ratio_cg = (n_cg + m_cg ratio_cG) / (N P(c) P(g) + m_cg),    m_cg = strength ((n_c + 1/2) / N + P(g)),

where G is the wider context, and the ratio in the widest of all is 1. It is as if each label had been seen `strength`
further times, in contexts as the wider level has them, and as if in each context `strength` further observations had
been made, of labels as the wider level has them: two Dirichlet priors at once. So a label that was hardly seen, and a
context in which hardly anything was seen, say what the wider context says. A prior on P(c | g) alone would not do: it
punishes every rare label in every well-known context, since a species with one photo lacks eleven months of the year.

With a taxon t of c to borrow from, ratio_cG above is replaced by ratio_cG ratio_tg / ratio_tG.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

CountTable = NDArray[np.float64]
Rows = NDArray[np.int64]
# A label that was never seen counts as if half an observation of it had been.
HALF = 0.5


def shrunk_ratios(counts: CountTable, seen: CountTable, wider: CountTable, strength: float) -> CountTable:
    """The ratios of one level of contexts.

    Args:
        counts: How often each label occurs in each context: one row per context, one column per label.
        seen: How many observations there are in each context.
        wider: The ratios of the wider context of each, of the same shape as `counts`.
        strength: How many further observations each label and each context are lent; above 0.

    >>> shrunk_ratios(np.array([[3.0, 0.0], [0.0, 3.0]]), np.array([3.0, 3.0]), np.ones((2, 2)), 3.0)
    array([[1.31578947, 0.68421053],
           [0.68421053, 1.31578947]])
    """
    total = seen.sum()
    if total <= 0:
        return wider
    label, context = counts.sum(axis=0) / total, (seen / total)[:, None]
    lent = strength * (label + HALF / total + context)
    return np.asarray((counts + lent * wider) / (total * label * context + lent))


def hierarchical_ratios(
    counts: CountTable,
    seen: CountTable,
    levels: Sequence[Rows],
    strength: float,
    taxon_of: NDArray[np.int32] | None = None,
) -> list[CountTable]:
    """The ratios of every level, each shrunk toward the next wider one.

    Args:
        counts: How often each label occurs in each leaf (a combination of values of all levels).
        seen: How many observations there are in each leaf.
        levels: For each level, widest first, the context of each leaf as a number; -1 where it is not known.
        strength: How many further observations each label and each context are lent.
        taxon_of: The taxon of each label to borrow from, -1 for none; None for no borrowing.

    Returns:
        For each level one row per context, one column per label.
    """
    found: list[CountTable] = []
    of_taxa: list[CountTable] = []
    for number, contexts in enumerate(levels):
        size = int(contexts.max(initial=-1)) + 1
        known = contexts >= 0
        summed, n = np.zeros((size, counts.shape[1])), np.zeros(size)
        np.add.at(summed, contexts[known], counts[known])
        np.add.at(n, contexts[known], seen[known])
        wider = _wider(found, levels[:number], contexts, size, counts.shape[1])
        if taxon_of is not None:
            by_taxon = _by_taxon(summed, taxon_of)
            above = _wider(of_taxa, levels[:number], contexts, size, by_taxon.shape[1])
            of_taxa.append(shrunk_ratios(by_taxon, n, above, strength))
            factor = np.where(taxon_of >= 0, (of_taxa[-1] / above)[:, taxon_of], 1.0)
            wider = wider * factor
        found.append(shrunk_ratios(summed, n, wider, strength))
    return found


def _wider(found: Sequence[CountTable], levels: Sequence[Rows], contexts: Rows, size: int, width: int) -> CountTable:
    """For each context of a level the ratios of the narrowest wider context that is known; 1 where none is."""
    ratios = np.ones((size, width))
    for above, parents in zip(found, levels, strict=True):  # widest first, so that the narrowest has the last word
        known = (contexts >= 0) & (parents >= 0)
        ratios[contexts[known]] = above[parents[known]]
    return ratios


def _by_taxon(counts: CountTable, taxon_of: NDArray[np.int32]) -> CountTable:
    """The counts of the labels of each taxon together."""
    summed = np.zeros((len(counts), int(taxon_of.max(initial=-1)) + 1))
    known = taxon_of >= 0
    np.add.at(summed.T, taxon_of[known], counts.T[known])
    return summed
