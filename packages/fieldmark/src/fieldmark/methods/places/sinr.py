"""One network for all species."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from fieldmark.methods.base import Arrays
from fieldmark.methods.places.base import OnPlaces, Ratios, log_odds
from fieldmark.methods.places.records import PlaceRecords, Points
from fieldmark.registry import require
from fieldmark.settings import setting

NETWORK = "network."
CLAMPED = 4.0
MOST_REFERENCE = 5000
Encoder = Literal["waves", "geoclip", "none"]
ENCODERS: tuple[Encoder, ...] = ("waves", "geoclip", "none")
SAMPLED = ("full", "slds", "ssdl")
# Records are seen so often, less often where that is more than enough batches.
MOST_EPOCHS, FEWEST_EPOCHS, ENOUGH_BATCHES = 30, 10, 2000


@dataclass(frozen=True, kw_only=True)
class Sinr(OnPlaces):
    """Spatial implicit neural representations (Cole et al., ICML 2023): one network with an output for each species.

    Coordinates and covariates go through it together. Covariates are standardized and clamped four standard deviations
    out.

    Args:
        loss: full, slds or ssdl: which absences are assumed (`training.place_networks.PlaceLosses`).
        coordinates: How a place is told to the network: waves (sine and cosine over the region, `waves` of them, each
            half as long as the one before), geoclip (the location encoder of GeoCLIP, pre-trained on photos, as it is;
            extra geoclip), or none.
        waves: See there.
        width: Of the hidden layers.
        depth: How many residual blocks.
        dropout: The share of units that each block drops.
        epochs: How often every record is seen; 0 for 30 times, and down to 10 where those are more than 2,000 batches,
            or ten for each species.
        batch: How many records are seen at once.
        rate: The learning rate.
    """

    loss: str = setting("full", choices=SAMPLED)
    coordinates: Encoder = "waves"
    waves: int = setting(4, least=1)
    width: int = setting(256, least=1)
    depth: int = setting(4, least=0)
    dropout: float = 0.5
    epochs: int = setting(0, least=0)
    batch: int = setting(256, least=1)
    rate: float = setting(5e-4, above=0)

    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "epochs": (0, 10, 60),
        "coordinates": ("waves", "none"),
    }

    @property
    def external_data(self) -> tuple[str, ...]:
        if self.coordinates != "geoclip":
            return ()
        return ("The location encoder of GeoCLIP, trained on photos of Flickr (MP-16); MIT.",)

    @property
    def _settings(self) -> Any:
        networks: Any = require("fieldmark.training.place_networks", "The method 'sinr'")
        names = ("loss", "width", "depth", "dropout", "epochs", "batch", "rate", "seed")
        return networks.PlaceNetworkSettings(**{name: getattr(self, name) for name in names})

    def learn(self, records: PlaceRecords) -> tuple[Sinr, Arrays]:
        if not self.epochs:
            batches = -(-(len(records.points) if records.is_survey else len(records.row)) // self.batch)
            enough = max(ENOUGH_BATCHES, 10 * records.n_labels)
            return replace(self, epochs=int(np.clip(enough // batches, FEWEST_EPOCHS, MOST_EPOCHS))).learn(records)
        networks: Any = require("fieldmark.training.place_networks", "The method 'sinr'")
        shared = _bounds(records.points)
        places = self._inputs(shared, records.points)
        if records.background is None:
            holds = np.zeros((len(places), records.n_labels), dtype=np.bool_)
            holds[records.row, records.code] = True
            weights = networks.train_survey_network(places, holds, records.asked, self._settings)
            level = log_odds(records.log_prior)
        else:
            reference = self._inputs(shared, records.background)
            weights = networks.train_place_network(
                places, records.row, records.code.astype(np.int64), reference, records.n_labels, self._settings
            )
            rows = np.random.default_rng(self.seed).permutation(len(reference))[:MOST_REFERENCE]
            logs = [self._log_intensity(self._outputs(weights, block)) for block in _blocks(reference[rows])]
            level = logsumexp(np.stack([logsumexp(one, axis=0) for one in logs]), axis=0) - np.log(len(rows))
        kept = {f"{NETWORK}{name}": one for name, one in weights.items()}
        return self, {**shared, **kept, "level": level.astype(np.float32)}

    def log_ratios(self, arrays: Arrays, points: Points) -> Ratios:
        weights = {name.removeprefix(NETWORK): one for name, one in arrays.items() if name.startswith(NETWORK)}
        outputs = self._outputs(weights, self._inputs(arrays, points))
        logs = outputs if arrays["survey"][0] else self._log_intensity(outputs)
        return np.asarray(logs - arrays["level"], dtype=np.float32)

    def _outputs(self, weights: Mapping[str, NDArray[Any]], places: NDArray[np.float32]) -> NDArray[np.float32]:
        networks: Any = require("fieldmark.training.place_networks", "The method 'sinr'")
        made: NDArray[np.float32] = networks.place_outputs(dict(weights), places, self._settings)
        return made

    def _log_intensity(self, outputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """How strongly each species is to be expected, up to a factor of its own: the log of the chance of presence."""
        return np.asarray(-np.logaddexp(0, -outputs), dtype=np.float32)

    def _inputs(self, shared: Arrays, points: Points) -> NDArray[np.float32]:
        """What the network sees of places: standardized covariates, then coordinates."""
        table = np.clip((points.table - shared["mean"]) / shared["spread"], -CLAMPED, CLAMPED)
        columns: list[NDArray[Any]] = [np.nan_to_num(table)]
        if self.coordinates == "waves":
            columns.append(_waves(shared, points, self.waves))
        if self.coordinates == "geoclip":
            from fieldmark.features.geoclip import encode_places

            columns.append(encode_places(np.nan_to_num(points.lat), np.nan_to_num(points.lon)))
        return np.concatenate(columns, axis=1).astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class DeepMaxent(Sinr):
    """The same network with the principle of maximum entropy as its loss (Ryckewaert et al., DeepMaxent): for each
    species the cross-entropy of its records among all places of a batch, so that outputs are log intensities.
    """

    loss: str = setting("maxent", choices=("maxent",))

    def _log_intensity(self, outputs: NDArray[np.float32]) -> NDArray[np.float32]:
        return outputs


def _bounds(points: Points) -> Arrays:
    """Mean and spread of covariates, and the region."""
    spread = points.table.std(axis=0) if points.table.shape[1] else np.zeros(0, dtype=np.float32)
    lat, lon = points.lat[np.isfinite(points.lat)], points.lon[np.isfinite(points.lon)]
    region = [lat.min(initial=90), lat.max(initial=-90), lon.min(initial=180), lon.max(initial=-180)]
    return {
        "mean": points.table.mean(axis=0),
        "spread": np.where(spread > 1e-9, spread, np.inf).astype(np.float32),
        "region": np.array(region if len(lat) and len(lon) else [0.0, 0.0, 0.0, 0.0]),
    }


def _waves(shared: Arrays, points: Points, waves: int) -> NDArray[np.float64]:
    """The place within the region from -1 to 1, and waves over it; zeros where it is not known."""
    south, north, west, east = shared["region"]
    # A degree of longitude is shorter than one of latitude; waves are as long in both directions.
    half = max(north - south, (east - west) * np.cos(np.radians((north + south) / 2)), 1e-9) / 2
    y = (points.lat - (north + south) / 2) / half
    x = (points.lon - (east + west) / 2) * np.cos(np.radians((north + south) / 2)) / half
    columns = [x, y]
    for number in range(waves):
        for one in (x, y):
            angle = np.pi / 2 * 2**number * np.clip(one, -2, 2)
            columns += [np.sin(angle), np.cos(angle)]
    return np.asarray(np.nan_to_num(np.column_stack(columns)))


def _blocks(places: NDArray[np.float32], size: int = 512) -> list[NDArray[np.float32]]:
    return [places[start : start + size] for start in range(0, len(places), size)]
