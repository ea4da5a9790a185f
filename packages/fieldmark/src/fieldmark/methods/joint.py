"""One small network on the features of all modalities together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.methods.base import ON_VAL, Arrays, Fitted, choices, features_of, truth_of
from fieldmark.methods.modalities import ALL, OnModalities, is_missing
from fieldmark.questions.targets import Shape
from fieldmark.registry import require
from fieldmark.runs.label_scores import Scale
from fieldmark.settings import setting
from fieldmark.views.parts import Part, View
from fieldmark.work.large_arrays import joined_columns, kept_rows, mean_and_spread, row_by_row

NETWORK = "network."
MOST_EPOCHS = 60
MIXINGS = ("gated", "dynamic")
# Inputs that are series of months, and of how many variables.
SERIES_VARIABLES = {"climate_series": 4}


@dataclass(frozen=True)
class Joint(OnModalities):
    """Photo embedding and everything else that is known, put together by gates or by a dynamic MLP.

    Modalities are dropped at random while it learns, so that it can answer without any of them. The formulas are in
    `training.modal_training`.

    Args:
        inputs: The modalities with commas between them, inputs of one modality joined by `+`; the first is the main one
            of a dynamic network. "all" takes every input that the release has and the task allows, less those that
            must be named: `climate_series`, which enters through a small network over its months, and `exif`.
        mixing: gated or dynamic.
        width: The common width of all modalities.
        drop: The chance that a modality is dropped from an item for a step of training.
        epochs: How often train is gone through; 0 stops where the log loss on val is lowest, after 60 at most.
        rate, decay, batch: Of the training by AdamW.
        seed: Of weights, order and drops.
    """

    inputs: str = ALL
    mixing: str = setting("gated", choices=MIXINGS)
    width: int = setting(256, least=1)
    drop: float = setting(0.2, least=0, below=1)
    epochs: int = setting(0, least=0)
    rate: float = setting(1e-3, above=0)
    decay: float = 0.05
    batch: int = setting(128, least=1)
    seed: int = 0

    scale: ClassVar[Scale] = "logit"
    targets: ClassVar[tuple[Shape, ...]] = ("codes",)
    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {"mixing": MIXINGS, "decay": (0.05, 0.5)}

    def check_settings(self) -> None:
        _ = self.modalities  # refuses what cannot be read

    def fit(self, view: View) -> Fitted:
        fitting: Any = require("fieldmark.training.modal_training", "The method 'joint'")
        scaling = fit_scaling(self.modalities, view.train)
        train = _data(self.modalities, scaling, view.train, labels=True)
        val = _data(self.modalities, scaling, view.val, labels=True) if view.val is not None else None
        if val is None and not self.epochs:
            raise MisuseError("joint stops where val is answered best, and there is no val: pass --set epochs=NUMBER.")
        recipe = fitting.ModalRecipe(
            self.width, self.mixing, self.epochs or MOST_EPOCHS, self.rate, self.decay, self.batch, self.drop, self.seed
        )
        weights, epochs = fitting.fit_network(train, None if self.epochs else val, len(view.labels), recipe)
        kept = {f"{NETWORK}{name}": array for name, array in weights.items()}
        chosen = replace(self, epochs=epochs)
        return Fitted(chosen, {**kept, **scaling}, chosen=choices(self, chosen, ON_VAL))

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        fitting: Any = require("fieldmark.training.modal_training", "The method 'joint'")
        weights = {name.removeprefix(NETWORK): value for name, value in arrays.items() if name.startswith(NETWORK)}
        data = _data(self.modalities, arrays, part)
        return cast(NDArray[np.float32], fitting.network_scores(weights, data, self.mixing))


def fit_scaling(modalities: tuple[tuple[str, ...], ...], train: Part) -> Arrays:
    """Mean and spread of the features of each input over the items of train that have it."""
    made: Arrays = {}
    for name in (name for group in modalities for name in group):
        features, there = features_of(train, name), ~is_missing(train, (name,))
        own = kept_rows(features, there) if there.any() else np.zeros((1, features.shape[1]), dtype=np.float32)
        made[f"{name}.mean"], spread = mean_and_spread(own)
        made[f"{name}.spread"] = np.maximum(spread, 1e-6 * max(float(spread.max(initial=0.0)), 1e-6)).astype(np.float32)
    return made


def _data(modalities: tuple[tuple[str, ...], ...], scaling: Arrays, part: Part, *, labels: bool = False) -> Any:
    """A part as the network gets it: standardized features, zeros where an input is missing."""
    fitting: Any = require("fieldmark.training.modal_training", "The method 'joint'")
    features, there = [], np.ones((len(part), len(modalities)), dtype=np.bool_)
    for number, names in enumerate(modalities):
        columns = [standardized(part, name, scaling) for name in names]
        joined = joined_columns(columns)
        # An input whose columns are all the same in train has none left; one column of zeros stands for it.
        features.append(joined if joined.shape[1] else np.zeros((len(part), 1), dtype=np.float32))
        there[:, number] = ~is_missing(part, names)
    series = tuple(SERIES_VARIABLES.get(names[0], 0) if len(names) == 1 else 0 for names in modalities)
    return fitting.ModalData(features, there, truth_of(part) if labels else None, series if any(series) else ())


def standardized(part: Part, name: str, scaling: Arrays) -> NDArray[np.float32]:
    """One input of a part, each column centered and scaled as in train; zeros where an item has none of it."""
    mean, spread = scaling[f"{name}.mean"], scaling[f"{name}.spread"]
    missing = is_missing(part, (name,))
    if missing.all():  # nothing of the kind is known here, not even how many features it would have
        return np.zeros((len(part), len(mean)), dtype=np.float32)

    def scaled(rows: NDArray[np.float32], lacking: NDArray[np.bool_]) -> NDArray[np.float32]:
        return np.where(lacking[:, None], 0.0, (rows - mean) / spread).astype(np.float32)

    return row_by_row(scaled, features_of(part, name), missing)
