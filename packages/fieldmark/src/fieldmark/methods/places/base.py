"""What methods for places have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fieldmark.benchmarks.declarations import LearnsFrom
from fieldmark.methods.base import Arrays, Fitted, targets_of
from fieldmark.methods.joined import Joined
from fieldmark.methods.modalities import ALL, OnModalities, is_readable, is_table
from fieldmark.methods.places.extrapolation import reference_of
from fieldmark.methods.places.records import (
    Background,
    PlaceRecords,
    Points,
    coordinates,
    records_of,
)
from fieldmark.methods.places.species_lists import BLOCK_CELLS, MOST_LISTED, best_labels
from fieldmark.runs.label_scores import LabelScores, Scale, log_softmax
from fieldmark.settings import setting
from fieldmark.tables.inputs import Input
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import Part, View

Ratios = NDArray[np.float32]
# Inputs that name where something is, not what it is like there; taken only where they are asked for.
WHEREABOUTS = ("place", "region", "site")


NOTHING_JOINED = Joined((), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.bool_))


@dataclass(frozen=True, kw_only=True)
class OnPlaces(OnModalities):
    """A method that says how much likelier each species is at a place than elsewhere: P(species | place) / P(species).

    Where one label holds, answers are P(species | place) over all species. Where several may hold, each species has a
    chance of its own: for surveys that of finding it; records of presences do not tell how common a species is, and its
    chance is then 1/2 where it is as likely as in the background.

    The scores of all labels are made for a block of places at a time; where there are more labels than `listed`, only
    the best are kept of each place.

    Args:
        inputs: The covariates with commas between them; "all" takes every table that the release has and the task
            allows, except those that tell whereabouts (place, region), which are taken where they are named.
        background: random or target-group (`records`); auto is target-group where one label holds or at least five
            species are recorded, else random.
        listed: How many labels are kept of a place at most.
        seed: Of everything random.
        several: Whether several labels may hold; found by `fit`.
    """

    inputs: str = ALL
    background: Background = "auto"
    listed: int = setting(MOST_LISTED, least=1)
    seed: int = 0
    several: bool = False

    follows_from_task: ClassVar[tuple[str, ...]] = ("several", "sampling", "members")

    def check_settings(self) -> None:
        _ = self.modalities  # refuses what cannot be read

    @property
    def learns_from(self) -> tuple[LearnsFrom, ...]:  # type: ignore[override]
        return ("train",) if self.background == "target-group" else ("train", "unlabeled")

    @property
    def scale(self) -> Scale:
        return "score" if self.several else "log_probability"

    def takes(self, declared: Input) -> bool:
        return is_readable(declared) and is_table(declared)

    def for_release(self, inputs: Mapping[str, Input]) -> Any:
        if self.inputs != ALL:
            return self
        covariates = {name: one for name, one in inputs.items() if name not in WHEREABOUTS and self.takes(one)}
        return super().for_release(covariates or inputs)

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs whose numbers it reads."""
        return tuple(name for group in self.modalities for name in group)

    @abstractmethod
    def learn(self, records: PlaceRecords) -> tuple[OnPlaces, Arrays]:
        """Learns from records; returns the method with its choices made, and what it learned."""

    @abstractmethod
    def log_ratios(self, arrays: Arrays, points: Points) -> Ratios:
        """The log of P(species | place) / P(species), one row per place; as many places as a block has.

        For a survey it is the difference of the log-odds of finding a species there and anywhere.
        """

    def fit(self, view: View) -> Fitted:
        joined = Joined.fit(self.names, view.train) if self.names else NOTHING_JOINED
        given = None
        if view.unlabeled is not None and "unlabeled" in self.learns_from:
            given = points_of(view.unlabeled, joined)
        points = points_of(view.train, joined)
        records = records_of(view.train, points, len(view.labels), self.background, given, self.seed)
        several = targets_of(view.train).shape == "pairs"
        method, learned = replace(self, several=several).learn(records)
        arrays: Arrays = {"log_prior": records.log_prior.astype(np.float32), "survey": np.array([records.is_survey])}
        return Fitted(method, {**joined.arrays, **arrays, **reference_of(points, self.seed), **learned})

    def points(self, arrays: Arrays, part: Part) -> Points:
        """The places of a part with their covariates."""
        return points_of(part, Joined.of(self.names, arrays))

    def blocks(self, arrays: Arrays, points: Points) -> Iterator[Ratios]:
        """The log ratios of all places, a block at a time."""
        size = max(BLOCK_CELLS // max(len(arrays["log_prior"]), 1), 1)
        for start in range(0, len(points), size):
            yield self.log_ratios(arrays, points.take(np.arange(start, min(start + size, len(points)))))

    def scored(self, arrays: Arrays, ratios: Ratios) -> Ratios:
        """Answers from log ratios: log-probabilities over all labels, or the chance of each."""
        log_prior = arrays["log_prior"].astype(np.float64)
        if not self.several:
            return np.asarray(log_softmax(log_prior + ratios), dtype=np.float32)
        odds = log_odds(log_prior) if arrays["survey"][0] else 0.0
        return np.asarray(expit(odds + ratios), dtype=np.float32)

    def scores(self, arrays: Arrays, part: Part) -> Ratios:
        made = [self.scored(arrays, ratios) for ratios in self.blocks(arrays, self.points(arrays, part))]
        return np.concatenate([np.zeros((0, len(arrays["log_prior"])), dtype=np.float32), *made])

    def answer(self, arrays: Arrays, part: Part, labels: Labels) -> LabelScores:
        if len(labels) <= self.listed:
            return LabelScores(part.item_ids, labels, self.scores(arrays, part), self.scale)
        blocks = self.blocks(arrays, self.points(arrays, part))
        scored = (self.scored(arrays, ratios) for ratios in blocks)
        return best_labels(part.item_ids, labels, self.scale, scored, self.listed)

    def default_steps(self) -> tuple[Any, ...] | None:
        return None if self.several else ()


def points_of(part: Part, joined: Joined) -> Points:
    """The places of a part with the covariates that a method reads."""
    lat, lon = coordinates(part)
    table = joined(part) if joined.names else np.zeros((len(part), 0), dtype=np.float32)
    return Points(lat, lon, table)


def log_odds(log_probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """The log-odds behind log-probabilities, which are taken to be a little below 0."""
    capped = np.minimum(log_probability, -1e-6)
    return np.asarray(capped - np.log(-np.expm1(capped)))


def as_odds(arrays: Arrays, ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log ratios of probabilities as differences of log-odds where they come from a survey; else as they are."""
    if not arrays["survey"][0]:
        return ratios
    log_prior = arrays["log_prior"].astype(np.float64)
    return log_odds(log_prior + ratios) - log_odds(log_prior)
