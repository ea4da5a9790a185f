"""Metrics of individuals: known ones named, new ones called new, and photos sorted into clusters.

`identity` numbers the true individuals from 0. Datasets (a species at a site) are scored apart and averaged, so that
one with many photos does not decide.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fieldmark.metrics.classification import Codes, Mask, Values

Counts = NDArray[np.int64]


def share_by_identity(right: Mask, identity: Codes, *, among: Mask) -> float:
    """The mean over the individuals flagged by `among` of the share of their photos that are right; NaN for none.

    With `among` = known individuals and `right` = named right this is the balanced accuracy on known samples (BAKS),
    with new individuals and `right` = called new that on unknown samples (BAUS).

    Args:
        right: Whether each photo is answered right.
        identity: The individual on it.
        among: For each photo whether its individual counts.

    >>> share_by_identity(np.array([True, True, False]), np.array([0, 0, 1]), among=np.ones(3, dtype=bool))
    0.5
    """
    if not among.any():
        return float("nan")
    shares = _shares(right[among], identity[among])
    return float(shares.mean())


def geometric_mean_by_dataset(right: Mask, identity: Codes, is_new: Mask, dataset: Codes) -> float:
    """The mean over datasets of sqrt(BAKS x BAUS); where a dataset lacks known or new individuals, it counts 0.

    Args:
        right: Whether each photo is answered right: a known individual by name, a new one as new.
        identity: The individual on each photo; one individual stands in one dataset.
        is_new: Whether it is a new one.
        dataset: The dataset of each photo, numbered from 0.

    >>> right, identity = np.array([True, False, True, True]), np.array([0, 1, 2, 3])
    >>> round(geometric_mean_by_dataset(right, identity, np.array([False, False, True, True]), np.zeros(4, int)), 4)
    0.7071
    """
    total, count = _sums(right, identity, is_new, dataset)
    there = count.sum(axis=0) > 0
    return float(_roots(total, count)[there].mean())


def geometric_mean_by_dataset_without_each_unit(
    right: Mask, identity: Codes, is_new: Mask, dataset: Codes, unit: Codes
) -> Values:
    """The same with each unit left out in turn. Units are whole individuals, or sets of them; NaN for none left.

    Raises:
        ValueError: When the photos of one individual are in several units.
    """
    n_units = int(unit.max()) + 1
    _, first, numbered = np.unique(identity, return_index=True, return_inverse=True)
    if (unit != unit[first][numbered]).any():
        raise ValueError("an individual is in several units")
    total, count = _sums(right, identity, is_new, dataset)
    roots, there = _roots(total, count), count.sum(axis=0) > 0
    shares, own_unit = _shares(right, identity), unit[first]
    kind, where = is_new[first].astype(np.int64), dataset[first].astype(np.int64)
    n_datasets = total.shape[1]
    pair, place = np.unique(own_unit * np.int64(n_datasets) + where, return_inverse=True)
    touching, touched = np.divmod(pair, n_datasets)
    own_total, own_count = np.zeros((2, len(pair))), np.zeros((2, len(pair)), dtype=np.int64)
    np.add.at(own_total, (kind, place), shares)
    np.add.at(own_count, (kind, place), 1)
    count_left = count[:, touched] - own_count
    still = count_left.sum(axis=0) > 0
    change = np.where(still, _roots(total[:, touched] - own_total, count_left), 0.0) - roots[touched]
    sums = roots[there].sum() + np.bincount(touching, weights=change, minlength=n_units)
    datasets = there.sum() - np.bincount(touching[~still], minlength=n_units)
    return np.asarray(np.divide(sums, datasets, out=np.full(n_units, np.nan), where=datasets > 0))


def adjusted_rand(identity: Codes, cluster: Codes, dataset: Codes) -> float:
    """The mean over datasets of the adjusted Rand index of clusters against individuals.

    With n_ij photos of individual i in cluster j, a_i and b_j the sums, n all, and C(n) = n (n - 1) / 2:
    ARI = (sum C(n_ij) - E) / ((sum C(a_i) + sum C(b_j)) / 2 - E), E = sum C(a_i) sum C(b_j) / C(n). Where truth and
    answer are the same and trivial (one cluster each, or each photo alone), it is 1.

    Args:
        identity: The individual on each photo; one individual stands in one dataset.
        cluster: The cluster it was put into; a cluster that spans datasets counts as one in each.
        dataset: The dataset of each photo, numbered from 0.

    >>> everything = np.zeros(4, dtype=int)
    >>> adjusted_rand(np.array([0, 0, 1, 1]), np.array([7, 7, 3, 3]), everything)
    1.0
    >>> round(adjusted_rand(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 2]), everything), 4)
    0.5714
    """
    values = [_rand(_table(identity[rows], cluster[rows])) for rows in _rows_by(dataset)]
    return float(np.mean(values))


def adjusted_rand_without_each_unit(identity: Codes, cluster: Codes, dataset: Codes, unit: Codes) -> Values:
    """The same with each unit (a set of whole individuals) left out in turn; NaN where nothing is left."""
    n_units = int(unit.max()) + 1
    sums, datasets = np.zeros(n_units), np.zeros(n_units, dtype=np.int64)
    for rows in _rows_by(dataset):
        table = _table(identity[rows], cluster[rows])
        whole = _rand(table)
        sums += whole
        datasets += 1
        for one in np.unique(unit[rows]):
            kept = rows[unit[rows] != one]
            sums[one] -= whole
            if len(kept):
                sums[one] += _rand(_table(identity[kept], cluster[kept]))
            else:
                datasets[one] -= 1
    return np.asarray(np.divide(sums, datasets, out=np.full(n_units, np.nan), where=datasets > 0))


def _shares(right: Mask, identity: Codes) -> Values:
    _, numbered = np.unique(identity, return_inverse=True)
    return np.asarray(np.bincount(numbered, weights=right) / np.bincount(numbered))


def _sums(right: Mask, identity: Codes, is_new: Mask, dataset: Codes) -> tuple[Values, Counts]:
    """The sum of the shares of known (first row) and new individuals of each dataset, and how many there are."""
    _, first = np.unique(identity, return_index=True)
    n_datasets = int(dataset.max()) + 1
    total, count = np.zeros((2, n_datasets)), np.zeros((2, n_datasets), dtype=np.int64)
    place = (is_new[first].astype(np.int64), dataset[first])
    np.add.at(total, place, _shares(right, identity))
    np.add.at(count, place, 1)
    return total, count


def _roots(total: Values, count: Counts) -> Values:
    # A sum of shares minus its own terms can fall a hair below 0.
    means = np.maximum(total, 0.0) / np.maximum(count, 1)
    return np.asarray(np.sqrt(means[0] * means[1]))


def _rows_by(dataset: Codes) -> list[NDArray[np.int64]]:
    return [np.flatnonzero(dataset == one) for one in np.unique(dataset)]


def _table(identity: Codes, cluster: Codes) -> tuple[Counts, Counts, Counts]:
    """How many photos stand in each cell of individuals by clusters (empty ones left out), in each row and column."""
    (_, row), (_, column) = (np.unique(one, return_inverse=True) for one in (identity, cluster))
    width = int(column.max()) + 1
    _, cells = np.unique(row.astype(np.int64) * width + column, return_counts=True)
    return cells, np.bincount(row), np.bincount(column)


def _rand(table: tuple[Counts, Counts, Counts]) -> float:
    together, true, answered = (float((sizes * (sizes - 1) // 2).sum()) for sizes in table)
    n = int(table[1].sum())
    pairs = n * (n - 1) / 2
    # (x - E) / (y - E), multiplied by the number of pairs so that whole numbers stay whole.
    above = together * pairs - true * answered
    below = (true + answered) / 2 * pairs - true * answered
    return above / below if below else 1.0
