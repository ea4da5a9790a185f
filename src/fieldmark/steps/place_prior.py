"""Which species are to be expected at a place and in a week, as BirdNET's location model has it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit

from fieldmark.benchmarks.declarations import Task
from fieldmark.errors import MisuseError
from fieldmark.features.birdnet import LICENSE, BirdNet, week_of
from fieldmark.labels import UNKNOWN
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.base import Lesson, Step
from fieldmark.steps.multilabel import Chances, chances_of, logits_of, mean_average_precision
from fieldmark.taxonomy import Taxonomy

WEIGHTS = (0.0, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class PlacePrior(Step):
    """Shifts the logit of each label by the log of how likely it is at that place and time, times a weight.

    For any classifier, of BirdNET's embeddings or not; labels are found by scientific or common name as the method
    `birdnet` finds them. Labels that BirdNET does not know and items without a place stay as they are. The weight comes
    from val; 0 is among those tried.

    Args:
        floor: What BirdNET holds less likely than this counts as this likely, so that nothing is ruled out.
        weight: How much the location model counts; found by `fit`.
        places: For each label its place among the sounds of BirdNET, -1 for none; found by `fit`.
    """

    floor: float = 0.01
    weight: float = 0.0
    places: tuple[int, ...] = ()
    name: ClassVar[str] = "place-prior"
    external_data: ClassVar[tuple[str, ...]] = (f"The location model of {LICENSE}",)

    def __post_init__(self) -> None:
        if not 0 < self.floor < 1:
            raise MisuseError("place-prior needs a floor between 0 and 1.")
        object.__setattr__(self, "places", tuple(self.places))  # a list, where it was read from a file

    def check(self, task: Task) -> None:
        if "place" not in task.inputs:
            raise MisuseError("The step place-prior needs to know the place of each item; the task does not tell it.")

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        taxonomy = Taxonomy.of(lesson.labels, lesson.taxa)
        place_of = dict(zip(lesson.labels.names, places_of(taxonomy, BirdNet().species), strict=True))
        placed = replace(self, places=tuple(int(place_of.get(name, UNKNOWN)) for name in val.labels.names))
        if set(placed.places) == {UNKNOWN}:
            raise MisuseError(
                f"BirdNET knows none of the {len(lesson.labels)} labels here, so that the step place-prior has nothing "
                "to say: they must be called, or have as `species`, the scientific name of a bird."
            )
        logits, shift, holds = logits_of(chances_of(val)), placed.shifts(val, lesson.items), lesson.holds
        values = [mean_average_precision(expit(logits + weight * shift), holds) for weight in WEIGHTS]
        return replace(placed, weight=WEIGHTS[int(np.argmax(np.nan_to_num(values)))])

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        chances = chances_of(predictions)
        if self.weight:
            shifted = expit(logits_of(chances) + self.weight * self.shifts(predictions, items))
            chances = np.where(chances > 0, shifted, 0.0)  # what scores exactly 0 was ruled out, and stays so
        return predictions.with_scores(chances.astype(np.float32), "score")

    def shifts(self, predictions: LabelScores, items: pl.DataFrame) -> Chances:
        """For each item and label the log of how likely the label is there, 0 where nothing is known."""
        made = np.zeros((len(predictions.items), len(predictions.labels)))
        if not {"lat", "lon"} <= set(items.columns):
            return made
        dates = items["date"] if "date" in items.columns else [None] * len(items)
        where_of = dict(zip(items["item_id"], zip(items["lat"], items["lon"], dates, strict=True), strict=True))
        columns = np.flatnonzero(np.array(self.places) != UNKNOWN)
        places = np.array(self.places)[columns]
        network, shift_at = BirdNet(), dict[Any, Chances]()
        for row, item in enumerate(predictions.items):
            lat, lon, date = where_of[item]
            if lat is None or lon is None:
                continue
            key = (lat, lon, week_of(date))
            if key not in shift_at:
                likely = network.occurrence(lat, lon, date)[places].astype(np.float64)
                shift_at[key] = np.log(np.clip(likely, self.floor, 1))
            made[row, columns] = shift_at[key]
        return made


def places_of(taxonomy: Taxonomy, species: tuple[tuple[str, str], ...]) -> NDArray[np.int32]:
    """For each label its place among the sounds of BirdNET, -1 where it is not among them.

    A label is found by the scientific name of its species, or by its own name, scientific or common.
    """
    by_name = {name.lower(): place for place, names in enumerate(species) for name in names if name}
    places = []
    for code, label in enumerate(taxonomy.labels.names):
        names = (taxonomy.taxon(code, "species"), label.replace("_", " "))
        matches = [by_name[name.lower()] for name in names if name and name.lower() in by_name]
        places.append(matches[0] if matches else UNKNOWN)
    return np.array(places, dtype=np.int32)
