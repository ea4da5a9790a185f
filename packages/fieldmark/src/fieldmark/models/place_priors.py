"""A fitted model of places as a prior for anything else that has a place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl

from fieldmark.benchmarks.declarations import Task
from fieldmark.errors import MisuseError
from fieldmark.models.place_models import PlaceModel
from fieldmark.settings import setting
from fieldmark.steps.priors.base import Logs, PriorSource
from fieldmark.steps.priors.presence_tables import DEFAULT_FLOOR
from fieldmark.tables.labels import UNKNOWN
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part


@dataclass(frozen=True)
class PlaceModelPrior(PriorSource):
    """How much likelier each label is at the place of an item than elsewhere, by a model that was fitted before.

    Labels are found by their own name, or by that of their species. Labels that the model does not know, and items
    without a place, stay as they are. The date counts where the model reads it.

    Args:
        file: The folder of the model or of the run that made it; it and the maps it reads are opened when asked.
        floor: What the model holds less likely than this share of usual counts as this likely; one over it is the most.
        places: For each label its code in the model, -1 for none; found by `fit`.
        log_shares: The log of the share of each label; found by `fit`.
    """

    file: str = ""
    floor: float = setting(DEFAULT_FLOOR, above=0, below=1)
    places: Sequence[int] = ()
    log_shares: Sequence[float] = ()
    kind: ClassVar[str] = "place-model"

    def check_settings(self) -> None:
        if not self.file:
            raise MisuseError("prior:source=place-model needs the folder of a fitted model: file=RUN.")

    @cached_property
    def _model(self) -> PlaceModel:
        return PlaceModel.open(self.file)

    @property
    def external_data(self) -> tuple[str, ...]:
        """The records that the model has learned from."""
        trained: dict[str, Any] = self._model.model.trained
        said = f"A model of places fitted to {trained['benchmark']} (data digest {trained['data_digest'][:8]})."
        return (said, *trained.get("external_data", ()))

    def check(self, step: str, task: Task) -> None:
        if "place" not in task.inputs:
            raise MisuseError(f"The step {step} needs to know the place of each item; the task does not provide it.")

    def fit(self, part: Part, taxonomy: Taxonomy, *, several: bool) -> Self:
        """Finds the labels in the model; what it has learned stays as it is.

        Raises:
            MisuseError: When the model knows none of them.
        """
        codes = self._codes(taxonomy)
        if (codes == UNKNOWN).all():
            raise MisuseError(
                f"The model in {self.file} knows none of the {len(taxonomy.labels)} labels here: "
                "they must be called, or have as `species`, what it calls them."
            )
        counts = np.full(len(taxonomy.labels), 0.5)
        if part.targets is not None:
            known = part.targets.codes[part.targets.codes >= 0]
            counts += np.bincount(known, minlength=len(counts))
        logs = np.log(counts / counts.sum())
        return replace(self, places=tuple(codes.tolist()), log_shares=tuple(logs.round(6).tolist()))

    def _codes(self, taxonomy: Taxonomy) -> Any:
        model = self._model.model
        by_name = {}
        for code, label in enumerate(model.labels.names):
            for name in (model.taxonomy.taxon(code, "species"), label):
                if name:
                    by_name[name.replace("_", " ").lower()] = code
        codes = np.full(len(taxonomy.labels), UNKNOWN, dtype=np.int32)
        for code, label in enumerate(taxonomy.labels.names):
            for name in (taxonomy.taxon(code, "species"), label):
                if name and name.replace("_", " ").lower() in by_name:
                    codes[code] = by_name[name.replace("_", " ").lower()]
        return codes

    @property
    def log_prior(self) -> Logs:
        return np.asarray(self.log_shares)

    def log_ratio(self, items: pl.DataFrame) -> Logs:
        logs = np.zeros((len(items), len(self.places)))
        if not {"lat", "lon"} <= set(items.columns):
            return logs
        there = (items["lat"].is_not_null() & items["lon"].is_not_null()).to_numpy()
        if not there.any():
            return logs
        columns = np.flatnonzero(np.array(self.places) != UNKNOWN)
        points, _ = self._model.points(_asked(items.filter(there)))
        ratios = self._model.log_ratios(points)[:, np.array(self.places)[columns]].astype(np.float64)
        most = -np.log(self.floor)
        logs[np.ix_(np.flatnonzero(there), columns)] = np.clip(ratios, -most, most)
        return logs


def _asked(items: pl.DataFrame) -> pl.DataFrame:
    return items.select([name for name in ("lat", "lon", "date") if name in items.columns])
