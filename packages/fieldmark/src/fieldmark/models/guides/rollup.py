"""Rolling an answer up the taxonomy until it is sure enough: species, else genus, else family, and so on.

At each rank the answer is the taxon of highest probability, which is the sum over its labels. It is given at the lowest
rank at which that sum reaches the line of the rank. Lines come from val: the lowest from `SURE` on at which, of the
observations of val whose answer reaches it, at least the share `SURE` is right (with one right and one wrong
observation added). A rank at which no line does is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fieldmark.tables.labels import UNKNOWN
from fieldmark.tables.schema import RANKS
from fieldmark.tables.taxonomy import Taxonomy

SURE = 0.8
# Lines that are tried.
LINES = tuple(round(SURE + step * (1 - SURE) / 40, 4) for step in range(40))
# What a label itself is called where its taxa do not tell its rank.
OF_LABEL = "name"
# Stated probabilities are held against val within bands that begin here.
BANDS = (0.0, 0.8, 0.85, 0.9, 0.95, 0.98, 0.995)

Floats = NDArray[np.float64]


class RolledUp(NamedTuple):
    """An answer at some rank: the taxon, its probability as val bears it out, and the labels that belong to it."""

    rank: str
    taxon: str
    probability: float
    codes: NDArray[np.int64]


@dataclass(frozen=True)
class RollUp:
    """The rule.

    Args:
        lines: By rank the line, None where answers at this rank are never sure enough; the lowest rank first.
        bands: By rank the highest probability that is stated in each band, from val.
        right: By rank how many answers of val were given there, and how many of them were right.
    """

    lines: Mapping[str, float | None]
    bands: Mapping[str, tuple[float, ...]]
    right: Mapping[str, tuple[int, int]]

    def answer(self, chances: Floats, taxonomy: Taxonomy) -> RolledUp | None:
        """The answer for one item; None where no rank is sure enough.

        Args:
            chances: The probability of each label.
            taxonomy: The labels and their taxa.
        """
        for rank, line in self.lines.items():
            names, code_of, sums = at_rank(chances[None], taxonomy, rank)
            best = int(sums[0].argmax())
            if line is not None and sums[0, best] >= line:
                stated = self.stated(rank, float(sums[0, best]))
                return RolledUp(rank, names[best], stated, np.flatnonzero(code_of == best))
        return None

    def stated(self, rank: str, probability: float) -> float:
        """The probability as it is stated: never higher than val bears out."""
        band = int(np.searchsorted(BANDS, probability, side="right")) - 1
        return min(probability, self.bands[rank][band])

    def to_data(self) -> dict[str, Any]:
        """As plain data that a model can keep."""
        listed = {rank: list(values) for rank, values in self.bands.items()}
        return {"lines": dict(self.lines), "bands": listed, "right": {k: list(v) for k, v in self.right.items()}}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """From what `to_data` made."""
        right = {rank: (int(given), int(right)) for rank, (given, right) in data["right"].items()}
        return cls(data["lines"], {rank: tuple(values) for rank, values in data["bands"].items()}, right)


def ladder(taxonomy: Taxonomy) -> list[str]:
    """The ranks to climb, the lowest first; ranks that say no more than the one below are left out.

    The kingdom is the highest, and a rank at which everything is one taxon is an answer too.
    """
    steps = [OF_LABEL]
    sizes = {OF_LABEL: len(taxonomy.labels)}
    for rank in reversed(RANKS):
        if rank in taxonomy.ranks and len(taxonomy.ranks[rank][0]) < sizes[steps[-1]]:
            steps.append(rank)
            sizes[rank] = len(taxonomy.ranks[rank][0])
    return steps


def at_rank(chances: Floats, taxonomy: Taxonomy, rank: str) -> tuple[tuple[str, ...], NDArray[np.int64], Floats]:
    """The taxa of a rank, the taxon of each label (-1 for none), and the probability of each taxon for each item."""
    if rank == OF_LABEL:
        return taxonomy.labels.names, np.arange(len(taxonomy.labels)), chances
    taxa, sums = taxonomy.roll_up(chances, rank)
    return taxa.names, taxonomy.ranks[rank][1].astype(np.int64), np.asarray(sums, dtype=np.float64)


def rank_of_labels(taxonomy: Taxonomy) -> str:
    """What the labels themselves are: species, genera, ... where their taxa tell, else names.

    A rank is that of the labels when each of them has a taxon there and no two share one.
    """
    for rank in reversed(RANKS):
        if rank in taxonomy.ranks:
            taxa, code_of = taxonomy.ranks[rank]
            if len(taxa) == len(taxonomy.labels) and (code_of != UNKNOWN).all():
                return rank
    return OF_LABEL


def learn_roll_up(chances: Floats, truth: NDArray[Any], taxonomy: Taxonomy) -> RollUp:
    """The rule from observations of val.

    Args:
        chances: One row per observation, one column per label.
        truth: The code of the true label of each, -1 for unknown; an answer to those is wrong at every rank.
        taxonomy: The labels and their taxa.
    """
    lines: dict[str, float | None] = {}
    bands: dict[str, tuple[float, ...]] = {}
    given: dict[str, tuple[int, int]] = {}
    left = np.ones(len(truth), dtype=np.bool_)  # observations that no lower rank answers
    for rank in ladder(taxonomy):
        _, code_of, sums = at_rank(chances, taxonomy, rank)
        best = sums.argmax(axis=1)
        probability = sums[np.arange(len(sums)), best]
        true = np.where(truth >= 0, code_of[np.maximum(truth, 0)], UNKNOWN)
        right = (best == true) & (true != UNKNOWN)
        line = _line(probability[left], right[left])
        lines[rank] = line
        answered = left & (probability >= (np.inf if line is None else line))
        bands[rank] = _bands(probability[answered], right[answered])
        given[rank] = (int(answered.sum()), int(right[answered].sum()))
        left &= ~answered
    return RollUp(lines, bands, given)


def _line(probability: Floats, right: NDArray[np.bool_]) -> float | None:
    for line in LINES:
        reached = probability >= line
        if (right[reached].sum() + 1) / (reached.sum() + 2) >= SURE:
            return line
    return None


def _bands(probability: Floats, right: NDArray[np.bool_]) -> tuple[float, ...]:
    """The highest probability to state in each band: what was right on val, erring to the low side.

    Two observations are added, one that is wrong and one that is right as often as the band begins at.
    """
    band = np.searchsorted(BANDS, probability, side="right") - 1
    highest: list[float] = []
    for number, begin in enumerate(BANDS):
        own = band == number
        share = (right[own].sum() + begin) / (own.sum() + 2) if own.any() else begin
        highest.append(round(float(share), 6))
    return tuple(highest)
