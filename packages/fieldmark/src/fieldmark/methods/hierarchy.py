"""Means of species that borrow from their genus, the genus from its family, and so on up to the root.

The model: photos scatter around the mean of their species with variance sigma2 in every direction, means of species
around that of their genus with variance tau2, those of genera around that of their family with another, and so on; the
mean at the root can be anything. Everything is Gaussian on a tree, so that one pass up and one down give the exact
posterior, and EM the variances (empirical Bayes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

ITERATIONS = 50
SMALLEST = 1e-12


@dataclass(frozen=True)
class Variances:
    """Variances per direction: of photos around their species, and of each level around the one above it.

    Args:
        photos: Around their species.
        levels: Of the lowest level (species) around the next, of that around the one after, up to the root.
    """

    photos: float
    levels: tuple[float, ...]


@dataclass(frozen=True)
class Posterior:
    """What is known about the nodes of one level.

    Args:
        means: The mean of each.
        variance: How sure that is, per direction.
        borrowed: The share of the mean that comes from the level above.
    """

    means: Matrix
    variance: Vector
    borrowed: Vector


class RankTree:
    """The species with photos, and their taxa at each higher level.

    Args:
        ranks: For each level above the species, lowest first, the taxon of each species; -1 where it is not known,
            which stands for a taxon of its own.
        counts: How many photos each species has; at least one.
        means: Their means.
        scatter: The sum of squared distances of photos from the mean of their species.
    """

    def __init__(self, ranks: Sequence[NDArray[np.int32]], counts: NDArray[np.int64], means: Matrix, scatter: float):
        self.counts, self.means, self.scatter = counts.astype(np.float64), means, scatter
        self.parents: list[NDArray[np.int64]] = []
        path = np.zeros(len(counts), dtype=np.int64)  # the node of each species at the level above: all in the root
        levels = [path]
        for taxon in reversed(ranks):
            alone = np.where(taxon >= 0, taxon, taxon.max(initial=-1) + 1 + np.arange(len(taxon)))
            path = np.unique(np.stack([path, alone]), axis=1, return_inverse=True)[1].ravel()
            levels.append(path)
        levels.append(np.arange(len(counts)))
        for below, above in zip(levels[:0:-1], levels[-2::-1], strict=True):
            parent = np.empty(below.max() + 1, dtype=np.int64)
            parent[below] = above
            self.parents.append(parent)

    def posterior(self, variances: Variances) -> list[Posterior]:
        """The posterior of each level, species first, the root last. No variance of photos means no borrowing."""
        upward = [(self.counts / max(variances.photos, SMALLEST), self.means)]
        for parent, tau2 in zip(self.parents, variances.levels, strict=True):
            precision, means = upward[-1]
            told = 1 / (1 / precision + tau2)
            total: Vector = np.bincount(parent, told).astype(np.float64)
            sums = np.zeros((len(total), means.shape[1]))
            np.add.at(sums, parent, told[:, None] * means)
            upward.append((total, sums / total[:, None]))
        precision, means = upward[-1]
        posteriors = [Posterior(means, 1 / precision, np.zeros(1))]
        for (precision, means), parent, tau2 in zip(
            upward[-2::-1], self.parents[::-1], variances.levels[::-1], strict=True
        ):
            above = posteriors[-1]
            borrowed = 1 / (1 + precision * tau2)
            mixed = (1 - borrowed)[:, None] * means + borrowed[:, None] * above.means[parent]
            variance = borrowed * tau2 + borrowed**2 * above.variance[parent]
            posteriors.append(Posterior(mixed, variance, borrowed))
        return posteriors[::-1]

    def estimate(self) -> Variances:
        """The variances of highest likelihood, by EM.

        Where no species has two photos, photos and species cannot be told apart: the two share what there is.
        """
        size = self.means.shape[1]
        start = max(float(self.means.var(axis=0).mean()), SMALLEST)
        variances = Variances(start, (start,) * len(self.parents))
        for _ in range(ITERATIONS):
            posteriors = self.posterior(variances)
            species = posteriors[0]
            off = ((self.means - species.means) ** 2).sum(axis=1) / size + species.variance
            photos = (self.scatter / size + float(self.counts @ off)) / float(self.counts.sum())
            levels = [
                _spread(below, above, parent, tau2)
                for below, above, parent, tau2 in zip(
                    posteriors[:-1], posteriors[1:], self.parents, variances.levels, strict=True
                )
            ]
            variances = Variances(max(photos, SMALLEST), tuple(max(level, SMALLEST) for level in levels))
        return variances


def _spread(below: Posterior, above: Posterior, parent: NDArray[np.int64], tau2: float) -> float:
    """The expected squared distance per direction between nodes and the one above them."""
    size = below.means.shape[1]
    apart = ((below.means - above.means[parent]) ** 2).sum(axis=1) / size
    # Given the one above, a node is (1 - borrowed) own + borrowed above, with variance borrowed tau2.
    doubt = below.borrowed * tau2 + (1 - below.borrowed) ** 2 * above.variance[parent]
    return float((apart + doubt).mean())
