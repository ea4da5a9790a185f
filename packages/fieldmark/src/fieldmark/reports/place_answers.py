"""What sections about places share: coordinates, chances and errors of the scored places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from fieldmark.reports.section import Context
from fieldmark.runs.code_sets import rows_of
from fieldmark.splits.knndm import points_on_earth

Floats = NDArray[np.float64]
LISTED = 30


def is_about_places(context: Context) -> bool:
    """Whether a run answers about places: a release without media, scored items that have coordinates."""
    items = context.items
    placed = {"lat", "lon"} <= set(items.columns) and items["lat"].is_not_null().any()
    return placed and context.opened.dataset.media.is_empty() and hasattr(context.predictions, "pairs")


@dataclass(frozen=True)
class PlaceAnswers:
    """The answers for the scored places whose coordinates are known.

    Args:
        context: The run.
        rows: Which of the scored items they are.
        lat: Latitude of each.
        lon: Longitude of each.
    """

    context: Context
    rows: NDArray[np.int64]
    lat: Floats
    lon: Floats

    @classmethod
    def of(cls, context: Context) -> PlaceAnswers:
        """The answers of a run about places."""
        lat, lon = (context.items[name].cast(float).fill_null(np.nan).to_numpy() for name in ("lat", "lon"))
        rows = np.flatnonzero(np.isfinite(lat) & np.isfinite(lon))
        return cls(context, rows, lat[rows], lon[rows])

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, chosen: NDArray[np.bool_]) -> PlaceAnswers:
        """The answers for some of the places."""
        return PlaceAnswers(self.context, self.rows[chosen], self.lat[chosen], self.lon[chosen])

    @property
    def holds(self) -> NDArray[np.bool_]:
        """Which species live at each place, for questions about each of them."""
        truth = self.context.opened.truth[self.context.part]
        row_of = {item: row for row, item in enumerate(truth.items)}
        found = np.zeros((len(truth.items), len(self.context.labels)), dtype=np.bool_)
        codes = self.context.labels.encode(truth.rows["label"])
        item = np.array([row_of[one] for one in truth.rows["item_id"]], dtype=np.int64)
        found[item[codes >= 0], codes[codes >= 0]] = True
        order = np.array([row_of[one] for one in self.context.items["item_id"]], dtype=np.int64)
        return np.asarray(found[order][self.rows])

    @property
    def chances(self) -> Floats:
        """The chance of each species at each place, for dense answers."""
        return np.asarray(self.context.predictions.chances()[self.rows], dtype=np.float64)

    @property
    def commonest(self) -> int:
        """The species met most often at the scored places."""
        if self.context.many_labels:
            return int(self.holds.sum(axis=0).argmax())
        known = self.context.truth[self.context.truth >= 0]
        return int(np.bincount(known, minlength=len(self.context.labels)).argmax())

    @property
    def richness(self) -> Floats:
        """How many species are to be expected at each place (`richness_words` says how they are counted)."""
        if self.context.many_labels:
            return np.asarray(self.chances.sum(axis=1))
        return np.asarray([self._effective(row) for row in self.rows])

    @property
    def richness_words(self) -> str:
        """How richness is counted."""
        if self.context.many_labels:
            return "the sum of the chances of all species"
        return "how many species the next record could be, as the exponential of the entropy of the answer"

    def _effective(self, row: int) -> float:
        shares = np.exp(np.array(list(self.context.predictions.scores_by_code(int(row)).values()), dtype=np.float64))
        shares = shares / max(shares.sum(), 1e-300)
        return float(np.exp(-(shares * np.log(np.maximum(shares, 1e-300))).sum()))

    def of_species(self, code: int) -> Floats:
        """The chance of one species at each place."""
        predictions = self.context.predictions
        if predictions.dense:
            scores = predictions.scores[self.rows, code].astype(np.float64)
        else:
            scores = np.full(len(predictions.items), -np.inf)
            mine = predictions.codes == code
            scores[rows_of(predictions.offsets)[mine]] = predictions.scores[mine]
            scores = scores[self.rows]
        return np.asarray(scores if predictions.scale == "score" else np.exp(scores))

    @property
    def error(self) -> Floats:
        """How wrong the answer is at each place (`error_words` says how that is counted)."""
        if self.context.many_labels:
            return np.asarray(((self.chances - self.holds) ** 2).mean(axis=1))
        return np.asarray(1.0 - self.hits)

    @property
    def error_words(self) -> str:
        """How errors are counted."""
        if self.context.many_labels:
            return "the mean squared difference of chances and what was found (Brier score)"
        return f"the share of {self.context.item_noun}s whose species is not among the first {LISTED}"

    @property
    def hits(self) -> Floats:
        """Whether the species of each record is among the first answers."""
        first = self.context.predictions.top(LISTED)[self.rows]
        return np.asarray((first == self.context.truth[self.rows, None]).any(axis=1), dtype=np.float64)

    @property
    def km_to_train(self) -> Floats:
        """How far the nearest place of train is from each."""
        train = self.context.training_items.drop_nulls(["lat", "lon"])
        places = points_on_earth(train["lat"].to_numpy(), train["lon"].to_numpy())
        return np.asarray(cKDTree(places).query(points_on_earth(self.lat, self.lon))[0] / 1000)
