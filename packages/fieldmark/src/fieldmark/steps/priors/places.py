"""Which species are to be expected at a place and in a week, as BirdNET's location model has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Task
from fieldmark.errors import MisuseError
from fieldmark.features.birdnet import LICENSE, BirdNet, week_of
from fieldmark.runs.label_scores import LabelScores
from fieldmark.settings import setting, setting_of
from fieldmark.steps.base import Lesson
from fieldmark.steps.priors.base import Logs, PriorSource, in_order
from fieldmark.steps.priors.weighted import WeightedShift, best_weight
from fieldmark.tables.labels import UNKNOWN, Labels
from fieldmark.tables.name_concepts import Concept, NameConcepts, NameMatch, load_concepts
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part

EXTERNAL_DATA = (f"The location model of {LICENSE}",)


@dataclass(frozen=True)
class BirdNetPlaces(PriorSource):
    """How likely BirdNET holds each label at the place and in the week of an item.

    Labels are found by name (`joined_with_birdnet`). Labels that BirdNET does not know,
    and items without a place, stay as they are.

    Args:
        floor: What BirdNET holds less likely than this counts as this likely, so that nothing is ruled out.
        places: For each label its place among the sounds of BirdNET, -1 for none; found by `fit`.
    """

    floor: float = setting(0.01, above=0, below=1)
    places: Sequence[int] = ()
    kind: ClassVar[str] = "birdnet"

    @property
    def external_data(self) -> tuple[str, ...]:
        return EXTERNAL_DATA

    def check(self, step: str, task: Task) -> None:
        if "place" not in task.inputs:
            raise MisuseError(f"The step {step} needs to know the place of each item; the task does not provide it.")

    def fit(self, part: Part, taxonomy: Taxonomy, *, several: bool) -> Self:
        return self.for_labels(taxonomy)

    def for_labels(self, taxonomy: Taxonomy) -> Self:
        """The source for some labels; there is nothing to learn.

        Raises:
            MisuseError: When BirdNET knows none of them.
        """
        places = places_of(taxonomy, BirdNet().species)
        if (places == UNKNOWN).all():
            raise MisuseError(
                f"BirdNET knows none of the {len(taxonomy.labels)} labels here, so that the step place-prior has "
                "nothing to say: they must be called, or have as `species`, the scientific name of a bird."
            )
        return replace(self, places=tuple(places.tolist()))

    @property
    def log_prior(self) -> Logs:
        return np.full(len(self.places), -np.log(len(self.places)))

    def log_ratio(self, items: pl.DataFrame) -> Logs:
        logs = self.log_odds_ratio(items)
        return np.asarray(logs - np.log(np.exp(logs).mean(axis=1, keepdims=True)))

    def log_odds_ratio(self, items: pl.DataFrame) -> Logs:
        """For each item and label the log of how likely the label is there, 0 where nothing is known."""
        logs = np.zeros((len(items), len(self.places)))
        if not {"lat", "lon"} <= set(items.columns):
            return logs
        dates = items["date"] if "date" in items.columns else [None] * len(items)
        columns = np.flatnonzero(np.array(self.places) != UNKNOWN)
        places = np.array(self.places)[columns]
        network, by_place_and_week = BirdNet(), dict[Any, Logs]()
        for row, (lat, lon, date) in enumerate(zip(items["lat"], items["lon"], dates, strict=True)):
            if lat is None or lon is None:
                continue
            key = (lat, lon, week_of(date))
            if key not in by_place_and_week:
                likely = network.occurrence(lat, lon, date)[places].astype(np.float64)
                by_place_and_week[key] = np.log(np.clip(likely, self.floor, 1))
            logs[row, columns] = by_place_and_week[key]
        return logs


@dataclass(frozen=True)
class PlacePrior(WeightedShift):
    """Shifts the logit of each label by the log of how likely BirdNET holds it there and then, times a weight.

    For any classifier, of BirdNET's embeddings or not; see `BirdNetPlaces`. The weight comes from val by mean average
    precision; 0 is among those tried.

    Args:
        floor: What BirdNET holds less likely than this counts as this likely, so that nothing is ruled out.
        weight: How much the location model counts; found by `fit`.
        places: For each label its place among the sounds of BirdNET, -1 for none; found by `fit`.
    """

    floor: float = setting_of(BirdNetPlaces, "floor")
    weight: float = 0.0
    places: tuple[int, ...] = ()
    name: ClassVar[str] = "place-prior"

    @property
    def external_data(self) -> tuple[str, ...]:
        return EXTERNAL_DATA

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("place", "date")

    @property
    def _source(self) -> BirdNetPlaces:
        return BirdNetPlaces(self.floor, self.places)

    def check(self, task: Task) -> None:
        self._source.check(self.name, task)

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        source = self._source.for_labels(Taxonomy.of(val.labels, lesson.taxa))
        step = replace(self, places=tuple(source.places))
        shift = step.log_shift(in_order(lesson.items, val), val.labels)
        return replace(step, weight=best_weight(val, shift, lesson.holds))

    def log_shift(self, items: pl.DataFrame, labels: Labels) -> Logs:
        return self._source.log_odds_ratio(items)


def places_of(taxonomy: Taxonomy, species: tuple[tuple[str, str], ...]) -> NDArray[np.int32]:
    """For each label its place among the sounds of BirdNET, -1 where it is not among them."""
    return joined_with_birdnet(taxonomy, species)[0]


def joined_with_birdnet(
    taxonomy: Taxonomy, species: tuple[tuple[str, str], ...]
) -> tuple[NDArray[np.int32], tuple[NameMatch, ...]]:
    """For each label its place among the sounds of BirdNET, -1 where it is not among them, and how it was found.

    A label is found by the name of its species, or by its own: scientific, common, an eBird code, another spelling.
    """
    concepts, place_of = _concepts_of(species), {name: place for place, (name, _) in enumerate(species)}
    places, matches = [], []
    for code, label in enumerate(taxonomy.labels.names):
        names = (taxonomy.taxon(code, "species"), label, label.replace("_", " "))
        tried = [concepts.find(name) for name in dict.fromkeys(names) if name]
        known = [one for one in tried if one.concept is not None and one.concept.scientific in place_of]
        match = known[0] if known else NameMatch(label, None, "not found")
        matches.append(match)
        places.append(UNKNOWN if match.concept is None else place_of[match.concept.scientific])
    return np.array(places, dtype=np.int32), tuple(matches)


@lru_cache(maxsize=2)
def _concepts_of(species: tuple[tuple[str, str], ...]) -> NameConcepts:
    """The sounds of BirdNET among all taxa that installed packages name, so that none is taken for its neighbor."""
    packaged = load_concepts()
    own = {name: Concept(name, common if common != name else "") for name, common in species}
    own = {name: one.merged(packaged.concepts.get(name, one)) for name, one in own.items()}
    return replace(packaged, concepts={**packaged.concepts, **own})
