"""Folds of places: as far from what is learned from as those that will be asked about, background and all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.methods.places.records import coordinates
from fieldmark.splits import InBlocks
from fieldmark.splits.knndm import matched_folds, points_on_earth
from fieldmark.splits.official import block_side_m
from fieldmark.splits.rules import rule_named
from fieldmark.views.open_benchmark import Opened
from fieldmark.views.parts import Part, View

# By what places are kept together: folds whose distances are those of prediction (`splits.knndm`).
DISTANCE: Final = "distance"
# So many points of the background are asked about, or as many as there are records.
LEAST_ASKED = 1_000
# More places than this tell hardly more of which method is better.
MOST_SEARCHED = 3_000


def some_places(opened: Opened, seed: int) -> Opened:
    """A release of which train and val hold a draw of the places, where there are many."""
    train, val, items = opened.view.train, opened.view.val, opened.items["train"]
    share = MOST_SEARCHED / len(train)
    if share >= 1:
        return opened
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(len(train), MOST_SEARCHED, replace=False))
    assert val is not None  # open_benchmark refuses an empty val
    of_val = np.sort(rng.choice(len(val), max(int(share * len(val)), 1), replace=False))
    few = replace(opened.view, train=train.take(rows), val=val.take(of_val))
    return replace(opened, view=few, items={**opened.items, "train": items[rows.tolist()]})


def rule_like_test(opened: Opened) -> str:
    """By what places are kept together, so that folds are asked about like test.

    That is blocks of about the same size where the benchmark draws blocks, and distance where test is given.
    """
    split = opened.benchmark.split
    rows = opened.benchmark.task.items.rows(opened.dataset)
    given = rows["parts"].list.contains(pl.lit(split.test, pl.String)).any()
    if not isinstance(split.otherwise, InBlocks) or given or opened.split is not None:
        return DISTANCE
    return f"cells:{block_side_m(*known(opened.view.train), split.otherwise.across):.0f}"


def folds_by_distance(view: View, folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of each place of train, cut so that distances are those from test (or val) to train."""
    asked = view.test if view.test is not None else view.val
    assert asked is not None  # open_benchmark refuses an empty val
    return matched_folds(known(view.train), known(asked), number=folds, seed=seed).fold


def known(part: Part) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Latitude and longitude, those that are not told at 0 degrees."""
    lat, lon = coordinates(part)
    return np.nan_to_num(lat), np.nan_to_num(lon)


@dataclass(frozen=True)
class HeldOutBackground:
    """How the background of records goes with their folds.

    Args:
        near: The fold of the record that is nearest to each point.
        asked: Which points are asked about.
    """

    near: NDArray[np.int64]
    asked: NDArray[np.int64]

    @classmethod
    def of(cls, view: View, numbers: NDArray[np.int64], by: str, seed: int) -> HeldOutBackground | None:
        """How the background of a view is held out; None where it has none.

        Where folds are blocks, only points in blocks with records are asked about, as in blocks that are drawn for
        test.
        """
        from scipy.spatial import cKDTree  # takes half a second

        if view.unlabeled is None or not len(view.unlabeled):
            return None
        tree = cKDTree(points_on_earth(*known(view.train)))
        near = numbers[tree.query(points_on_earth(*known(view.unlabeled)))[1]]
        inside = np.arange(len(near))
        if by != DISTANCE:
            rule = rule_named(by, unit=view.unit)
            of_records, cell = (rule.keys(part.items, "place") for part in (view.train, view.unlabeled))
            inside = np.flatnonzero(cell.is_in(of_records.implode()).to_numpy())
        count = min(max(len(view.train), LEAST_ASKED), len(inside))
        return cls(near, np.sort(np.random.default_rng(seed).choice(inside, count, replace=False)))

    @property
    def asked_folds(self) -> NDArray[np.int64]:
        """The fold of each point that is asked about."""
        return self.near[self.asked]

    def held_out(self, rest: View, asked: Part, fold: int) -> tuple[View, Part]:
        """A fold with its background held out as well."""
        assert rest.unlabeled is not None  # it has the background
        further = rest.unlabeled.take(self.asked[self.asked_folds == fold]).unlabeled()
        learned = replace(rest, unlabeled=rest.unlabeled.take(self.near != fold))
        return learned, Part.concat([asked.unlabeled(), further])
