"""How frequent labels have been of late, told from earlier days and forgotten again."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import TimeOrder
from fieldmark.errors import MisuseError
from fieldmark.runs.label_scores import LabelScores
from fieldmark.settings import setting
from fieldmark.stats.prior_shift import Shares, mean_posterior
from fieldmark.steps.base import Lesson
from fieldmark.steps.past import DATE, PastStep, Streamed
from fieldmark.steps.prior_shift import FromSource, posteriors_of

FROM_VAL, NEVER = "val", "never"
# Tried on val: half-lives in days (0 forgets nothing), and how many items of val each label is worth on average.
HALF_LIVES, STRENGTHS = (7.0, 30.0, 90.0, 0.0), (0.25, 1.0, 4.0, 16.0)
# Days whose labels may still become known.
MOST_DAYS_KEPT = 400
SMALLEST = 1e-300


class Recently(NamedTuple):
    """What is known after some days.

    Args:
        counts: How many items of each label there were, older ones counting less.
        date: The last day; None before the first.
        of_day: What each day added when it came, in case that its labels become known.
    """

    counts: NDArray[np.float64]
    date: datetime.date | None
    of_day: Mapping[datetime.date, NDArray[np.float64]]


@dataclass(frozen=True)
class PriorOnline(FromSource, PastStep[Recently]):
    """Adapts each day to the frequencies of earlier days: EM in a stream, with forgetting.

    With counts n(c) of labels, an item of an earlier day counting half as much after `half_life` days, and m items of
    the frequencies of val,

        prior(c) = (n(c) + m source(c)) / (sum n + m).

    A day adds the posteriors of its items under the prior of its morning (Cappé and Moulines, "On-line
    expectation-maximization algorithm for latent data models", 2009); once its labels are known, where the task tells
    them, they take the place of those posteriors. Before the first day, and long after the last, the prior is that of
    val.

    Args:
        half_life: In days, `never` to forget nothing, or val: of the lowest log loss on val, in time order.
        strength: m divided by the number of labels, or val.
        days_chosen: The half-life that was taken; 0 forgets nothing.
        strength_chosen: The strength that was taken; None where val gains less than a standard error by any, so that
            nothing is adapted.
        log_loss: The log loss on val without it, and for each half-life and strength that was tried.
    """

    half_life: str = setting(FROM_VAL, above=0, also=(FROM_VAL, NEVER))
    strength: str = setting(FROM_VAL, above=0, also=(FROM_VAL,))
    days_chosen: float = 0.0
    strength_chosen: float | None = None
    log_loss: Mapping[str, float] = field(default_factory=dict)
    name: ClassVar[str] = "prior-online"

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        self.refuse_unfit(val, lesson.task)
        if DATE not in lesson.items.columns:
            raise MisuseError(f"The step {self.name} needs the date of each item, and this task does not provide it.")
        fitted = self.with_arrays({"source": mean_posterior(posteriors_of(val))})
        half_lives = HALF_LIVES if self.half_life == FROM_VAL else (_days(self.half_life),)
        strengths = STRENGTHS if self.strength == FROM_VAL else (float(self.strength),)
        order = lesson.task.time_order or TimeOrder()
        truth = lesson.truth if order.labels_after_days is not None else None
        own = np.where(lesson.truth < 0, len(val.labels), lesson.truth)

        def losses(step: PriorOnline) -> NDArray[np.float64]:
            chances = posteriors_of(step.apply_by_day(val, lesson.items, order, truth)).astype(np.float64)
            return np.asarray(-np.log(np.maximum(chances[np.arange(len(own)), own], SMALLEST)))

        plain = losses(fitted)
        tried = {
            (days, strength): losses(fitted._with(days, strength)) for days, strength in product(half_lives, strengths)
        }
        days, strength = min(tried, key=lambda pair: float(tried[pair].mean()))
        asked = FROM_VAL not in (self.half_life, self.strength)
        chosen = fitted._with(days, strength if asked or _clear_gain(plain - tried[days, strength]) else None)
        told = {f"{days:g} days, {strength:g}": values for (days, strength), values in tried.items()}
        means = {name: round(float(values.mean()), 6) for name, values in (told | {"not adapted": plain}).items()}
        return chosen._with_fields(log_loss=means)

    def start(self) -> Recently:
        return Recently(np.zeros(len(self.source)), None, {})

    def prior(self, state: Recently, date: datetime.date | None = None) -> Shares:
        """The frequencies that are expected on a day, after what is known: one per label, unknown last."""
        if self.strength_chosen is None:
            return self.source
        counts = state.counts * self._left(state.date, date)
        lent = self.strength_chosen * len(self.source)
        return np.asarray((counts + lent * self.source) / (counts.sum() + lent))

    def apply_day(self, state: Recently, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        if self.strength_chosen is None:
            return predictions
        return self.reweigh(predictions, np.log(self.prior(state, _date(items))) - np.log(self.source))

    def observe(self, state: Recently, predictions: LabelScores, items: pl.DataFrame) -> Recently:
        date = _date(items)
        if date is None or self.strength_chosen is None:
            return state
        added = posteriors_of(self.apply_day(state, predictions, items)).sum(axis=0, dtype=np.float64)
        kept = {**state.of_day, date: added}
        if len(kept) > MOST_DAYS_KEPT:
            kept.pop(min(kept))
        return Recently(state.counts * self._left(state.date, date) + added, date, kept)

    def reveal(
        self, state: Recently, predictions: LabelScores, items: pl.DataFrame, truth: NDArray[np.int32]
    ) -> Recently:
        date = _date(items)
        if date not in state.of_day or date is None:
            return state
        column = np.where(truth < 0, len(predictions.labels), truth)
        true = np.bincount(column, minlength=len(self.source))[: len(self.source)]
        corrected = state.counts + self._left(date, state.date) * (true - state.of_day[date])
        rest = {day: added for day, added in state.of_day.items() if day != date}
        return Recently(np.maximum(corrected, 0.0), state.date, rest)

    def apply_by_day(
        self, predictions: LabelScores, items: pl.DataFrame, order: TimeOrder, truth: NDArray[np.int32] | None
    ) -> LabelScores:
        """The same as one item after the other, a day at a time: given the state, items do not matter to each other."""
        if self.strength_chosen is None:
            return predictions
        walk = Streamed[Recently](
            self.name,
            lambda state, rows: self.apply_day(state, predictions.take(rows), items[rows.tolist()]),
            lambda state, rows: self.observe(state, predictions.take(rows), items[rows.tolist()]),
            lambda state, rows, codes: self.reveal(state, predictions.take(rows), items[rows.tolist()], codes),
        )
        together = replace(order, day_together=True)
        changed: LabelScores = walk.run(self.start(), items, together, truth)
        return changed

    def _left(self, since: datetime.date | None, until: datetime.date | None) -> float:
        """What is left of the weight of a day on a later one."""
        if not self.days_chosen or since is None or until is None:
            return 1.0
        return float(0.5 ** (max((until - since).days, 0) / self.days_chosen))

    def _with(self, days: float, strength: float | None) -> Self:
        return self._with_fields(days_chosen=days, strength_chosen=strength)

    def _with_fields(self, **fields: Any) -> Self:
        return replace(self, **fields).with_arrays(self.arrays)


def _clear_gain(gains: NDArray[np.float64]) -> bool:
    """Whether items gain more than a standard error on average: the best of several settings gains a little anyhow."""
    error = float(gains.std(ddof=1)) / np.sqrt(len(gains)) if len(gains) > 1 else np.inf
    return bool(gains.mean() > error)


def _date(items: pl.DataFrame) -> datetime.date | None:
    """The day that some items of one day were seen; None where nobody knows."""
    date: datetime.date | None = items[DATE][0] if DATE in items.columns and len(items) else None
    return date


def _days(text: str) -> float:
    return 0.0 if text == NEVER else float(text)
