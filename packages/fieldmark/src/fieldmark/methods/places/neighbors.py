"""What was found nearby."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from fieldmark.methods.base import Arrays
from fieldmark.methods.places.base import OnPlaces, Ratios, as_odds
from fieldmark.methods.places.records import PlaceRecords, Points
from fieldmark.settings import setting


@dataclass(frozen=True, kw_only=True)
class NeighborsInSpace(OnPlaces):
    """A vote of the nearest places in space, each by a bell curve of its distance; covariates are not read.

    The width of the curve at a place is the distance to its neighbor number `k` / 2, so that it is narrow where much is
    known. Species have `strength` further votes in proportion to how common they are:

        P(species | place) = (votes for it + strength P(species)) / (all votes + strength)

    With background=random the votes are set against those of background points nearby, not against all records.

    Args:
        k: How many places vote.
        strength: How many votes the labels of train have.
    """

    k: int = setting(50, least=1)
    strength: float = setting(5.0, above=0)
    inputs: str = "place"

    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {"k": (50, 20, 100, 200), "strength": (5.0, 1.0, 20.0)}

    @property
    def names(self) -> tuple[str, ...]:
        return ()  # the place is read as it is, in degrees

    def learn(self, records: PlaceRecords) -> tuple[NeighborsInSpace, Arrays]:
        found = csr_matrix(
            (np.ones(len(records.row), dtype=np.float32), (records.row, records.code)),
            shape=(len(records.points), records.n_labels),
        )
        arrays: Arrays = {
            "place": records.points.on_sphere,
            "offsets": found.indptr.astype(np.int64),
            "codes": found.indices.astype(np.int32),
            "times": found.data,
        }
        if records.background is not None and records.against_background:
            arrays["background"] = records.background.on_sphere
        return self, arrays

    def log_ratios(self, arrays: Arrays, points: Points) -> Ratios:
        share = np.exp(arrays["log_prior"].astype(np.float64))
        asked = points.on_sphere
        rows, weights = _votes(arrays["place"], asked, self.k)
        found = csr_matrix(
            (arrays["times"], arrays["codes"], arrays["offsets"]), shape=(len(arrays["place"]), len(share))
        )
        item = np.repeat(np.arange(len(asked)), rows.shape[1])
        voting = csr_matrix((weights.ravel(), (item, rows.ravel())), shape=(len(asked), len(arrays["place"])))
        votes = np.asarray((voting @ found).todense())
        if "background" in arrays:
            nearby = self._density(arrays["background"], asked, rows, weights, arrays["place"])
            ratios = np.log((votes / np.maximum(share, 1e-12) + self.strength) / (nearby[:, None] + self.strength))
        else:
            total = votes.sum(axis=1) if not arrays["survey"][0] else weights.sum(axis=1)
            ratios = np.log((votes / share + self.strength) / (total[:, None] + self.strength))
        nowhere = ~(np.isfinite(points.lat) & np.isfinite(points.lon))
        ratios[nowhere] = 0.0
        return as_odds(arrays, ratios).astype(np.float32)

    def _density(
        self,
        background: NDArray[np.float64],
        asked: NDArray[np.float64],
        rows: NDArray[np.int64],
        weights: NDArray[np.float64],
        place: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """How many votes background points would have in all, if there were as many of them as places of train."""
        width = _width(np.linalg.norm(place[rows] - asked[:, None], axis=2))
        own, _ = cKDTree(background).query(asked, k=min(self.k, len(background)))
        own = own.reshape(len(asked), -1)
        return np.asarray(np.exp(-((own / width[:, None]) ** 2) / 2).sum(axis=1) * len(place) / len(background))


def _votes(place: NDArray[np.float64], asked: NDArray[np.float64], k: int) -> tuple[NDArray[np.int64], Any]:
    """The nearest places of each place that is asked about, and the weight of their votes."""
    k = min(k, len(place))
    distance, rows = cKDTree(place).query(asked, k=k)
    distance, rows = distance.reshape(len(asked), k), rows.reshape(len(asked), k)
    return rows, np.exp(-((distance / _width(distance)[:, None]) ** 2) / 2)


def _width(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The width of the curve: the distance to the neighbor in the middle; not nothing where all lie on one spot."""
    ordered = np.sort(distance, axis=1)
    return np.asarray(np.maximum(ordered[:, ordered.shape[1] // 2], 1e-3))
