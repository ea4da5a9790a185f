"""Random numbers without a state: each is a function of an example's seed and of what it is drawn for.

A generator would have to be saved, restored and shared out among processes. A hash needs none of that: any process
draws the same numbers for an example, at any time.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Seeds = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_SECOND_VIEW = np.uint64(0xD1B54A32D192ED03)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mix(values: Seeds) -> Seeds:
    """Scatters 64-bit numbers so that neighbors have nothing in common (the finalizer of SplitMix64)."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(30))) * _FIRST
        values = (values ^ (values >> np.uint64(27))) * _SECOND
    return np.asarray(values ^ (values >> np.uint64(31)), dtype=np.uint64)


def example_seeds(seed: int, epoch: int, positions: NDArray[np.int64]) -> Seeds:
    """The seed of each example of an epoch, from its position in the order of that epoch."""
    with np.errstate(over="ignore"):
        root = mix(np.array([seed], dtype=np.int64).astype(np.uint64) + _STEP)
        root = mix(root + np.uint64(epoch) * _STEP + np.uint64(1))
        return mix(root + positions.astype(np.uint64) * _STEP)


@dataclass(frozen=True)
class Draws:
    """Draws for the examples of a batch, one number each.

    Args:
        seeds: The seed of each example.
        strong: Whether they are for a second view of the examples that is to be changed strongly.

    >>> draws = Draws(example_seeds(0, 0, np.arange(4)))
    >>> bool((draws.uniform("left") == draws.uniform("left")).all()), bool((draws.uniform("top") < 1).all())
    (True, True)
    """

    seeds: Seeds
    strong: bool = False

    def __len__(self) -> int:
        return len(self.seeds)

    def of_strong_view(self, places: NDArray[np.int64]) -> Draws:
        """Draws for a second view of some of the examples; they have nothing in common with those for the first."""
        return Draws(mix(self.seeds[places] ^ _SECOND_VIEW), strong=True)

    def uniform(self, what: str, low: float = 0.0, high: float = 1.0) -> NDArray[np.float64]:
        """Numbers between `low` and `high`, another set for every `what`."""
        with np.errstate(over="ignore"):
            bits = mix(self.seeds + np.uint64(crc32(what.encode())) * _STEP)
        return np.asarray(low + (high - low) * ((bits >> np.uint64(11)) * 2.0**-53), dtype=np.float64)

    def integers(self, what: str, below: int) -> NDArray[np.int64]:
        """Whole numbers from 0 to `below` - 1."""
        return (self.uniform(what) * below).astype(np.int64)

    def chance(self, what: str, probability: float = 0.5) -> NDArray[np.bool_]:
        """True with a given probability."""
        return np.asarray(self.uniform(what) < probability, dtype=np.bool_)

    def beta(self, what: str, alpha: float) -> NDArray[np.float64]:
        """Numbers from a symmetric beta distribution."""
        from scipy.special import betaincinv

        return np.asarray(betaincinv(alpha, alpha, self.uniform(what)), dtype=np.float64)
