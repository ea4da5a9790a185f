"""Which entry of a list a person looks at next: the least certain first, and one in ten at random.

The random ones are the next of a permutation that is drawn once. Whether an entry is *reached* (the order of certainty
has come to it, or gone past it because it had been drawn at random before) never depends on that permutation: after
every nine entries that are reached, one is drawn. So among the entries that are not reached, those drawn are a simple
random draw, which is what the stopping rule needs (`stats.audits`). It stays one after the order changes, as it does
when a model learns from what was corrected, as long as the model does not learn from the entries drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from fieldmark.stats.audits import StoppingRule


class Drawn(StrEnum):
    """How an entry came to be looked at."""

    UNCERTAIN = "uncertain"
    RANDOM = "random"


@dataclass(frozen=True)
class Audit:
    """What the entries that were drawn at random say about the list.

    Args:
        drawn, wrong: How many count, and how many of those were wrong.
        unreached: How many entries they stand for, themselves included.
        drawn_in_all: With those that the order of certainty has reached since.
        share_right: The lower bound of the share of the finished list that is right.
        estimate: The share without the caution, None where nothing was drawn.
    """

    drawn: int
    wrong: int
    unreached: int
    drawn_in_all: int
    share_right: float
    estimate: float | None


class ReviewQueue:
    """The order in which a person looks at a list.

    Args:
        certainty: How sure the machine is of each entry, by its id; the lowest come first.
        seed: The seed of the permutation.
        one_in: Of so many looks one is at random; 1 for all.
    """

    def __init__(self, certainty: Mapping[str, float], *, seed: int = 0, one_in: int = 10) -> None:
        self.one_in = one_in
        self.entries = tuple(sorted(certainty))
        order = np.random.default_rng(seed).permutation(len(self.entries))
        self._random = [self.entries[place] for place in order]
        self._next_random = 0
        self.reached: dict[str, None] = {}
        self.drawn: dict[str, None] = {}
        self.reorder(certainty)

    def reorder(self, certainty: Mapping[str, float]) -> None:
        """Takes other certainties, as after the model has learned."""
        self._order = sorted(self.entries, key=lambda entry: (certainty[entry], entry))
        self._place = 0

    def restore(self, reached: Iterable[str], drawn: Iterable[str]) -> None:
        """Takes over what was reached and drawn earlier."""
        known = set(self.entries)
        self.reached = dict.fromkeys(entry for entry in reached if entry in known)
        self.drawn = dict.fromkeys(entry for entry in drawn if entry in known)

    def next(self) -> tuple[str, Drawn] | None:
        """The next entry to look at, None at the end of the list. It stays the next until it is noted."""
        if self._a_random_one_is_due():
            entry = self._unseen(self._random, self._next_random)
            if entry is not None:
                return entry, Drawn.RANDOM
        while self._place < len(self._order):
            entry = self._order[self._place]
            if entry not in self.reached and entry not in self.drawn:
                return entry, Drawn.UNCERTAIN
            self._place += 1
            if entry not in self.reached:  # drawn at random before: passed
                self.reached[entry] = None
                if self._a_random_one_is_due():
                    return self.next()
        return None

    def note(self, entry: str, drawn: Drawn) -> None:
        """Takes note that an entry was looked at."""
        (self.drawn if drawn is Drawn.RANDOM else self.reached)[entry] = None

    def audit(self, rule: StoppingRule, is_right: Callable[[str], bool]) -> Audit:
        """What those drawn at random say now.

        Args:
            rule: The stopping rule.
            is_right: Whether the machine's answer to an entry that was looked at is right.
        """
        counted = [entry for entry in self.drawn if entry not in self.reached]
        wrong = sum(not is_right(entry) for entry in counted)
        unreached = len(self.entries) - len(self.reached)
        bound = rule.share_right(wrong, len(counted), unreached)
        left = (unreached - len(counted)) * (wrong / len(counted)) if counted else None
        estimate = None if left is None or not self.entries else 1 - left / len(self.entries)
        return Audit(len(counted), wrong, unreached, len(self.drawn), bound, estimate)

    def _a_random_one_is_due(self) -> bool:
        return self.one_in == 1 or len(self.reached) >= (self.one_in - 1) * (len(self.drawn) + 1)

    def _unseen(self, order: Sequence[str], start: int) -> str | None:
        for place in range(start, len(order)):
            if order[place] not in self.reached and order[place] not in self.drawn:
                self._next_random = place
                return order[place]
        return None
