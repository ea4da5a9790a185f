"""Ranks of many runs that change one at a time: what `comparison.compare` says, kept between one change and the next.

All pairs of n runs are n (n - 1) / 2 tests. When one run is new, n of them are; the table keeps the others, so that a
board of thousands is renewed in milliseconds. Standings are those of `compare`, pair by pair and after Holm's
adjustment over all pairs.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldmark.stats.comparison import Difference, Standing, paired_difference
from fieldmark.stats.pair_blocks import PairBlocks, p_values_of

Values = NDArray[np.float64]
# Rows of differences that are worked on at once: few enough to stay near the processor.
_BLOCK_NUMBERS = 1 << 16
_MANY = 32  # new runs that are compared block by block rather than row by row
_CHUNK = 1 << 16


@dataclass(frozen=True)
class PairRanks:
    """Where each run stands.

    Args:
        standings: In the order in which the runs were named.
        behind: The first run minus each of the others, in that order.
    """

    standings: tuple[Standing, ...]
    behind: tuple[Difference, ...]

    @property
    def best_group(self) -> frozenset[int]:
        """The runs that no other is significantly better than."""
        return frozenset(standing.run for standing in self.standings if standing.rank_low == 1)


class PairTable:
    """The p-values of all pairs of runs, of which some come and go.

    Args:
        level: 1 minus the error rate that holds for all ranks at once.
        higher_is_better: Which way is up.
        rests_on: On how many units the metric rests.
    """

    def __init__(self, *, level: float = 0.95, higher_is_better: bool = True, rests_on: float = math.inf) -> None:
        self.level, self.higher_is_better, self.rests_on = level, higher_is_better, rests_on
        self._slots: dict[Hashable, int] = {}
        self._free: list[int] = []
        self._values: Values = np.empty(0)
        self._pseudo: Values = np.empty((0, 0))
        self._p: Values = np.empty((0, 0))
        self._sorted: Values = np.empty(0)

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def bytes(self) -> int:
        """What it takes of the memory."""
        return sum(array.nbytes for array in (self._values, self._pseudo, self._p, self._sorted))

    def missing(self, keys: Sequence[Hashable]) -> list[Hashable]:
        """The runs among these whose values it does not know yet."""
        return [key for key in keys if key not in self._slots]

    def rank(self, keys: Sequence[Hashable], new: Mapping[Hashable, tuple[float, Values]]) -> PairRanks:
        """Ranks runs: those that are not named any more go, and those that are new come in.

        Args:
            keys: All runs, the first of them being that from which the others are said to be behind.
            new: Score and pseudo-values of each run that the table does not know.

        >>> rng = np.random.default_rng(0)
        >>> luck = rng.random(200)
        >>> hits = {name: (luck < skill).astype(float) for name, skill in (("a", 0.8), ("b", 0.5), ("c", 0.49))}
        >>> table = PairTable()
        >>> ranked = table.rank(list("abc"), {name: (one.mean(), one) for name, one in hits.items()})
        >>> [(standing.rank_low, standing.rank_high) for standing in ranked.standings]
        [(1, 1), (2, 3), (2, 3)]
        """
        wanted = set(keys)
        self._remove([key for key in self._slots if key not in wanted])
        self._add({key: new[key] for key in keys if key not in self._slots})
        order = np.array([self._slots[key] for key in keys], dtype=np.int64)
        return PairRanks(self._standings(order), self._behind(order))

    def _remove(self, keys: Sequence[Hashable]) -> None:
        gone: list[Values] = []
        for key in keys:
            slot = self._slots.pop(key)
            gone.append(self._p[slot, list(self._slots.values())])
            self._free.append(slot)
        if gone:
            taken = np.sort(np.concatenate(gone))
            at = np.searchsorted(self._sorted, taken) + np.arange(len(taken)) - np.searchsorted(taken, taken)
            self._sorted = np.delete(self._sorted, at)

    def _add(self, new: Mapping[Hashable, tuple[float, Values]]) -> None:
        if not new:
            return
        self._make_room(len(new), len(next(iter(new.values()))[1]))
        if len(new) >= _MANY:
            self._add_many(new)
            return
        came: list[Values] = []
        there = np.array([*self._slots.values(), *(-1 for _ in new)], dtype=np.int64)
        for number, (key, (value, pseudo)) in enumerate(new.items(), len(self._slots)):
            slot, others = self._free.pop(), there[:number]
            self._values[slot], self._pseudo[slot] = value, pseudo
            p_values = self._against(slot, others)
            self._p[slot, others] = self._p[others, slot] = p_values
            self._slots[key] = there[number] = slot
            came.append(p_values)
        arrived = np.sort(np.concatenate(came))
        self._sorted = np.insert(self._sorted, np.searchsorted(self._sorted, arrived), arrived)

    def _add_many(self, new: Mapping[Hashable, tuple[float, Values]]) -> None:
        """The same for so many that it is worth while to compare them in blocks."""
        old = len(self._slots)
        for key, (value, pseudo) in new.items():
            slot = self._slots[key] = self._free.pop()
            self._values[slot], self._pseudo[slot] = value, pseudo
        there = np.array(list(self._slots.values()), dtype=np.int64)
        count, known, in_order = len(there), len(self._sorted), bool((there == np.arange(len(there))).all())
        joined = np.empty(count * (count - 1) // 2)
        joined[:known] = self._sorted
        self._sorted = joined
        pairs = PairBlocks(self._values[there], self._pseudo[there], rests_on=self.rests_on)
        for part, p_values in pairs.blocks(old):
            if in_order:  # the same, and faster
                self._p[part, : part.stop], self._p[: part.stop, part] = p_values, p_values.T
            else:
                self._p[np.ix_(there[part], there[: part.stop])] = p_values
                self._p[np.ix_(there[: part.stop], there[part])] = p_values.T
            for row, among in zip(p_values, range(part.start, part.stop), strict=True):
                joined[known : known + among] = row[:among]
                known += among
        joined.sort()

    def _make_room(self, more: int, units: int) -> None:
        needed, have = len(self._slots) + more, len(self._values)
        if needed <= have:
            return
        size = needed + needed // 16  # room for some more; the table grows with its square
        values, pseudo, p_values = np.zeros(size), np.zeros((size, units)), np.empty((size, size))
        if have:
            values[:have], pseudo[:have], p_values[:have, :have] = self._values, self._pseudo, self._p
        self._values, self._pseudo, self._p = values, pseudo, p_values
        used = set(self._slots.values()) | set(self._free)
        self._free += [slot for slot in range(size - 1, -1, -1) if slot not in used]

    def _against(self, slot: int, others: NDArray[np.int64]) -> Values:
        """The p-values of one run against others, as `compare` has them."""
        top, units = int(others.max(initial=-1)) + 1, self._pseudo.shape[1]
        p_values = np.ones(top)  # also for slots that are free: taking rows one after the other is faster than choosing
        step = max(1, _BLOCK_NUMBERS // max(units, 1))
        for start in range(0, top, step):
            part = slice(start, min(start + step, top))
            value = np.abs(self._values[part] - self._values[slot])
            apart = self._pseudo[part] - self._pseudo[slot]
            p_values[part] = p_values_of(apart, value, rests_on=self.rests_on)
        return p_values[others]

    def _standings(self, order: NDArray[np.int64]) -> tuple[Standing, ...]:
        values = self._values[order]
        upward = values if self.higher_is_better else -values
        places = len(upward) - np.searchsorted(np.sort(upward), upward, side="right") + 1
        better, worse = self._surely(order, upward)
        count = len(order)
        return tuple(
            Standing(run, int(places[run]), 1 + int(better[run]), count - int(worse[run])) for run in range(count)
        )

    def _surely(self, order: NDArray[np.int64], upward: Values) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each run, how many others are better beyond doubt, and how many worse."""
        highest = _holm_threshold(self._sorted, 1 - self.level)
        better, worse = (np.zeros(len(order), dtype=np.int64) for _ in range(2))
        for place, slot in enumerate(order):
            sure = self._p[slot, order] <= highest
            sure[place] = False
            ahead = upward > upward[place]
            better[place] = np.count_nonzero(sure & ahead)
            worse[place] = np.count_nonzero(sure) - better[place]
        return better, worse

    def _behind(self, order: NDArray[np.int64]) -> tuple[Difference, ...]:
        if len(order) < 2:
            return ()
        first, rest = order[0], order[1:]
        p_values = self._p[first, rest]
        adjusted = _holm_adjusted(self._sorted, p_values)
        return tuple(
            paired_difference(
                (0, place),
                float(self._values[first] - self._values[slot]),
                self._pseudo[first] - self._pseudo[slot],
                float(p_adjusted),
                level=self.level,
                higher_is_better=self.higher_is_better,
                rests_on=self.rests_on,
            )
            for place, (slot, p_adjusted) in enumerate(zip(rest, adjusted, strict=True), 1)
        )


def _holm_threshold(ordered: Values, alpha: float) -> float:
    """The largest p-value that Holm's step-down method rejects; below all of them where it rejects none."""
    count, rejected = len(ordered), -1
    found = 0
    while found != rejected and found < count:
        rejected = found
        found = int(np.searchsorted(ordered, alpha / (count - rejected), side="left"))
    return float(ordered[found - 1]) if found else -1.0


def _holm_adjusted(ordered: Values, p_values: Values) -> Values:
    """Holm's adjustment of some of the p-values among all of them, a piece at a time to save memory."""
    at = np.searchsorted(ordered, p_values)
    adjusted, highest = np.ones(len(p_values)), 0.0
    for start in range(0, len(ordered), _CHUNK):
        piece = ordered[start : start + _CHUNK]
        stepped = piece * np.arange(len(ordered) - start, len(ordered) - start - len(piece), -1)
        stepped[0] = max(stepped[0], highest)
        np.maximum.accumulate(stepped, out=stepped)
        here = (at >= start) & (at < start + len(piece))
        adjusted[here] = np.minimum(stepped[at[here] - start], 1.0)
        highest = float(stepped[-1])
        if highest >= 1:  # and so are all that follow
            break
    return adjusted
