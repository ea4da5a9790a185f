"""BirdNET as it is: a classifier that was trained elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.features.birdnet import BirdNet
from fieldmark.methods.base import Arrays, Fitted, OnFeatures, features_of
from fieldmark.runs.label_scores import Scale
from fieldmark.settings import setting
from fieldmark.steps.priors.places import joined_with_birdnet, places_of
from fieldmark.tables.labels import UNKNOWN
from fieldmark.tables.name_concepts import matches_in_words
from fieldmark.views.parts import Part, View


@dataclass(frozen=True)
class BirdNetClassifier(OnFeatures):
    """The scores of BirdNET V2.4 for the labels it knows by any name; 0 for the others.

    Nothing is learned. Where an item has a place, BirdNET's location model says which species occur there in that week.

    Args:
        occurrence: Species less likely than this at the place and in the week of an item score 0; 0 asks nothing.
    """

    occurrence: float = setting(0.03, least=0, below=1)

    scale: ClassVar[Scale] = "score"
    feature_defaults: ClassVar[Mapping[str, Any]] = {"backbone": "birdnet", "output": "logits"}

    def check(self, view: View) -> None:
        """Refuses a label set of which BirdNET knows nothing, before anything is heard."""
        if (places_of(view.taxonomy, BirdNet().species) == UNKNOWN).all():
            raise MisuseError(
                f"BirdNET knows none of the {len(view.labels)} labels here: they must be called, or have as `species`, "
                "the scientific name of a bird (simulated species are none)."
            )

    def fit(self, view: View) -> Fitted:
        places, matches = joined_with_birdnet(view.taxonomy, BirdNet().species)
        return Fitted(self, {"places": places}, (f"Labels among the sounds of BirdNET: {matches_in_words(matches)}.",))

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        places = arrays["places"]
        columns = np.maximum(places, 0)
        logits = features_of(part)[:, columns]
        chances = np.where(places == UNKNOWN, 0, 1 / (1 + np.exp(-logits)))
        return np.asarray(chances * self._met(part)[:, columns], dtype=np.float32)

    def _met(self, part: Part) -> NDArray[np.bool_]:
        """For each item and each sound that BirdNET knows, whether it is expected at that place and time."""
        network = BirdNet()
        met = np.ones((len(part), len(network.species)), dtype=np.bool_)
        if not self.occurrence or not {"lat", "lon"} <= set(part.items.columns):
            return met
        dates = part.items["date"] if "date" in part.items.columns else [None] * len(part)
        expected_at: dict[Any, NDArray[np.bool_]] = {}
        for row, where in enumerate(zip(part.items["lat"], part.items["lon"], dates, strict=True)):
            if where[0] is None or where[1] is None:
                continue
            if where not in expected_at:
                expected_at[where] = network.occurrence(*where) >= self.occurrence
            met[row] = expected_at[where]
        return met
