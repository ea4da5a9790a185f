"""The same fit over several seeds: the mean score, and where its spread comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fieldmark.errors import MisuseError
from fieldmark.scoring import SCORECARD_FILE, Scorecard
from fieldmark.storage.files import write_json

REPEATS_FILE = "repeats.json"


@dataclass(frozen=True)
class Spread:
    """One metric over several splits.

    Args:
        mean: Over the seeds.
        deviation: The standard deviation between seeds.
        of_test: What of it a test of this size explains: the standard error of one score, in the mean.
        of_split: What is left for the split and the seed of the method, as a standard deviation; 0 where the test
            explains all.
        values: The score of each seed.
    """

    mean: float
    deviation: float
    of_test: float | None
    of_split: float | None
    values: tuple[float, ...]


@dataclass(frozen=True)
class Repeats:
    """Several runs that differ in their seed."""

    folder: Path
    cards: Mapping[int, Scorecard]
    metrics: Mapping[str, Spread]

    def to_json(self) -> dict[str, Any]:
        """The spread of each metric as data."""
        spreads = {name: asdict(one) for name, one in self.metrics.items()}
        return {"seeds": list(self.cards), "metrics": spreads}


def spread_of(values: Mapping[int, float], errors: Mapping[int, float | None]) -> Spread:
    """Divides the variance between seeds into that of a test of this size and the rest.

    >>> spread_of({0: 0.5, 1: 0.7}, {0: 0.1, 1: 0.1}).of_split
    0.1
    """
    scores = np.array(list(values.values()))
    variance = float(scores.var(ddof=1))
    known = [error for error in errors.values() if error is not None]
    test = float(np.mean(np.square(known))) if len(known) == len(scores) else None
    rest = None if test is None else round(float(np.sqrt(max(variance - test, 0.0))), 6)
    within = None if test is None else float(np.sqrt(test))
    return Spread(float(scores.mean()), float(np.sqrt(variance)), within, rest, tuple(scores.tolist()))


def fit_repeatedly(number: int, first_seed: int, out: Path, fit: Callable[[int, Path], Any]) -> Repeats:
    """Fits once for each seed, into folders of their own; runs that are there are not made again.

    Args:
        number: How many seeds, from the first on.
        first_seed: That seed.
        out: The folder of all runs.
        fit: Fits with a seed and writes a run.

    Raises:
        MisuseError: For fewer than two seeds.
    """
    if number < 2:
        raise MisuseError(f"--repeats {number}: expected at least 2, since one run has no spread.")
    cards: dict[int, Scorecard] = {}
    for seed in range(first_seed, first_seed + number):
        folder = out / f"seed-{seed}"
        if not (folder / SCORECARD_FILE).exists():
            fit(seed, folder)
        cards[seed] = Scorecard.read(folder / SCORECARD_FILE)
    first, *others = cards.values()
    names = [name for name in first.metrics if all(name in card.metrics for card in others)]
    spreads = {
        name: spread_of(
            {seed: card.metrics[name].value for seed, card in cards.items()},
            {seed: _error(card, name) for seed, card in cards.items()},
        )
        for name in names
    }
    made = Repeats(out, cards, spreads)
    write_json(out / REPEATS_FILE, made.to_json())
    return made


def _error(card: Scorecard, name: str) -> float | None:
    """The standard error of a score by its pseudo-values; None for metrics without any."""
    pseudo = card.pseudo.get(name)
    return None if pseudo is None or len(pseudo) < 2 else float(np.std(pseudo, ddof=1) / np.sqrt(len(pseudo)))
