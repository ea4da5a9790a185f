"""Tables of pairs that are kept between one board and the next, so that a new score costs one row of them."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Metric
from fieldmark.scoring.scorecard import units_rested_on
from fieldmark.stats.pair_table import PairRanks, PairTable

if TYPE_CHECKING:
    from fieldmark_challenge.boards.leaderboard import Entrant

MOST_BYTES = 256 << 20
APART = "the entries were scored on different units; score them all again"


@dataclass
class StandingTable:
    """The pairs of the entries of one board."""

    metric: Metric
    pairs: PairTable
    unit_ids: Sequence[str] = ()
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def empty(cls, metric: Metric) -> StandingTable:
        """One that knows no entry yet."""
        return cls(metric, PairTable(higher_is_better=metric.higher_is_better))

    def rank(
        self, competing: Sequence[Entrant], read_units: Callable[[list[Entrant]], list[Entrant]]
    ) -> PairRanks | str:
        """Where entries stand, or why that cannot be said.

        Args:
            competing: The entries, best first.
            read_units: Gives entries their pseudo-values; asked for those only that the table does not know.
        """
        with self.lock:
            ranked = self._rank(competing, read_units)
            if ranked == APART and len(self.pairs):  # some are known from before, on other units
                self._forget()
                ranked = self._rank(competing, read_units)
            if isinstance(ranked, str):
                self._forget()
            return ranked

    def _rank(
        self, competing: Sequence[Entrant], read_units: Callable[[list[Entrant]], list[Entrant]]
    ) -> PairRanks | str:
        name = self.metric.name
        rests_on = units_rested_on(one.score(name) for one in competing)
        if rests_on != self.pairs.rests_on:
            self._forget(rests_on)
        keys = [(one.id, one.version, one.score(name).value) for one in competing]
        missing = set(self.pairs.missing(keys))
        fresh = read_units([one for one, key in zip(competing, keys, strict=True) if key in missing])
        if any(name not in one.card.pseudo for one in fresh):
            return f"{name} has no value per unit, so that entries cannot be compared in pairs"
        known = {self.unit_ids} if len(self.pairs) else set()
        units = {one.card.unit_ids for one in fresh} | known
        if len(units) > 1:
            return APART
        self.unit_ids = next(iter(units), ())
        new: dict[Hashable, tuple[float, NDArray[np.float64]]] = {
            (one.id, one.version, one.score(name).value): (one.score(name).value, one.card.pseudo[name])
            for one in fresh
        }
        return self.pairs.rank(keys, new)

    def _forget(self, rests_on: float = math.inf) -> None:
        self.pairs = PairTable(higher_is_better=self.metric.higher_is_better, rests_on=rests_on)
        self.unit_ids = ()


class StandingTables:
    """The tables of all boards, the last used ones, as far as the memory for them goes."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._tables: OrderedDict[Hashable, StandingTable] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, key: Hashable, metric: Metric) -> StandingTable:
        """The table of a board."""
        with self._lock:
            table = self._tables.setdefault(key, StandingTable.empty(metric))
            self._tables.move_to_end(key)
            while len(self._tables) > 1 and sum(one.pairs.bytes for one in self._tables.values()) > self._most:
                self._tables.popitem(last=False)
            return table


TABLES = StandingTables()
