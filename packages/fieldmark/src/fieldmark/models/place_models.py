"""A fitted model of places, asked about places that belong to no release."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import FieldmarkError, InputError, MisuseError
from fieldmark.methods.base import Arrays
from fieldmark.methods.places.base import OnPlaces, Ratios
from fieldmark.methods.places.extrapolation import Extrapolation, extrapolations
from fieldmark.methods.places.records import Points
from fieldmark.models.model import Model, load_model
from fieldmark.releases.gridded import PatchFiles, PlaceTable
from fieldmark.runs.provenance import RUN_FILE
from fieldmark.splits.knndm import points_on_earth
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.inputs import Layer, OwnLayer
from fieldmark.views.open_benchmark import open_release
from fieldmark.views.parts import Part

# What a table says of a place stands in for others up to here.
FARTHEST_KM = 50.0


@dataclass(frozen=True, eq=False)
class PlaceModel:
    """A fitted model that says what lives at a place.

    Args:
        model: The model.
        data: The root of the release whose maps describe places; empty where it is not known.
    """

    model: Model
    data: str = ""

    @classmethod
    def open(cls, path: str | Path, data: str = "") -> PlaceModel:
        """Opens the model of a run; the release is the one it was fitted to, unless another one is named.

        Raises:
            InputError: When there is no model.
            MisuseError: When it is about something else than places.
        """
        model = load_model(path)
        if not isinstance(model.fitted.method, OnPlaces):
            raise MisuseError(f"{path} is a model of {model.name!r}, which does not say what lives at a place.")
        return cls(model, data or _data_of(Path(path)))

    @property
    def method(self) -> OnPlaces:
        """The method behind it."""
        assert isinstance(self.model.fitted.method, OnPlaces)  # as `open` saw to
        return self.model.fitted.method

    @property
    def arrays(self) -> Arrays:
        """What it learned."""
        return self.model.fitted.arrays

    def points(self, items: pl.DataFrame) -> tuple[Points, tuple[str, ...]]:
        """Places with the covariates that the model reads, and what a person should know about these.

        Args:
            items: `lat` and `lon`, and `date` where it is known.

        Raises:
            InputError: When the maps that it needs are not there.
        """
        ids = [str(row) for row in range(len(items))]
        empty = pl.Series([[]] * len(items), dtype=pl.List(pl.String))
        table = items.with_columns(item_id=pl.Series(ids, dtype=pl.String), media_ids=empty)
        table = table.with_columns(observation_id="item_id")
        layers, remarks = self._layers(table)
        part = Part(table, layers={name: OwnLayer.of(layer, ids) for name, layer in layers.items()})
        supplied = self.model.supply.supply(part)
        lacking = [name for name in self.method.names if supplied.missing.get(name, np.zeros(1, bool)).any()]
        if lacking:
            remarks = (*remarks, f"Nothing is known there of {' and '.join(lacking)}: the mean of train stands in.")
        return self.method.points(self.arrays, supplied), remarks

    def log_ratios(self, points: Points) -> Ratios:
        """The log of P(species | place) / P(species), one row per place."""
        made = list(self.method.blocks(self.arrays, points))
        return np.concatenate([np.zeros((0, len(self.model.labels)), dtype=np.float32), *made])

    def chances(self, points: Points) -> NDArray[np.float64]:
        """P(species | place), one row per place: over all species, or of each by itself."""
        scores = self.method.scored(self.arrays, self.log_ratios(points)).astype(np.float64)
        return scores if self.method.several else np.exp(scores)

    def extrapolations(self, points: Points) -> list[Extrapolation]:
        """How far each place lies from what the model has learned from."""
        return extrapolations(self.arrays, points)

    @cached_property
    def covariates(self) -> tuple[str, ...]:
        """What the covariates are called, as far as that is known."""
        names: list[str] = []
        for name in self.method.names:
            encoder = self.model.encoders.get(name)
            kept = getattr(getattr(encoder, "fitted", None), "kept", None)
            known = [one for layer in self._layers_of(name).values() for one in getattr(layer, "names", ())]
            if kept is None or len(known) != len(kept):
                width = int(self.arrays["joined.widths"][self.method.names.index(name)])
                names += [name] if width == 1 else [f"{name} {number}" for number in range(1, width + 1)]
            else:
                names += [one for one, used in zip(known, kept, strict=True) if used]
        return tuple(names)

    @cached_property
    def _dataset(self) -> Dataset:
        trained = self.model.trained["benchmark"]
        if not self.data:
            raise MisuseError("The model reads maps of the release it was fitted to: name its root with --data.")
        try:
            return open_release(BENCHMARKS[trained], self.data)
        except (FieldmarkError, OSError) as error:
            expected = f"the release with the maps that the model reads ({', '.join(self.method.names)})"
            raise InputError(
                self.data, found=f"no such release ({error})", expected=expected, hint="Name its root with --data."
            ) from error

    def _layers_of(self, name: str) -> Mapping[str, Layer]:
        encoder = self.model.encoders.get(name)
        if encoder is None or encoder.kind == "columns":
            return {}
        return {key: layer for key, layer in self._dataset.layers.items() if layer.input == name}

    def _layers(self, table: pl.DataFrame) -> tuple[dict[str, Layer], tuple[str, ...]]:
        """The layers of the release at other places: maps are looked up there, tables at the nearest place."""
        found: dict[str, Layer] = {}
        remarks: list[str] = []
        for name in self.method.names:
            for key, layer in self._layers_of(name).items():
                if "places" in {field.name for field in fields(layer)}:  # type: ignore[arg-type]
                    found[key] = replace(layer, places=PlaceTable.of(table))  # type: ignore[type-var]
                elif not isinstance(layer, PatchFiles):  # imagery of another place says nothing about this one
                    nearest, km = self._nearest(table)
                    if km > FARTHEST_KM:
                        continue
                    found[key] = _Renamed(layer, dict(zip(table["item_id"], nearest, strict=True)), layer.input)
                    remarks.append(
                        f"The release has no map of {name}: that of the nearest place it describes stands in, "
                        f"up to {km:.1f} km away."
                    )
        return found, tuple(dict.fromkeys(remarks))

    def _nearest(self, table: pl.DataFrame) -> tuple[list[str], float]:
        known = self._dataset.observations.drop_nulls(["lat", "lon"])
        tree = cKDTree(points_on_earth(known["lat"].to_numpy(), known["lon"].to_numpy()))
        asked = points_on_earth(*(table[name].fill_null(0.0).to_numpy() for name in ("lat", "lon")))
        distance, row = tree.query(asked)
        return known["observation_id"].gather(row).to_list(), float(distance.max(initial=0.0)) / 1000


@dataclass(frozen=True, eq=False)
class _Renamed(Layer):
    """A layer asked by other ids."""

    layer: Layer
    other: Mapping[str, str]
    input: str  # type: ignore[misc]
    by = "observation_id"

    def read(self, ids: Sequence[str]) -> list[Any]:
        return self.layer.read([self.other[one] for one in ids])

    def numbers(self, ids: Sequence[str]) -> NDArray[np.float64]:
        return self.layer.numbers([self.other[one] for one in ids])

    def files(self, ids: Sequence[str]) -> list[bytes | None]:
        return self.layer.files([self.other[one] for one in ids])


def _data_of(path: Path) -> str:
    """The root of the release that a run was made of, as it says itself; empty where it does not."""
    for folder in (path, path.parent):
        file = folder / RUN_FILE
        if file.exists():
            return str(json.loads(file.read_text(encoding="utf-8")).get("data") or "")
    return ""
