"""What `auto` tried, chose and expects, as files of the run.

`auto.csv` lists every chain with its score and time, or why it was not tried; `auto.json` adds the curve of the best
score over time and the estimate; `chain.json` is the chain that was fitted. `search.csv` compares those that answered
all folds, as after `--search`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy.special import stdtrit

from fieldmark.benchmarks.declarations import Metric
from fieldmark.fitting.chains import Chain
from fieldmark.fitting.search_table import Searched
from fieldmark.scoring import LEVEL, Scorecard
from fieldmark.storage.files import write_json

TRIED_FILE, AUTO_FILE, CHAIN_FILE = "auto.csv", "auto.json", "chain.json"


@dataclass(frozen=True)
class BestSoFar:
    """A point of the curve: after so many seconds, this was the best score, of this chain, measured on these folds."""

    seconds: float
    value: float
    chain: str
    on: str


@dataclass(frozen=True)
class TriedChain:
    """A candidate: how many folds it answered, its score on them, how long they took, and its share in the result."""

    chain: str
    folds: int
    score: float | None
    seconds: float
    weight: float
    why_not: str = ""


@dataclass(frozen=True)
class NestedEstimate:
    """The score that is to be expected on test, by folds that had no part in the choice, or by the release's own val.

    Args:
        value: The score on those folds, with the gain, or on val.
        low, high: Where the score on test should lie with 95 %: the error of the estimate and that of a test of this
            size together; None for metrics without pseudo-values.
        units: How many units it was measured on.
        test_units: How many units test has; None where it has no truth, and the interval is that of the estimate.
        gain: What the model should gain by learning from all of train, which those of folds could not.
        on: Which of the two it was measured on.
    """

    value: float
    low: float | None
    high: float | None
    units: int
    test_units: int | None
    gain: float = 0.0
    on: Literal["folds", "val"] = "folds"


@dataclass(frozen=True)
class LearningGain:
    """What a method gains by learning from all of train, by how it answers after half of what folds learn from.

    Args:
        value: The gain.
        error: Its standard error.
    """

    value: float
    error: float


NO_GAIN = LearningGain(0.0, 0.0)
MEASURED_ON = {
    "folds": "folds not used for the choice",
    "val": "val, which chose no chain but settings of its methods",
}


def estimate_of(
    card: Scorecard, metric: Metric, test_units: int | None, gain: LearningGain = NO_GAIN
) -> NestedEstimate:
    """The estimate that a score of held-out answers gives for a test of so many units."""
    value, pseudo = card.metrics[metric.name].value + gain.value, card.pseudo.get(metric.name)
    if pseudo is None or len(pseudo) < 3:
        return NestedEstimate(value, None, None, card.units, test_units, gain.value)
    variance = float(np.var(pseudo, ddof=1)) * (1 / len(pseudo) + (1 / test_units if test_units else 0.0))
    spread = float(np.hypot(np.sqrt(variance), gain.error))
    half = float(stdtrit(len(pseudo) - 1, (1 + LEVEL) / 2)) * spread
    low, high = value - half, value + half
    if metric.is_share:
        low, high = max(low, 0.0), min(high, 1.0)
    return NestedEstimate(value, low, high, card.units, test_units, gain.value)


def learning_gain(more: Scorecard, less: Scorecard, metric: Metric, items: tuple[float, float, float]) -> LearningGain:
    """The gain of a method in a share, whose error is taken to fall by a power of what is learned from.

    Where more items did not help, none is expected of more still.

    Args:
        more: What it scores learning from many items.
        less: The same units, learning from fewer.
        metric: The share.
        items: From how many items each of the two learned, and from how many the final model does.
    """
    errors = [1 - card.metrics[metric.name].value for card in (more, less)]
    if not 0 < errors[0] < errors[1]:
        return NO_GAIN
    doublings = np.log(items[2] / items[0]) / np.log(items[0] / items[1])
    value = errors[0] * (1 - (errors[0] / errors[1]) ** doublings)
    pseudo = [card.pseudo.get(metric.name) for card in (more, less)]
    if pseudo[0] is None or pseudo[1] is None:
        return LearningGain(value, 0.0)
    error = np.std(pseudo[0] - pseudo[1], ddof=1) / np.sqrt(len(pseudo[0]))
    return LearningGain(float(value), float(doublings * error))


@dataclass(frozen=True)
class AutoSearched(Searched):
    """A finished search of `auto`.

    Args:
        chain: What is fitted.
        weights: How much each chain counts in it.
        estimate: What to expect of it on test; None where too few folds were answered.
        tried: All candidates.
        curve: The best score over time.
        minutes, seconds: How long it could take, and how long the search took.
        interrupted: Whether somebody ended it.
    """

    chain: Chain = field(default_factory=lambda: Chain(""))
    weights: Mapping[str, float] = field(default_factory=dict)
    estimate: NestedEstimate | None = None
    tried: tuple[TriedChain, ...] = ()
    curve: tuple[BestSoFar, ...] = ()
    minutes: float = 0.0
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def remarks(self) -> list[str]:
        fitted = sum(one.folds > 0 for one in self.tried)
        kind = f"{len(self.weights)} chains together" if len(self.weights) > 1 else self.chain.text
        ended = ", and was interrupted" if self.interrupted else ""
        remarks = [
            f"auto tried {fitted} of {len(self.tried)} chains on folds of train (by {self.by}) in "
            f"{self.seconds:.0f} s{ended}, and chose {kind} by {self.metric.name}."
        ]
        if self.estimate is not None:
            low, high = self.estimate.low, self.estimate.high
            interval = "" if low is None or high is None else f" ({low:.3f} to {high:.3f})"
            gained = f", {self.estimate.gain:.3f} of it for learning from all of train" if self.estimate.gain else ""
            remarks.append(
                f"Expected on test, from {MEASURED_ON[self.estimate.on]}: {self.metric.name} "
                f"{self.estimate.value:.3f}{interval}{gained}."
            )
        else:
            remarks.append("The time was too short to estimate the score on test: raise --minutes.")
        return remarks

    @property
    def record(self) -> dict[str, Any]:
        estimate = None if self.estimate is None else asdict(self.estimate)
        chosen = {"chain": self.chain.text}
        return {**super().record, "trials": len(self.tried), "chosen": chosen, "auto": TRIED_FILE, "estimate": estimate}

    def measured_on_val(self, card: Scorecard, test_units: int | None) -> AutoSearched:
        """The search with the estimate that the val of a release gives.

        Such a val is like test as a rule; folds of train are not where other people, years or copies are in them.
        """
        return replace(self, estimate=replace(estimate_of(card, self.metric, test_units), on="val"))

    def write(self, folder: Path) -> None:
        super().write(folder)
        rows = [asdict(one) for one in self.tried]
        pl.DataFrame(rows, infer_schema_length=None).write_csv(folder / TRIED_FILE)
        about = {
            "metric": self.metric.name,
            "minutes": self.minutes,
            "seconds": round(self.seconds, 1),
            "interrupted": self.interrupted,
            "estimate": None if self.estimate is None else asdict(self.estimate),
            "weights": dict(self.weights),
            "curve": [asdict(one) for one in self.curve],
            "tried": rows,
        }
        write_json(folder / AUTO_FILE, about)
        self.chain.write(folder / CHAIN_FILE)
