"""Photos of the same individual, put together by how alike they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Sees
from fieldmark.errors import MisuseError
from fieldmark.methods.base import (
    ON_BOTH,
    ON_TRAIN,
    Arrays,
    Fitted,
    OnFeatures,
    choices,
    features_of,
    truth_of,
    unit_rows,
)
from fieldmark.metrics.individuals import adjusted_rand
from fieldmark.questions.targets import Shape
from fieldmark.runs.code_sets import CodeSets
from fieldmark.runs.label_scores import LabelScores, Scale
from fieldmark.settings import setting
from fieldmark.stats.logistic import platt
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import Part, View
from fieldmark.work.large_arrays import joined_rows, matrix_blocks, row_by_row

GROUP = "dataset"
# How many thresholds are tried where clusters choose it.
TRIED = 60


@dataclass(frozen=True)
class Clustering(OnFeatures):
    """Average linkage over cosines, merged as long as two clusters are more likely the same than not.

    How likely two photos show the same individual is a logistic curve of their cosine, fitted to the pairs of val with
    each other and with train (of train, without val) inside each dataset. Clusters are merged, the most alike first,
    while the mean cosine between them lies where that curve says one half or more. Photos of different datasets are
    never put together.

    Most pairs show two individuals, so that with weak features no pair may ever be more likely the same than not. Where
    the curve stays below on all pairs, and with by=clusters in any case, train and val are clustered instead, and the
    threshold is the one of their highest adjusted Rand index.

    Args:
        threshold: From which mean cosine on two clusters are one; chosen where it is not given.
        odds: How many times likelier than not a pair must be to count as the same.
        by: "pairs" or "clusters": what chooses the threshold.
    """

    threshold: float | None = None
    odds: float = setting(1.0, above=0)
    by: str = setting("pairs", choices=("pairs", "clusters"))

    sees: ClassVar[Sees] = "test set"
    targets: ClassVar[tuple[Shape, ...]] = ("codes",)
    scale: ClassVar[Scale] = "score"
    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {"odds": (1.0, 0.3, 3.0)}
    added_settings: ClassVar[tuple[str, ...]] = ("by",)

    def fit(self, view: View) -> Fitted:
        if self.threshold is not None:
            return Fitted(self, {})
        cosine, same = pairs_of(view)
        if same.all() or not same.any():
            raise MisuseError("clustering learns from pairs of photos of the same and of different individuals.")
        slope, offset = platt(cosine, same)
        if slope <= 0:
            raise MisuseError("Photos of the same individual are no more alike than others by these features.")
        threshold, chosen_on = float((np.log(self.odds) - offset) / slope), f"{len(same):,} pairs"
        if self.by == "clusters" or threshold > cosine.max():
            threshold, chosen_on = _best_on_clusters(view)
        remark = f"Photos count as the same individual from a mean cosine of {threshold:.3f} on ({chosen_on})."
        chosen = replace(self, threshold=threshold)
        return Fitted(chosen, {}, (remark,), choices(self, chosen, ON_TRAIN if view.val is None else ON_BOTH))

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        raise MisuseError("clustering puts photos together and scores no labels.")

    def answer(self, arrays: Arrays, part: Part, labels: Labels) -> LabelScores:
        assert self.threshold is not None  # chosen by `fit`
        features, group = row_by_row(unit_rows, features_of(part)), _groups(part)
        names = [""] * len(features)
        for name in np.unique(group):
            rows = np.flatnonzero(group == name)
            for row, number in zip(rows, linked(features[rows], self.threshold), strict=True):
                names[row] = f"cluster_{name}_{number}" if name else f"cluster_{number}"
        clusters = Labels.of(names)
        lists = CodeSets.single(clusters.encode(names))
        return LabelScores.listed(part.item_ids, clusters, lists, np.ones(len(names)))


def linked(features: NDArray[np.float32], threshold: float) -> NDArray[np.int64]:
    """The cluster of each row by average linkage: merged while the mean cosine is at least the threshold.

    >>> linked(np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], dtype=np.float32), 0.5).tolist()
    [0, 0, 1]
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist

    if len(features) < 2:
        return np.zeros(len(features), dtype=np.int64)
    tree = linkage(pdist(features.astype(np.float64), "cosine"), method="average")
    found = fcluster(tree, t=1 - threshold, criterion="distance")
    _, first, numbered = np.unique(found, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))  # clusters are numbered as they are met
    return np.asarray(order[numbered])


def _best_on_clusters(view: View) -> tuple[float, str]:
    """The threshold of the highest adjusted Rand index when train and val are clustered, and what it was chosen on."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist

    parts = [view.train] if view.val is None else [view.train, view.val]
    features = row_by_row(unit_rows, joined_rows([features_of(part) for part in parts]))
    truth = np.concatenate([truth_of(part) for part in parts])
    names, group = np.unique(np.concatenate([_groups(part) for part in parts]), return_inverse=True)
    trees = {}
    for number in range(len(names)):
        rows = np.flatnonzero(group == number)
        if len(rows) > 1:
            trees[number] = rows, linkage(pdist(features[rows].astype(np.float64), "cosine"), method="average")
    heights = np.concatenate([tree[:, 2] for _, tree in trees.values()])
    tried = np.unique(np.quantile(heights, np.linspace(0, 1, TRIED)))
    values = []
    for height in tried:
        cluster = np.arange(len(truth))
        for rows, tree in trees.values():
            cluster[rows] = fcluster(tree, t=height, criterion="distance")
        values.append(adjusted_rand(truth, cluster.astype(np.int32), group.astype(np.int32)))
    # Halfway to the next higher merge, so that rounding does not decide.
    place = int(np.argmax(values))
    height = (tried[place] + tried[min(place + 1, len(tried) - 1)]) / 2
    return float(1 - height), f"the clusters of {len(truth):,} photos of train and val"


def pairs_of(view: View) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The cosine of pairs of items in one dataset, and whether they have the same label.

    Pairs of val with each other and with train; of train with itself where there is no val.
    """
    parts = [view.train] if view.val is None else [view.val, view.train]
    features = row_by_row(unit_rows, joined_rows([features_of(part) for part in parts]))
    truth = np.concatenate([truth_of(part) for part in parts])
    group = np.concatenate([_groups(part) for part in parts])
    asked = np.arange(len(truth)) < len(parts[0])
    cosines, same = [], []
    for name in np.unique(group):
        rows = np.flatnonzero(group == name)
        for one, other in _pair_blocks(rows, asked, features.shape[1]):
            cosines.append(np.einsum("ij,ij->i", *(features[ends].astype(np.float64) for ends in (one, other))))
            same.append(truth[one] == truth[other])
    return np.concatenate(cosines), np.concatenate(same)


def _pair_blocks(
    rows: NDArray[np.int64], asked: NDArray[np.bool_], width: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """All pairs of rows with one that is asked about, as many at a time as their features need not much memory."""
    for block in matrix_blocks(len(rows), len(rows) * width):
        first, second = np.triu_indices(block.stop - block.start, 1 + block.start, len(rows))
        one, other = rows[first + block.start], rows[second]
        kept = asked[one] | asked[other]
        yield one[kept], other[kept]


def _groups(part: Part) -> NDArray[Any]:
    """The dataset of each item, where the release has several."""
    if GROUP not in part.items.columns:
        return np.full(len(part), "")
    return part.items[GROUP].fill_null("").to_numpy().astype(str)
