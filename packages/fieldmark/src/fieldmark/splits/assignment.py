"""Groups dealt out to parts, so that each part gets its share of rows and of every class.

With n_pk the rows of class k in part p, N_k all rows of class k, N all rows and s_p the share of part p, groups are
taken from the largest to the smallest (equal ones in a drawn order), and each goes where

    J = sum over p of (1 / s_p) [sum over k of n_pk^2 / N_k + (sum over k of n_pk)^2 / N]

grows least. J is smallest where every part has exactly its share of every class. The largest groups come first, when
all parts have room: a site with half of the rows goes to train and not to test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError

Numbers = NDArray[np.int64]


def dealt(groups: Numbers, classes: Numbers | None, shares: Sequence[float], seed: int) -> Numbers:
    """The part of each row, from 0 on; rows of a group get the same part.

    Args:
        groups: The number of the group of each row, from 0 on.
        classes: The class of each row, to be balanced as well; None balances the number of rows alone.
        shares: Of all rows, for each part; they add up to 1.
        seed: The seed of the order among groups of the same size.
    """
    kinds = np.zeros(len(groups), dtype=np.int64) if classes is None else np.unique(classes, return_inverse=True)[1]
    n_groups, n_kinds = int(groups.max()) + 1, int(kinds.max()) + 1
    pairs, counts = np.unique(groups * n_kinds + kinds, return_counts=True)
    group, kind = np.divmod(pairs, n_kinds)
    begin = np.searchsorted(group, np.arange(n_groups + 1))
    sizes = np.bincount(groups, minlength=n_groups)
    drawn = np.random.default_rng(seed).permutation(n_groups)
    order = drawn[np.argsort(-sizes[drawn], kind="stable")]
    weight = 1 / np.bincount(kinds, minlength=n_kinds)
    inverse = 1 / np.asarray(shares, dtype=np.float64)
    rows, total = np.zeros((len(shares), n_kinds)), np.zeros(len(shares))
    part_of = np.empty(n_groups, dtype=np.int64)
    for one in order:
        span = slice(begin[one], begin[one + 1])
        own, count, size = kind[span], counts[span], sizes[one]
        growth = (rows[:, own] + count / 2) @ (count * weight[own]) + (total + size / 2) * size / len(groups)
        part = int(np.argmin(growth * inverse))
        rows[part, own] += count
        total[part] += size
        part_of[one] = part
    return part_of[groups]


def drawn_groups(groups: Numbers, shares: Sequence[float], seed: int) -> Numbers:
    """The part of each row, where shares are counted in groups: a plain draw that looks at nothing else.

    >>> drawn_groups(np.array([0, 1, 2, 3, 3]), (0.75, 0.25), seed=0).tolist()
    [0, 0, 1, 0, 0]
    """
    n_groups = int(groups.max()) + 1
    order = np.random.default_rng(seed).permutation(n_groups)
    ends = np.round(np.cumsum(shares[1:]) * n_groups).astype(np.int64)  # the first part gets what is left
    part_of = np.zeros(n_groups, dtype=np.int64)
    part_of[order] = (np.searchsorted(ends, np.arange(n_groups), side="right") + 1) % len(shares)
    return part_of[groups]


def folds_of(groups: Numbers, classes: Numbers | None, number: int, seed: int) -> Numbers:
    """The fold of each row, from 0 on.

    Raises:
        MisuseError: When there are fewer groups than folds.
    """
    n_groups = int(groups.max()) + 1 if len(groups) else 0
    if number < 2:
        raise MisuseError(f"Cross-validation needs at least 2 folds: found {number}.")
    if n_groups < number:
        found = f"{n_groups} group(s) that must not be parted cannot make {number} folds"
        raise MisuseError(f"{found}: take fewer folds, or a rule that makes smaller groups.")
    return dealt(groups, classes, [1 / number] * number, seed)


def shares_of(parts: Mapping[str, float]) -> dict[str, float]:
    """The shares of train, val and test, train getting the rest.

    Raises:
        MisuseError: When a share is no share, or nothing is left to train.
    """
    for name, share in parts.items():
        if not 0 <= share < 1:
            raise MisuseError(f"The share of {name} is {share:g}: expected a number from 0 to 1, below 1.")
    rest = 1 - sum(parts.values())
    if rest <= 1e-9:
        raise MisuseError(f"{' and '.join(parts)} take all rows: leave a share for train.")
    if rest > 1 - 1e-9:
        raise MisuseError("There is nothing to cut: give a share of val or of test above 0, or a number of folds.")
    return {"train": rest, **{name: share for name, share in parts.items() if share > 0}}
