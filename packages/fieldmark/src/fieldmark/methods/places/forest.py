"""Random forests for very many species, and forests of one species each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from fieldmark.methods.base import Arrays
from fieldmark.methods.places.base import OnPlaces, Ratios, as_odds
from fieldmark.methods.places.records import PlaceRecords, Points
from fieldmark.registry import require
from fieldmark.settings import setting
from fieldmark.work.progress import progress

LEAF = -1
Sampling = Literal["auto", "bootstrap", "down-sampled"]
SAMPLINGS: tuple[Sampling, ...] = ("auto", "bootstrap", "down-sampled")
# With more species than this, `auto` grows one forest for all of them.
MOST_FORESTS = 500
# Species are told apart by so many random directions where there are more species than this.
DIRECTIONS = 16


@dataclass(frozen=True, kw_only=True)
class RandomForest(OnPlaces):
    """Random forests (Breiman 2001).

    `bootstrap` grows one forest for all species. Trees are grown on random projections of the species (Joly, Geurts and
    Wehenkel 2014): a split that lowers the variance of 16 random directions lowers Gini impurity in expectation, and
    costs the same for ten species and for ten thousand. A leaf keeps the counts of the species that are in it and of no
    others, so that memory grows with the records and not with leaves x species.

    `down-sampled` grows a forest for each species, every tree on as many points of the background as of the species
    (Valavi et al. 2021), which is better where presences are few among many background points, and affordable for
    hundreds of species.

    Args:
        sampling: See above; auto is down-sampled for records of up to 500 species of which several may hold, where each
            is scored by itself, and bootstrap elsewhere.
        trees: How many trees a forest has.
        leaf: How many points a leaf has at least; 0 for 1 with down-sampled, and 5 with bootstrap.
        columns: The share of covariates that a split looks at; 0 for their square root.
        strength: How many points of each leaf look like all of train.
        least: With down-sampled, species with fewer places than this are as likely everywhere.
        most: With down-sampled, on how many places of a species a tree is grown at most.
    """

    sampling: Sampling = "auto"
    trees: int = setting(200, least=1)
    leaf: int = setting(0, least=0)
    columns: float = setting(0.0, least=0, most=1)
    strength: float = setting(1.0, above=0)
    least: int = setting(5, least=1)
    most: int = setting(500, least=1)

    added_settings: ClassVar[tuple[str, ...]] = ("most",)

    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "leaf": (0, 1, 5, 20),
        "columns": (0.0, 0.5),
    }

    def learn(self, records: PlaceRecords) -> tuple[RandomForest, Arrays]:
        method = self
        if self.sampling == "auto":
            each = self.several and not records.is_survey and records.n_labels <= MOST_FORESTS
            method = replace(self, sampling="down-sampled" if each else "bootstrap")
        if method.sampling == "down-sampled":
            return method, method._learn_each(records)
        return method, method._learn_all(records)

    def log_ratios(self, arrays: Arrays, points: Points) -> Ratios:
        if self.sampling == "down-sampled":
            return self._ratios_of_each(arrays, points)
        return self._ratios_of_all(arrays, points)

    @property
    def _growth(self) -> dict[str, Any]:
        usual = 1 if self.sampling == "down-sampled" else 5
        return {"min_samples_leaf": self.leaf or usual, "max_features": self.columns or "sqrt"}

    def _learn_all(self, records: PlaceRecords) -> Arrays:
        sklearn_tree: Any = require("sklearn.tree", "The method 'random-forest'")
        table, row, code, marked = _examples(records)
        n_codes = records.n_labels + int(marked)
        rng = np.random.default_rng(self.seed)
        directions = _directions(n_codes, rng)
        grown, leaf_counts = [], []
        first = 0
        with progress("growing trees", self.trees) as tick:
            for _ in range(self.trees):
                bag = rng.integers(0, len(table), len(table))
                targets, kept = _targets(bag, row, code, directions, len(table))
                seed = int(rng.integers(2**31))
                tree = sklearn_tree.DecisionTreeRegressor(**self._growth, random_state=seed)
                tree.fit(table[bag], targets)
                leaves = tree.apply(table[bag[kept[0]]]) + first
                leaf_counts.append(_counted(leaves, kept[1], n_codes))
                first += tree.tree_.node_count
                grown.append(_Bare(tree.tree_))
                tick(1)
        keys = np.concatenate([keys for keys, _ in leaf_counts])
        node, codes = np.divmod(keys, n_codes)
        return {
            **Trees.of(grown).arrays(),
            "leaf.offsets": np.concatenate([[0], np.cumsum(np.bincount(node, minlength=first))]).astype(np.int64),
            "leaf.codes": codes.astype(np.int32),
            "leaf.counts": np.concatenate([counts for _, counts in leaf_counts]).astype(np.float32),
            "share": (np.bincount(code, minlength=n_codes) + 0.5) / (len(code) + 0.5 * n_codes),
        }

    def _ratios_of_all(self, arrays: Arrays, points: Points) -> Ratios:
        trees, share = Trees.from_arrays(arrays), arrays["share"]
        offsets, codes, counts = (arrays[f"leaf.{name}"] for name in ("offsets", "codes", "counts"))
        sums = np.concatenate([[0.0], np.cumsum(counts, dtype=np.float64)])
        probability = np.zeros((len(points), len(share)))
        borrowed = np.zeros(len(points))
        for number in range(len(trees)):
            leaf = trees.leaves(number, points.table)
            size = sums[offsets[leaf + 1]] - sums[offsets[leaf]] + self.strength
            lengths = offsets[leaf + 1] - offsets[leaf]
            item = np.repeat(np.arange(len(points)), lengths)
            entry = np.arange(len(item)) + np.repeat(offsets[leaf] - (np.cumsum(lengths) - lengths), lengths)
            np.add.at(probability, (item, codes[entry]), counts[entry] / size[item])
            borrowed += self.strength / size
        probability += borrowed[:, None] * share
        ratios = np.log(probability / (len(trees) * share))
        if len(share) > len(arrays["log_prior"]):  # the last one is what species are set against
            ratios = ratios[:, :-1] - ratios[:, -1:]
        return as_odds(arrays, ratios).astype(np.float32)

    def _learn_each(self, records: PlaceRecords) -> Arrays:
        sklearn_tree: Any = require("sklearn.tree", "The method 'random-forest'")
        rng = np.random.default_rng(self.seed)
        species = np.flatnonzero(records.counts >= self.least)
        grown, chances = [], [np.zeros(0, dtype=np.float32)]
        with progress("growing forests", len(species)) as tick:
            for code in species:
                present, others = records.of_species(int(code))
                drawn = min(len(present), self.most)
                truth = np.repeat([True, False], drawn)
                for _ in range(self.trees):
                    own = present[rng.integers(0, len(present), drawn)]
                    against = others[rng.integers(0, len(others), drawn)]
                    seed = int(rng.integers(2**31))
                    tree = sklearn_tree.DecisionTreeClassifier(**self._growth, random_state=seed)
                    tree.fit(np.concatenate([own, against]), truth)
                    grown.append(_Bare(tree.tree_))
                    chances.append(tree.tree_.value[:, 0, 1].astype(np.float32))
                tick(1)
        return {**Trees.of(grown).arrays(), "species": species, "chance": np.concatenate(chances)}

    def _ratios_of_each(self, arrays: Arrays, points: Points) -> Ratios:
        trees, chance = Trees.from_arrays(arrays), arrays["chance"]
        ratios = np.zeros((len(points), len(arrays["log_prior"])), dtype=np.float32)
        for place, code in enumerate(arrays["species"]):
            total = np.zeros(len(points))
            for number in range(place * self.trees, (place + 1) * self.trees):
                total += chance[trees.leaves(number, points.table)]
            floor = 0.5 / self.trees
            ratios[:, code] = logit(np.clip(total / self.trees, floor, 1 - floor))
        return ratios


@dataclass(frozen=True)
class _Bare:
    """A grown tree without the estimator around it."""

    tree_: Any


def _examples(records: PlaceRecords) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64], bool]:
    """Points with the codes found there, and whether one further code marks what species are set against.

    That is each background point, or for a survey each place, so that counts become shares of places.
    """
    table, row, code = records.points.table, records.row, records.code.astype(np.int64)
    background = records.background
    if background is not None and not records.against_background:
        return table, row, code, False
    marked = np.arange(len(table))
    if background is not None:
        marked = np.arange(len(table), len(table) + len(background))
        table = np.concatenate([table, background.table])
    further = np.full(len(marked), records.n_labels)
    return table, np.concatenate([row, marked]), np.concatenate([code, further]), True


def _directions(n_codes: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """What stands for each species as a tree is grown: itself where there are few, else random signs."""
    if n_codes <= DIRECTIONS:
        return np.eye(n_codes, dtype=np.float32)
    return np.asarray(rng.choice([-1.0, 1.0], (n_codes, DIRECTIONS)) / np.sqrt(DIRECTIONS), dtype=np.float32)


def _targets(
    bag: NDArray[np.int64],
    row: NDArray[np.int64],
    code: NDArray[np.int64],
    directions: NDArray[np.float32],
    n_points: int,
) -> tuple[NDArray[np.float32], tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The sum of directions of what was found at each point of a bag, and its finds as (place in the bag, code)."""
    order = np.argsort(row, kind="stable")
    counts = np.bincount(row, minlength=n_points)
    begin = np.cumsum(counts) - counts
    lengths = counts[bag]
    place = np.repeat(np.arange(len(bag)), lengths)
    find = order[np.arange(len(place)) + np.repeat(begin[bag] - (np.cumsum(lengths) - lengths), lengths)]
    codes = code[find]
    if (lengths == 1).all():
        return directions[codes], (place, codes)
    targets = np.zeros((len(bag), directions.shape[1]), dtype=np.float32)
    np.add.at(targets, place, directions[codes])
    return targets, (place, codes)


def _counted(
    leaves: NDArray[np.int64], codes: NDArray[np.int64], n_codes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Leaf and code of what is in a tree as one number each, in order, and how often each is there."""
    return np.unique(leaves.astype(np.int64) * n_codes + codes, return_counts=True)


@dataclass(frozen=True)
class Trees:
    """Trees as flat arrays, which are saved without code and answer without the library that grew them.

    They stand one after the other; nodes of all of them have numbers of their own.

    Args:
        roots: The first node of each tree.
        feature: The column that a node asks about; -1 for a leaf.
        threshold: Rows with a value up to this go left.
        left: The next node on the left.
        right: The next node on the right.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.roots)

    @classmethod
    def of(cls, grown: Sequence[Any]) -> Trees:
        """The trees that scikit-learn grew."""
        sizes = [tree.tree_.node_count for tree in grown]
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64) if sizes else np.zeros(0, dtype=np.int64)
        feature = [np.maximum(tree.tree_.feature, LEAF).astype(np.int32) for tree in grown]
        left, right = (
            [
                (np.where(ids >= 0, ids + root, LEAF)).astype(np.int32)
                for tree, root in zip(grown, roots, strict=True)
                for ids in [getattr(tree.tree_, f"children_{side}")]
            ]
            for side in ("left", "right")
        )
        threshold = [tree.tree_.threshold for tree in grown]
        return cls(roots, *(np.concatenate(column) for column in (feature, threshold, left, right)))

    def leaves(self, tree: int, table: NDArray[np.float32]) -> NDArray[np.int64]:
        """The leaf in which each row ends."""
        node = np.full(len(table), self.roots[tree], dtype=np.int64)
        going = np.arange(len(table))
        while len(going):
            at = node[going]
            inner = self.feature[at] != LEAF
            going, at = going[inner], at[inner]
            goes_left = table[going, self.feature[at]] <= self.threshold[at]
            node[going] = np.where(goes_left, self.left[at], self.right[at])
        return node

    def arrays(self, prefix: str = "trees.") -> Arrays:
        """Everything, to be saved."""
        names = ("roots", "feature", "threshold", "left", "right")
        return {f"{prefix}{name}": getattr(self, name) for name in names}

    @classmethod
    def from_arrays(cls, arrays: Arrays, prefix: str = "trees.") -> Trees:
        """From what `arrays` made."""
        return cls(*(arrays[f"{prefix}{name}"] for name in ("roots", "feature", "threshold", "left", "right")))
