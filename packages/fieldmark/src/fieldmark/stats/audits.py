"""How much of a finished list is right, by a random draw from it.

Of a list of N entries a person has looked at some, chosen by a rule that never looks at the random draw (the least
certain first, say), and has put those right. Of the R entries that the rule has not reached, a random draw of n showed
x wrong ones, which are right now as well. With W wrong ones among the R, x has a hypergeometric distribution; the
largest W that it does not rule out bounds how many are left, exactly and for any size of the list:

    share right >= 1 - (W - x) / N

Whoever looks at such a bound again and again, and stops when it is high enough, is misled more often than it says. So
it is looked at only when the draw has grown to sizes that are fixed beforehand, and each look takes its part of the
risk (Bonferroni).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

FIRST_LOOK, GROWTH = 60, 1.1


def most_wrong(wrong: int, drawn: int, population: int, *, risk: float) -> int:
    """The largest number of wrong entries that a random draw without replacement does not rule out.

    Args:
        wrong: How many of those drawn were wrong.
        drawn: How many were drawn.
        population: How many they were drawn from.
        risk: The chance that the number is higher nevertheless.

    >>> most_wrong(0, 58, 1_000_000, risk=0.05) / 1_000_000 < 0.0504, most_wrong(2, 10, 10, risk=0.05)
    (True, 2)
    """
    if not 0 <= wrong <= drawn <= population:
        raise ValueError(f"{wrong} wrong of {drawn} drawn of {population} cannot be")
    low, high = wrong, population - (drawn - wrong)
    while low < high:  # the chance of so few wrong ones falls as their number grows
        middle = (low + high + 1) // 2
        if _chance_of_at_most(wrong, drawn, population, middle) > risk:
            low = middle
        else:
            high = middle - 1
    return low


def _chance_of_at_most(wrong: int, drawn: int, population: int, wrong_in_all: int) -> float:
    """P(X <= wrong), X hypergeometric: `drawn` of a population with `wrong_in_all` wrong ones."""
    least = max(0, drawn - (population - wrong_in_all))
    found = np.arange(least, min(wrong, wrong_in_all) + 1)
    if not len(found):
        return 0.0
    logs = _log_choose(wrong_in_all, found) + _log_choose(population - wrong_in_all, drawn - found)
    return float(np.exp(logs - _log_choose(population, np.asarray(drawn))).sum())


def _log_choose(n: int, k: np.ndarray) -> np.ndarray:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


@dataclass(frozen=True)
class StoppingRule:
    """When a list is good enough.

    Args:
        share: The share of the list that must be right.
        risk: The chance that the rule says so of a list that is not.
        entries: How long the list is.
        one_in: Of so many looks one is at random; 1 for looks in a random order.
    """

    share: float
    risk: float
    entries: int
    one_in: int = 10

    def __post_init__(self) -> None:
        if not (0 < self.share < 1 and 0 < self.risk < 1 and self.one_in >= 1):
            raise ValueError("a stopping rule needs shares between 0 and 1, and one look in at least 1")

    @property
    def looks(self) -> tuple[int, ...]:
        """The sizes of the random draw at which the bound is looked at.

        >>> StoppingRule(0.95, 0.05, 3000).looks
        (60, 66, 73, 81, 90, 100, 111, 123, 136, 150, 165, 182, 201, 222, 245, 270, 297)
        """
        sizes, size = [], FIRST_LOOK
        while size <= max(FIRST_LOOK, self.entries // self.one_in):
            sizes.append(size)
            size = math.ceil(size * GROWTH)
        return tuple(sizes)

    @property
    def risk_of_a_look(self) -> float:
        """The part of the risk that each look takes."""
        return self.risk / len(self.looks)

    def share_right(self, wrong: int, drawn: int, unreached: int) -> float:
        """The lower bound of the share that is right, everything looked at included.

        Args:
            wrong: Of those drawn at random and not reached otherwise, how many were wrong.
            drawn: How many those are.
            unreached: How many entries of the list only the random draw may have reached.

        >>> rule = StoppingRule(0.95, 0.05, 3000)
        >>> round(rule.share_right(3, 60, 1000), 3), rule.share_right(0, 0, 0)
        (0.942, 1.0)
        """
        if not self.entries:
            return 1.0
        left = most_wrong(wrong, drawn, unreached, risk=self.risk_of_a_look) - wrong
        return 1 - left / self.entries

    def next_look(self, drawn: int) -> int | None:
        """The size of the draw at which the bound is looked at next, None after the last."""
        return next((size for size in self.looks if size > drawn), None)
