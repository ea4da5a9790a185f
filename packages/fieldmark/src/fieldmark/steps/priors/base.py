"""What a source of a prior is, and what every step with a prior has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Task
from fieldmark.registry import Registry
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.predictions import rows_by_item
from fieldmark.settings import Settings
from fieldmark.steps.arrays import KeepsArrays
from fieldmark.steps.base import Step
from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part

Logs = NDArray[np.float64]


class PriorSource(KeepsArrays, Settings, ABC):
    """What is known about labels from the context of an item. Sources are dataclasses that are saved as plain data.

    What a source has learned are its fields and its arrays; a fitted model of places is a source of its own that keeps
    its weights there. Where one label holds, the probabilities of an item sum to one over the labels; where several
    may hold, each is the probability that this label holds.

    Attributes:
        kind: The name under which `SOURCES` finds it again.
    """

    kind: ClassVar[str]

    @property
    def external_data(self) -> tuple[str, ...]:
        """What it brings in from outside the release, one sentence each."""
        return ()

    def check(self, step: str, task: Task) -> None:
        """Refuses what a task does not let anybody read, before anything is opened.

        Args:
            step: The name of the step, for messages.
            task: The task.
        """

    @abstractmethod
    def fit(self, part: Part, taxonomy: Taxonomy, *, several: bool) -> Self:
        """Learns from the items of a part with their labels.

        Args:
            part: The items.
            taxonomy: The labels and the taxa they belong to.
            several: Whether several labels may hold for an item.
        """

    @property
    @abstractmethod
    def log_prior(self) -> Logs:
        """The log-probability of each label where nothing is known about the context."""

    @abstractmethod
    def log_ratio(self, items: pl.DataFrame) -> Logs:
        """The log of P(label | context) / P(label), one row per item; exactly 0 where nothing is known.

        By Bayes' rule the same as P(context | label) / P(context).
        """

    def log_prob(self, items: pl.DataFrame) -> Logs:
        """The log of P(label | context), one row per item, one column per label."""
        return self.log_prior + self.log_ratio(items)

    def log_odds_ratio(self, items: pl.DataFrame) -> Logs:
        """The same for labels that hold independently: log-odds given the context less log-odds without it."""
        return log_odds(self.log_prob(items)) - log_odds(self.log_prior)


def log_odds(log_probability: Logs) -> Logs:
    """The log-odds behind a log-probability below 0.

    >>> log_odds(np.log([0.5]))
    array([0.])
    """
    return np.asarray(log_probability - np.log(-np.expm1(log_probability)))


SOURCES: Registry[type[PriorSource]] = Registry(
    "source of a prior",
    {
        "counts": ("fieldmark.steps.priors.counts:Counts", "how often each label occurs in each context of train"),
        "presence": (
            "fieldmark.steps.priors.presence_tables:PresenceTable",
            "a table of which label lives in which place",
        ),
        "place-model": ("fieldmark.models.place_priors:PlaceModelPrior", "a fitted model of places"),
        "birdnet": ("fieldmark.steps.priors.places:BirdNetPlaces", "BirdNET's location model, by place and week"),
    },
    group="fieldmark.priors",
)


def make_source(name: str, settings: Mapping[str, Any]) -> PriorSource:
    """A source by its name, with those of the settings that it has."""
    cls = SOURCES[name]
    own = {field.name for field in fields(cls)}  # type: ignore[arg-type]
    made: PriorSource = cls(**{key: value for key, value in settings.items() if key in own})
    return made


def source_to_data(source: PriorSource) -> dict[str, Any]:
    """A source as plain data; its arrays are saved apart."""
    return {"source": source.kind, **asdict(source)}  # type: ignore[call-overload]


def source_from_data(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> PriorSource:
    """A source from plain data, and from the arrays it was saved with."""
    values = dict(data)
    source: PriorSource = SOURCES[values.pop("source")](**values)
    return source.with_arrays(arrays)


class ContextStep(Step):
    """A step that changes predictions by what the context of each item says about labels."""

    @abstractmethod
    def log_shift(self, items: pl.DataFrame, labels: Labels) -> Logs:
        """What a weight of 1 adds to the log-probability, or to the log-odds, of each label of each item."""


def in_order(items: pl.DataFrame, predictions: LabelScores) -> pl.DataFrame:
    """The rows of the items that were predicted, in the order of the predictions."""
    ids = tuple(items["item_id"])
    return items if ids == predictions.items else items[rows_by_item(ids, predictions.items).tolist()]
