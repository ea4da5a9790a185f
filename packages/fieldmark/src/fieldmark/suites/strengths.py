"""What a model is good at in a cell: answers by species and group, and how far its probabilities can be believed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.fitting import FitResult
from fieldmark.metrics.calibration import reliability
from fieldmark.runs.label_scores import LabelScores
from fieldmark.tables.schema import RANKS

# Results stay small: so many species are kept, those with the fewest right answers first.
MOST_LABELS = 40
# Groups tell something where there are some, and each is more than a species or two.
FEWEST_GROUPS, MOST_GROUPS = 2, 30


def strengths_of(fitted: FitResult) -> dict[str, Any] | None:
    """First answers by label and by group, and calibration; None where items have other than one label each.

    Returns:
        `items`, `right`; `labels`: rows of label, items and right answers, worst first; `groups`: the same by the name
        of a rank; `calibration`: rows of items, mean probability and share of right answers.
    """
    part = "test" if "test" in fitted.scorecards else "val"
    scores, truth = fitted.predictions.get(part), fitted.truth.get(part)
    if not isinstance(scores, LabelScores) or truth is None or truth.rows["item_id"].n_unique() < len(truth.rows):
        return None
    label_of = dict(truth.rows.select("item_id", "label").iter_rows())
    asked = np.array([item in label_of for item in scores.items], dtype=np.bool_)
    if not asked.any():
        return None
    names = np.array([label_of[item] for item in scores.items if item in label_of])
    first = scores.top(1)[asked, 0]
    right = first == scores.labels.encode(names)
    told: dict[str, Any] = {"items": len(names), "right": int(right.sum())}
    told["labels"] = _counted(names, right)[:MOST_LABELS]
    told["groups"] = _groups(names, right, fitted.model.taxa)
    if scores.dense and scores.scale != "score":
        bands = reliability(scores.probabilities()[asked].max(axis=1).astype(np.float64), right)
        rows = zip(bands.items.tolist(), bands.confidence, bands.accuracy, strict=True)
        told["calibration"] = [[items, round(float(said), 4), round(float(held), 4)] for items, said, held in rows]
    return told


def _counted(names: NDArray[np.str_], right: NDArray[np.bool_]) -> list[list[Any]]:
    """Rows of name, items and right answers, the smallest share first; of equals that with more items."""
    found, code = np.unique(names, return_inverse=True)
    items, hits = np.bincount(code), np.bincount(code, weights=right).astype(np.int64)
    order = sorted(range(len(found)), key=lambda one: (hits[one] / items[one], -items[one], found[one]))
    return [[str(found[one]), int(items[one]), int(hits[one])] for one in order]


def _groups(names: NDArray[np.str_], right: NDArray[np.bool_], taxa: pl.DataFrame) -> Mapping[str, list[list[Any]]]:
    """The same by rank, for ranks that make groups."""
    groups = {}
    for rank in RANKS[:-1]:
        if rank not in taxa.columns:
            continue
        group_of = dict(taxa.select("label", rank).drop_nulls().iter_rows())
        known = np.array([name in group_of for name in names])
        of_items = np.array([str(group_of.get(name, "")) for name in names])[known]
        if FEWEST_GROUPS <= len(set(of_items)) <= min(MOST_GROUPS, len(set(names)) - 1):
            groups[rank] = _counted(of_items, right[known])
    return groups
