"""Methods that fit a model to each species by itself."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.methods.base import Arrays
from fieldmark.methods.places.base import OnPlaces, Ratios, log_odds
from fieldmark.methods.places.records import PlaceRecords, Points
from fieldmark.settings import setting
from fieldmark.work.progress import progress

Table = NDArray[np.float32]
Weights = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class BySpecies(OnPlaces):
    """A model for each species that has been found often enough; the others are as likely everywhere.

    Args:
        least: How many places a species must have for a model of its own.
    """

    least: int = setting(5, least=1)

    @abstractmethod
    def prepare(self, records: PlaceRecords) -> Arrays:
        """What the models of all species share: bounds, knots."""

    @abstractmethod
    def learn_species(self, shared: Arrays, present: Table, others: Table, weights: Weights) -> NDArray[Any]:
        """The model of one species.

        Args:
            shared: What `prepare` made.
            present: Covariates of the places with the species.
            others: Covariates of absences or background points.
            weights: The weight of each place, present ones first: all 1 for a survey; else those of the background add
                up to those of the species (down-weighting), so that log-odds are log ratios.
        """

    @abstractmethod
    def species_ratios(self, arrays: Arrays, points: Points, models: list[NDArray[Any]]) -> Ratios:
        """The log-odds of each species with a model, one column per model."""

    def learn(self, records: PlaceRecords) -> tuple[BySpecies, Arrays]:
        shared = self.prepare(records)
        species = np.flatnonzero(records.counts >= self.least)
        models = []
        with progress("species", len(species)) as tick:
            for code in species:
                present, others = records.of_species(int(code))
                models.append(self._model(shared, records, present, others))
                tick(1)
        sizes = np.cumsum([0, *(len(model) for model in models)]).astype(np.int64)
        flat = np.concatenate(models) if models else np.zeros(0)
        return self, {**shared, "species": species, "model.offsets": sizes, "model.values": flat}

    def _model(self, shared: Arrays, records: PlaceRecords, present: Table, others: Table) -> NDArray[Any]:
        weights = np.ones(len(present) + len(others))
        if not records.is_survey:
            weights[len(present) :] = len(present) / max(len(others), 1)
        return self.learn_species(shared, present, others, weights)

    def log_ratios(self, arrays: Arrays, points: Points) -> Ratios:
        ratios = np.zeros((len(points), len(arrays["log_prior"])), dtype=np.float32)
        species, values = arrays["species"], arrays["model.values"]
        if len(species):
            models = np.split(values, arrays["model.offsets"][1:-1])
            own = self.species_ratios(arrays, points, models)
            if arrays["survey"][0]:  # log-odds of finding it, less those of finding it anywhere
                own -= log_odds(arrays["log_prior"][species].astype(np.float64)).astype(np.float32)
            ratios[:, species] = own
        return ratios
