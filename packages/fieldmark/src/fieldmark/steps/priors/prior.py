"""The steps with a prior over contexts that is learned from train, or read from a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import LearnsFrom, Task
from fieldmark.errors import MisuseError
from fieldmark.runs.label_scores import LabelScores, log_softmax
from fieldmark.settings import setting, setting_of
from fieldmark.steps.base import Lesson
from fieldmark.steps.priors.base import (
    ContextStep,
    Logs,
    PriorSource,
    in_order,
    make_source,
    source_from_data,
    source_to_data,
)
from fieldmark.steps.priors.combination import (
    RULES,
    ListedCombination,
    LogOddsCombination,
    PriorCombination,
    ProbabilityCombination,
    Shifts,
    best_exponents,
)
from fieldmark.steps.priors.contexts import inputs_of
from fieldmark.steps.priors.counts import FOLDS, Counts
from fieldmark.steps.priors.presence_tables import PresenceTable
from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part

FROM_VAL = "val"
TOGETHER = "+"


@dataclass(frozen=True)
class Prior(ContextStep):
    """Multiplies predictions by what the context of an item says about its label.

    Picek et al., "Danish Fungi 2020" (2022), section on metadata: the posterior of the photo times the likelihood of
    the metadata over their prior; `combining` has the formulas. Calibrate before (`temperature`), so that an exponent
    of 1 means what Bayes' rule means by it, and after, where probabilities matter: contexts depend on each other.

    Args:
        column: The contexts (`contexts`), joined by `+`; each has an exponent of its own, and all are fitted together.
        rule: df20 or product.
        source: What the prior comes from (`SOURCES`): counts unless a file is given, which is a table of presence.
        file: A table of presence, or the folder of a model of places.
        floor: For both: how likely a label is where it does not live.
        strength: For counts: how many further observations each label and each context are lent; "train": the best by
            cross-validation there.
        borrow: For counts: the rank (genus, family, ...) from which labels with few observations borrow.
        smooth: For counts by month: the width of a bell curve, in months, over which observations count.
        back_off: What a country of which little or nothing is known says: its `continent`, then the world; or `world`.
        learn_from: Which part counts come from, train or val. From val, each exponent is judged on folds of the
            observations that the counts have not seen.
        exponent: A number, or val: found there.
        several: Whether several labels may hold; found by `fit`, like all that follows.
        exponents: The exponent of each context.
        log_loss: The log loss on val with the exponents 0, 1 and those found.
        sources: The fitted sources as plain data.
    """

    column: str = ""
    rule: str = setting("df20", choices=RULES)
    source: str = ""
    file: str = ""
    floor: float = setting_of(PresenceTable, "floor")
    strength: str = setting_of(Counts, "strength")
    borrow: str = ""
    smooth: float = setting_of(Counts, "smooth")
    back_off: str = setting_of(Counts, "back_off")
    learn_from: str = setting("train", choices=("train", "val"))
    exponent: str = setting(FROM_VAL, least=0, also=(FROM_VAL,))
    several: bool = False
    exponents: Sequence[float] = ()
    log_loss: Mapping[str, float] = field(default_factory=dict)
    sources: Sequence[Mapping[str, Any]] = ()
    name: ClassVar[str] = "prior"
    takes_lists: ClassVar[bool] = True

    @property
    def inputs(self) -> tuple[str, ...]:
        if self.source in ("birdnet", "place-model"):
            return ("place", "date")
        return tuple(dict.fromkeys(one for name in self.column.split(TOGETHER) if name for one in inputs_of(name)))

    @property
    def learns_from(self) -> tuple[LearnsFrom, ...]:
        """Counts come from one part, and so do the frequencies beside a model of places; tables need none."""
        learned = self.source in ("counts", "place-model") or not (self.source or self.file)
        return (("val",) if self.learn_from == "val" else ("train",)) if learned else ()

    @property
    def tuned_on(self) -> tuple[LearnsFrom, ...]:
        return super().tuned_on if self.exponent == FROM_VAL else ()

    def check(self, task: Task) -> None:
        if task.answer.several and self.rule == "product":
            raise MisuseError(f"{self.name}:rule=product is for one label per item; where several may hold, take df20.")
        for source in self._unfitted():
            source.check(self.name, task)

    def _unfitted(self) -> list[PriorSource]:
        """One source for each context, not fitted yet."""
        name = self.source or ("presence" if self.file else "counts")
        names = ("file", "floor", "strength", "borrow", "back_off")
        settings = {name: getattr(self, name) for name in names}
        made = []
        for context in self.column.split(TOGETHER):
            smooth = self.smooth if "month" in context else 0.0
            made.append(make_source(name, {**settings, "context": context, "smooth": smooth}))
        return made

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        several = lesson.task.answer.several
        if not several and val.scale == "score":
            raise MisuseError(f"The step {self.name} weighs probabilities, and these scores only rank.")
        taxonomy = Taxonomy.of(lesson.labels, lesson.taxa)
        part = lesson.val if self.learn_from == "val" else lesson.train
        if part is None:
            raise MisuseError(f"The step {self.name} learns from train, which is not available: set learn_from=val.")
        fitted = [source.fit(part, taxonomy, several=several) for source in self._unfitted()]
        step = replace(self, several=several)._with_sources(fitted)
        if self.exponent != FROM_VAL:
            return step._with_exponents((float(self.exponent),) * len(fitted), {})
        truth: NDArray[Any] = lesson.holds if several else lesson.truth
        if not len(truth):
            raise ValueError("an exponent is fitted to at least one item")
        shifts = step._shifts(val, lesson.items)
        if self.learn_from == "val":
            shifts = step._cross_fitted(val, lesson.val, taxonomy)
        return step._with_exponents(*best_exponents(step._combination(val, shifts), len(fitted), truth))

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        if not any(self.exponents):
            return predictions
        if not self.several and predictions.scale == "score":
            raise MisuseError(f"The step {self.name} weighs probabilities, and these scores only rank.")
        return self._combination(predictions, self._shifts(predictions, items)).combined(self.exponents)

    def log_shift(self, items: pl.DataFrame, labels: Labels) -> Logs:
        """What all priors together add, each times its exponent."""
        shifts = np.stack([self._shift(source, items) for source in self.fitted_sources])
        return np.asarray(np.tensordot(np.asarray(self.exponents), shifts, axes=1))

    def log_prob(self, items: pl.DataFrame) -> Logs:
        """The log of P(label | context), one row per item: what would be answered without any photo.

        With several contexts the labels of train count once, and each context by its exponent.
        """
        sources = self.fitted_sources
        prior = sources[0].log_prior
        ratios = [weight * source.log_ratio(items) for weight, source in zip(self.exponents, sources, strict=True)]
        together = prior + np.sum(ratios, axis=0)
        return np.asarray(together if self.several else log_softmax(together))

    @property
    def fitted_sources(self) -> tuple[PriorSource, ...]:
        """Where the prior of each context comes from."""
        kept: tuple[PriorSource, ...] | None = self.__dict__.get("_fitted")
        if kept is None and not self.sources:
            raise ValueError("this prior has not been fitted yet")
        # Sources without arrays are all there in the plain data.
        return kept or tuple(source_from_data(data, {}) for data in self.sources)

    @property
    def external_data(self) -> tuple[str, ...]:
        sources = self.fitted_sources if self.sources else self._unfitted()
        return tuple(dict.fromkeys(sentence for source in sources for sentence in source.external_data))

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        sources = enumerate(self.fitted_sources)
        return {f"{number}.{name}": array for number, source in sources for name, array in source.arrays.items()}

    def with_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        sources = []
        for number, data in enumerate(self.sources):
            prefix = f"{number}."
            own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            sources.append(source_from_data(data, own))
        return self._with_sources(sources)

    def _with_sources(self, sources: Sequence[PriorSource]) -> Self:
        made = replace(self, sources=tuple(source_to_data(source) for source in sources))
        object.__setattr__(made, "_fitted", tuple(sources))
        return made

    def _with_exponents(self, exponents: Sequence[float], log_loss: Mapping[str, float]) -> Self:
        made = copy(self)
        object.__setattr__(made, "exponents", tuple(exponents))
        object.__setattr__(made, "log_loss", dict(log_loss))
        return made

    def _shift(self, source: PriorSource, items: pl.DataFrame) -> Logs:
        if self.several:
            return source.log_odds_ratio(items)
        return source.log_ratio(items) if self.rule == "df20" else source.log_prob(items)

    def _shifts(self, predictions: LabelScores, items: pl.DataFrame) -> Shifts:
        table = in_order(items, predictions)
        return lambda rows: np.stack([self._shift(source, table[rows]) for source in self.fitted_sources])

    def _cross_fitted(self, val: LabelScores, part: Part, taxonomy: Taxonomy) -> Shifts:
        """What the priors add to items of val, each from the observations of the other folds."""
        fold = np.unique(part.items["observation_id"].to_numpy(), return_inverse=True)[1] % FOLDS
        shifts = np.zeros((len(self.fitted_sources), len(part), len(val.labels)))
        for number in range(FOLDS):
            own = fold == number
            if own.any() and not own.all():
                sources = [one.fit(part.take(~own), taxonomy, several=self.several) for one in self._unfitted()]
                shifts[:, own] = np.stack([self._shift(source, part.take(own).items) for source in sources])
        row_of = {item: row for row, item in enumerate(part.item_ids)}
        order = np.array([row_of[item] for item in val.items], dtype=np.int64)
        return lambda rows: shifts[:, order[rows]]

    def _combination(self, predictions: LabelScores, shifts: Shifts) -> PriorCombination:
        if not predictions.dense:
            if self.several or predictions.names_unknown:
                raise MisuseError(f"The step {self.name} needs a score for every label, and the method lists a few.")
            return ListedCombination(predictions, shifts)
        if self.several:
            return LogOddsCombination(predictions, shifts)
        # Under product unknown is as likely as one label among all, so that a uniform prior changes nothing.
        unknown = -float(np.log(len(predictions.labels))) if self.rule == "product" else 0.0
        return ProbabilityCombination(predictions, shifts, unknown)


@dataclass(frozen=True)
class MonthPrior(Prior):
    """What is to be expected in each month; backs off to the season and to the year."""

    column: str = "month"
    name: ClassVar[str] = "month-prior"


@dataclass(frozen=True)
class CountryPrior(Prior):
    """What is to be expected in each country; backs off to the continent and to the world."""

    column: str = "country"
    name: ClassVar[str] = "country-prior"
