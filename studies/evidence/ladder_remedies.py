"""Would another Ladder hold against withheld answers, and what would it cost an honest team?

A public board of 400 units, each answered right or wrong. The attacker holds a run and guesses that are right as often
as it is, so that whatever it gains is luck; a fifth of the answers it knows and withholds. Each run exchanges some
guesses and spends more of the reserve until the Ladder speaks; then the exchange is kept, or, where the score that is
shown tells that it was bad luck, only the reserve. The gain is that of all exchanges kept, for the exchange and the
pace of spending that work best. Beside it stand guesses without a reserve, and fewer runs, which any challenge can ask
for. The honest team has fifty runs, each better than the last by a little: how much of its gain is shown in the end,
how many runs that takes, and how often one good run (four points better at once) is shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from fieldmark_challenge.boards.ladder import LEVEL

NAME = "ladder_remedies"
UNITS, RIGHT, RESERVED = 400, 0.6, 0.2
RUNS, FEWER = 100, (10, 30)
ATTACKS, TEAMS = 60, 200
EXCHANGED, PACE = (3, 10, 30, 100), (1, 3)
HONEST_RUNS, HONEST_STEP, CHANGED, GOOD_STEP = 50, 0.004, 0.15, 0.04
Answers = NDArray[np.bool_]


@dataclass
class Board:
    """What one team was shown, by some rule; `tell` says whether a run is released and what is shown then."""

    rng: np.random.Generator
    held: Answers | None = None
    shown: float = math.nan
    releases: int = 0
    since: int = 0  # runs since the last release
    level: float = LEVEL
    counted: slice = field(default_factory=lambda: slice(None))  # the units whose score is shown

    def tell(self, answers: Answers) -> bool:
        """Whether a run is released."""
        self.since += 1
        if self.held is not None and not self.better(answers, self.held):
            return False
        self.shown = self.value(answers)
        self.held, self.releases, self.since = answers, self.releases + 1, 0
        return True

    def better(self, answers: Answers, held: Answers) -> bool:
        """Whether a run beats the one that is shown by more than chance."""
        return float(answers.mean()) - self.shown > margin(answers, held, self.level)

    def value(self, answers: Answers) -> float:
        """What is shown of a run."""
        return float(answers[self.counted].mean())


class Spending(Board):
    """The level is shared among all runs since the last release."""

    def better(self, answers: Answers, held: Answers) -> bool:
        return float(answers.mean()) - self.shown > margin(answers, held, self.level / self.since)


class Budget(Board):
    """Three releases, and no more."""

    def better(self, answers: Answers, held: Answers) -> bool:
        return self.releases < 3 and super().better(answers, held)


class Step(Board):
    """A fixed step of five points, to which scores are rounded (the first mechanism of Blum and Hardt)."""

    step = 0.05

    def better(self, answers: Answers, held: Answers) -> bool:
        return float(answers.mean()) - self.shown > self.step

    def value(self, answers: Answers) -> float:
        return round(float(answers.mean()) / self.step) * self.step


class Noise(Board):
    """Noise of one standard error of a score, on what is compared and on what is shown (as in Thresholdout)."""

    def better(self, answers: Answers, held: Answers) -> bool:
        apart = float(answers.mean()) - float(held.mean()) + self._noise()
        return apart > margin(answers, held, self.level)

    def value(self, answers: Answers) -> float:
        return float(answers.mean()) + self._noise()

    def _noise(self) -> float:
        return float(self.rng.normal(0, math.sqrt(RIGHT * (1 - RIGHT) / UNITS)))


class Halves(Board):
    """One half of the units decides, the score of the other is shown."""

    def __post_init__(self) -> None:
        self.counted = slice(UNITS // 2, None)

    def better(self, answers: Answers, held: Answers) -> bool:
        deciding = slice(None, UNITS // 2)
        first, second = answers[deciding], held[deciding]
        return float(first.mean()) - float(second.mean()) > margin(first, second, self.level)


class Proven(Board):
    """Of an improvement only what is more than chance is shown."""

    def tell(self, answers: Answers) -> bool:
        before, held = self.shown, self.held
        if not super().tell(answers):
            return False
        if held is not None:
            self.shown = before + float(answers.mean()) - float(held.mean()) - margin(answers, held, self.level)
        return True

    def better(self, answers: Answers, held: Answers) -> bool:
        return float(answers.mean()) - float(held.mean()) > margin(answers, held, self.level)


RULES: dict[str, type[Board]] = {
    "as it is: a paired test at 0.001": Board,
    "the level shared among runs since the last release": Spending,
    "at most three releases": Budget,
    "a step of 5 points": Step,
    "noise of one standard error": Noise,
    "half decides, the other half is shown": Halves,
    "only what is proven is shown": Proven,
}


def margin(answers: Answers, held: Answers, level: float) -> float:
    """By how much a run must be better: the margin of `fieldmark_challenge.boards.ladder` for right and wrong."""
    apart = answers.astype(np.int8) - held
    differing = int(np.count_nonzero(apart))
    if differing < 2:
        return math.inf
    return float(np.std(apart)) / math.sqrt(len(apart)) * quantile(differing - 1, level)


@lru_cache(maxsize=100_000)
def quantile(freedom: int, level: float) -> float:
    """Of the t distribution, one-sided."""
    return float(stdtrit(freedom, 1 - level))


def attack(rule: type[Board], exchanged: int, pace: int, seed: int, *, reserved: float, runs: int) -> float:
    """The luck in all exchanges that were kept, as a share of the units whose score is shown."""
    rng = np.random.default_rng(seed)
    board = rule(np.random.default_rng([seed, 1]))
    known = rng.random(UNITS) < reserved
    start, other = (rng.random(UNITS) < RIGHT for _ in range(2))
    reserve, unknown = rng.permutation(np.flatnonzero(known)), np.flatnonzero(~known)
    held = np.where(known, False, start)
    board.tell(held)
    spent = more = 0
    for _ in range(runs - 1):
        more += pace
        if reserved and spent + more > len(reserve):
            break
        swapped = held.copy()
        places = rng.choice(unknown, exchanged, replace=False)
        swapped[places] = other[places]
        tried = swapped.copy()
        tried[reserve[: spent + more]] = True
        before = board.shown
        if not board.tell(tried):
            continue
        # What the reserve brought is known, at least on average where only some units count.
        luck = board.shown - before - more / UNITS
        held = swapped if luck >= 0 or isinstance(board, Proven) else held
        spent, more = spent + more, 0
        held[reserve[:spent]] = True
    last, first = (np.where(known, False, one)[board.counted] for one in (held, start))
    return float(last.mean() - first.mean())


def best_attack(rule: type[Board], *, reserved: float = RESERVED, runs: int = RUNS) -> dict[str, float]:
    """The gain of the exchange and the pace that work best, on average, and its standard error."""
    found = {
        (exchanged, pace): [
            attack(rule, exchanged, pace, seed, reserved=reserved, runs=runs) for seed in range(ATTACKS)
        ]
        for exchanged, pace in product(EXCHANGED, PACE if reserved else (1,))
    }
    (exchanged, pace), gains = max(found.items(), key=lambda one: float(np.mean(one[1])))
    error = float(np.std(gains)) / math.sqrt(ATTACKS)
    return {
        "gain": round(float(np.mean(gains)), 4),
        "standard_error": round(error, 4),
        "exchanged": exchanged,
        "pace": pace,
    }


def honest(rule: type[Board], seed: int) -> dict[str, float]:
    """A team that gets better bit by bit, and one run that is much better at once."""
    rng = np.random.default_rng([seed, 2])
    board = rule(np.random.default_rng([seed, 3]))
    right, answers = RIGHT, rng.random(UNITS) < RIGHT
    board.tell(answers)
    first = float(answers[board.counted].mean())
    for _ in range(HONEST_RUNS):
        right += HONEST_STEP
        answers = _improved(answers, right, CHANGED, rng)
        board.tell(answers)
    last = float(answers[board.counted].mean())
    single = rule(np.random.default_rng([seed, 4]))
    before = rng.random(UNITS) < RIGHT
    single.tell(before)
    return {
        "shown": board.shown - first,
        "true": last - first,
        "off": abs(board.shown - last),
        "releases": board.releases,
        "good_run_shown": float(single.tell(_improved(before, RIGHT + GOOD_STEP, CHANGED, rng))),
    }


def _improved(answers: Answers, right: float, changed: float, rng: np.random.Generator) -> Answers:
    """Another run, which differs on some units and is right as often as is said, over all of nature."""
    new = answers.copy()
    places = rng.random(UNITS) < changed
    expected = (right - (1 - changed) * float(answers.mean())) / changed
    new[places] = rng.random(int(places.sum())) < min(max(expected, 0.0), 1.0)
    return new


def run() -> dict[str, Any]:
    """What each rule lets an attacker gain, and what it shows of an honest team."""
    rows = []
    for name, rule in RULES.items():
        teams = [honest(rule, seed) for seed in range(TEAMS)]
        row: dict[str, Any] = {"rule": name, "reserve": best_attack(rule), "guesses": best_attack(rule, reserved=0.0)}
        row |= {f"reserve_in_{runs}_runs": best_attack(rule, runs=runs) for runs in FEWER}
        means = {key: float(np.mean([team[key] for team in teams])) for key in teams[0]}
        row["honest"] = {key: round(value, 4) for key, value in means.items()}
        rows.append(row)
        print(row, flush=True)
    about = {"units": UNITS, "runs": RUNS, "reserved": RESERVED, "attacks": ATTACKS, "teams": TEAMS}
    return {"simulated": True, **about, "rows": rows}
