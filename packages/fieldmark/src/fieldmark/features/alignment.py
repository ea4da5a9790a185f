"""Two domains laid over each other: the space of both, prototypes of labels in it, and how settings are chosen.

It takes arrays alone, so that networks that were trained elsewhere can be judged by it as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldmark.work.large_arrays import column_products, kept_rows, matrix_blocks, row_by_row

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]
WAYS = ("mean", "covariance", "subspace", "map")
# Of how many axes of a domain its subspace consists, at most.
SUBSPACE = 80
# How much a plant that was photographed and pressed counts beside a label with both domains, when the map is fitted.
PAIR_WEIGHT = 0.5
FOLDS = 5
KEEP = 0.9
# A plant of a species is held out in each inner fold where the species has at least so many.
PLANTS_TO_SPARE = 2
SHRINKAGES, STRENGTHS, RELATIVES = (0.25, 0.5, 0.9), (0.3, 3.0, 30.0), (0.0, 0.3, 0.6)
BIASES = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.14, 0.16, 0.2, 0.25, 0.3)


@dataclass(frozen=True)
class Ways:
    """How prototypes are moved; see `methods.align.Align`."""

    by: str = "map"
    shrinkage: float = 0.5
    strength: float = 3.0
    relatives: float = 0.3
    pairs: bool = True


@dataclass(frozen=True)
class Choice:
    """What leaving species out has chosen.

    Args:
        ways: How prototypes are moved.
        bias: What labels without field photos get on top.
        curve: For these ways, one row for each bias: bias, mean reciprocal rank of unseen and of seen labels. Empty
            where there was nothing to choose, or too little to choose by.
    """

    ways: Ways
    bias: float
    curve: Floats


@dataclass(frozen=True)
class TwoDomains:
    """What an alignment is learned from.

    Args:
        features: One row per item.
        labels: The label of each.
        field: Whether it is in the domain that is asked about.
        observation: The plant it shows, by number.
        paired: Rows outside the field, and rows of the same plants in it.
        n_labels: How many labels there are.
        relatives: For genus and family, as far as known, the taxon of each label; -1 for none.
    """

    features: Floats
    labels: NDArray[np.int32]
    field: Flags
    observation: Codes
    paired: tuple[Codes, Codes]
    n_labels: int
    relatives: tuple[Codes, ...]

    @cached_property
    def photographed(self) -> Flags:
        """Which labels have items in the field."""
        return np.bincount(self.labels[self.field], minlength=self.n_labels) > 0

    @cached_property
    def pressed(self) -> Flags:
        """Which labels have items elsewhere."""
        return np.bincount(self.labels[~self.field], minlength=self.n_labels) > 0

    def without(self, items: Flags) -> TwoDomains:
        """The lesson without some items."""
        place = np.cumsum(~items) - 1
        kept = ~items[self.paired[0]] & ~items[self.paired[1]]
        pairs = place[self.paired[0][kept]], place[self.paired[1][kept]]
        rows = ~items
        return TwoDomains(
            kept_rows(self.features, rows),
            self.labels[rows],
            self.field[rows],
            self.observation[rows],
            pairs,
            self.n_labels,
            self.relatives,
        )

    def one_plant_each(self, fold: int, least: int) -> Flags:
        """The items of one plant in the field of each label that has at least so many, another one for each fold."""
        held_out = np.zeros(len(self.labels), dtype=np.bool_)
        for label in np.flatnonzero(self.photographed):
            own = self.field & (self.labels == label)
            plants = np.unique(self.observation[own])
            if len(plants) >= least:
                held_out |= own & (self.observation == plants[fold % len(plants)])
        return held_out


@dataclass(frozen=True)
class AlignedClasses:
    """Prototypes in the aligned space.

    Args:
        field_mean, field_matrix: What takes features of the field there.
        sheets: The moved prototype of each label on sheets, at unit length; zeros for one without.
        photos: That of its field photos; zeros for one without.
    """

    field_mean: Floats
    field_matrix: Floats
    sheets: Floats
    photos: Floats

    def in_field(self, features: Floats) -> Floats:
        """Features of the field in the aligned space, at unit length."""
        return unit((features - self.field_mean) @ self.field_matrix)

    def prototypes(self, field_share: float) -> Floats:
        """One prototype for each label: of sheets, of field photos, or mixed where there are both."""
        has = np.abs(self.photos).sum(axis=1) > 0
        pressed = np.abs(self.sheets).sum(axis=1) > 0
        share = np.where(has & pressed, field_share, has.astype(np.float64))[:, None]
        return unit((1 - share) * self.sheets + share * self.photos)


def align_classes(lesson: TwoDomains, ways: Ways) -> AlignedClasses:
    """Lays the domains over each other and moves the prototypes of the sheets."""
    return _moved(lesson, _overlay(lesson, ways.by, ways.shrinkage), ways)


class _Overlaid(NamedTuple):
    """Items in the aligned space, and the prototypes before they are moved; the costly part, shared by many ways."""

    items: Floats
    classes: AlignedClasses


def _overlay(lesson: TwoDomains, by: str, shrinkage: float) -> _Overlaid:
    field, labels = lesson.field, lesson.labels
    sheet_mean, field_mean = (_balanced_mean(lesson, rows) for rows in (~field, field))

    def centered(rows: Floats, in_field: Flags) -> Floats:
        return np.where(in_field[:, None], rows - field_mean, rows - sheet_mean)

    whitening = _whitening(lesson, row_by_row(centered, lesson.features, field), shrinkage)
    moved = row_by_row(lambda *some: centered(*some) @ whitening, lesson.features, field)
    sheet_turn = field_turn = np.eye(moved.shape[1])
    if by == "covariance":
        sheet_turn = _recolored(moved[~field], moved[field])
    elif by == "subspace":
        sheet_turn, field_turn = _turned(moved[~field], moved[field])

    def turned(rows: Floats, in_field: Flags) -> Floats:
        result = np.empty((len(rows), field_turn.shape[1]))
        result[in_field], result[~in_field] = rows[in_field] @ field_turn, rows[~in_field] @ sheet_turn
        return unit(result)

    items = row_by_row(turned, moved, field)
    sheets, photos = (unit(_means(items, labels, lesson.n_labels, rows)) for rows in (~field, field))
    return _Overlaid(items, AlignedClasses(field_mean, whitening @ field_turn, sheets, photos))


def _moved(lesson: TwoDomains, overlaid: _Overlaid, ways: Ways) -> AlignedClasses:
    sheets, photos = overlaid.classes.sheets, overlaid.classes.photos
    both = lesson.photographed & lesson.pressed
    if ways.by == "map" and both.any():
        sheets = _mapped(lesson, ways, overlaid.items, sheets, photos, both)
    if ways.relatives:
        sheets = _following(lesson, ways.relatives, sheets, photos, both)
    return replace(overlaid.classes, sheets=sheets)


def unit(rows: Floats) -> Floats:
    """Rows at unit length; rows of zeros stay."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))


def _means(features: Floats, labels: NDArray[np.integer], n_labels: int, kept: Flags | None = None) -> Floats:
    """The mean of each label, over the rows that are kept."""
    sums, counts = np.zeros((n_labels, features.shape[1])), np.zeros(n_labels)
    for block in matrix_blocks(*features.shape):
        own = slice(None) if kept is None else kept[block]
        np.add.at(sums, labels[block][own], features[block][own])
        np.add.at(counts, labels[block][own], 1)
    return np.asarray(sums / np.maximum(counts, 1)[:, None])


def _balanced_mean(lesson: TwoDomains, rows: Flags) -> Floats:
    """The mean of the labels' means, so that a label with many items does not pull the domain to itself."""
    means = _means(lesson.features, lesson.labels, lesson.n_labels, rows)
    return np.asarray(means[np.unique(lesson.labels[rows])].mean(axis=0))


def _whitening(lesson: TwoDomains, centered: Floats, shrinkage: float) -> Floats:
    """What makes the shrunk covariance within labels and domains a ball."""
    group = lesson.labels.astype(np.int64) + lesson.n_labels * lesson.field
    means = _means(centered, group, 2 * lesson.n_labels)
    within = (centered[block] - means[group[block]] for block in matrix_blocks(*centered.shape))
    covariance = column_products(within, centered.shape[1]) / len(centered)
    average = max(float(np.trace(covariance)) / len(covariance), 1e-12)
    return _power((1 - shrinkage) * covariance + shrinkage * average * np.eye(len(covariance)), -0.5)


def _power(matrix: Floats, exponent: float) -> Floats:
    values, axes = np.linalg.eigh(matrix)
    return np.asarray((axes * np.maximum(values, 1e-12) ** exponent) @ axes.T)


def _recolored(sheets: Floats, photos: Floats) -> Floats:
    """CORAL (Sun et al. 2016): takes the covariance from the sheets and gives them that of the field."""

    def covariance(rows: Floats) -> Floats:
        own = rows.T @ rows / len(rows)
        return np.asarray(0.5 * own + 0.5 * np.trace(own) / len(own) * np.eye(len(own)))

    return np.asarray(_power(covariance(sheets), -0.5) @ _power(covariance(photos), 0.5))


def _turned(sheets: Floats, photos: Floats) -> tuple[Floats, Floats]:
    """Subspace alignment (Fernando et al. 2013): the axes of the sheets are turned to those of the field."""
    most = min(SUBSPACE, len(sheets), len(photos), sheets.shape[1])
    sheet_axes, field_axes = (np.linalg.svd(rows, full_matrices=False)[2][:most].T for rows in (sheets, photos))
    return np.asarray(sheet_axes @ (sheet_axes.T @ field_axes)), np.asarray(field_axes)


def _mapped(lesson: TwoDomains, ways: Ways, aligned: Floats, sheets: Floats, photos: Floats, both: Flags) -> Floats:
    """Prototypes moved by ridge regression from sheet to field, learned from labels and plants with both."""
    start, end, weight = sheets[both], photos[both], np.ones(int(both.sum()))
    if ways.pairs and len(lesson.paired[0]):
        pressed, photographed = (aligned[rows] for rows in lesson.paired)
        start, end = np.concatenate([start, pressed]), np.concatenate([end, photographed])
        weight = np.concatenate([weight, np.full(len(pressed), PAIR_WEIGHT)])
    root = np.sqrt(weight)[:, None]
    rows, targets = start * root, (end - start) * root
    gram = rows @ rows.T
    penalty = ways.strength * float(np.trace(gram)) / len(gram)
    learned = rows.T @ np.linalg.solve(gram + penalty * np.eye(len(gram)), targets)
    return unit(sheets + sheets @ learned)


def _following(lesson: TwoDomains, share: float, sheets: Floats, photos: Floats, both: Flags) -> Floats:
    """Prototypes of labels without field photos, which follow their nearest relatives that have some."""
    ways_moved = photos - sheets
    followed = sheets.copy()
    for label in np.flatnonzero(lesson.pressed & ~lesson.photographed):
        for taxon in lesson.relatives:
            relatives = both & (taxon == taxon[label]) & (taxon[label] >= 0)
            if relatives.any():
                followed[label] += share * ways_moved[relatives].mean(axis=0)
                break
    return unit(followed)


def choose_ways(
    lesson: TwoDomains,
    candidates: Sequence[Ways],
    field_share: float,
    biases: Sequence[float] = BIASES,
    keep: float = KEEP,
) -> Choice:
    """Chooses by leaving species out: the best for unseen labels among what keeps enough for seen ones.

    In each of five folds the field photos of every fifth label with both domains are hidden, and one plant of each of
    the others is held out. Both are measured by the mean reciprocal rank, averaged over labels.

    Args:
        lesson: What there is to learn from.
        candidates: The ways that are tried.
        biases: The biases that are tried with each.
        field_share: See `AlignedClasses.prototypes`.
        keep: The share of the best that is reached for seen labels which must be kept.
    """
    settled = len(candidates) == 1 and len(biases) == 1
    if settled or int((lesson.photographed & lesson.pressed).sum()) < FOLDS:
        return Choice(candidates[len(candidates) // 2], biases[len(biases) // 3], np.zeros((0, 3)))
    reached = np.mean([_judged(lesson, fold, candidates, field_share, biases) for fold in range(FOLDS)], axis=0)
    unseen, seen = reached[..., 0], reached[..., 1]
    allowed = np.where(seen >= keep * seen.max(), unseen, -1.0)
    best, raised = (int(place) for place in np.unravel_index(int(allowed.argmax()), allowed.shape))
    return Choice(candidates[best], float(biases[raised]), np.column_stack([biases, reached[best]]))


def _judged(
    lesson: TwoDomains, fold: int, candidates: Sequence[Ways], field_share: float, biases: Sequence[float]
) -> Floats:
    """How candidates do in one fold: (candidates, biases, unseen and seen)."""
    species = np.flatnonzero(lesson.photographed & lesson.pressed)
    unseen = np.isin(lesson.labels, species[fold::FOLDS]) & lesson.field
    seen = lesson.one_plant_each(fold, PLANTS_TO_SPARE) & ~unseen
    rest = lesson.without(unseen | seen)
    reached = np.zeros((len(candidates), len(biases), 2))
    overlaid = {kind: _overlay(rest, *kind) for kind in {(ways.by, ways.shrinkage) for ways in candidates}}
    for number, ways in enumerate(candidates):
        classes = _moved(rest, overlaid[ways.by, ways.shrinkage], ways)
        prototypes, raised = classes.prototypes(field_share), ~rest.photographed
        for side, rows in enumerate((unseen, seen)):
            cosines = classes.in_field(lesson.features[rows]) @ prototypes.T
            for place, bias in enumerate(biases):
                reached[number, place, side] = rank_by_label(cosines + bias * raised, lesson.labels[rows])
    return reached


def rank_by_label(scores: Floats, labels: NDArray[np.integer]) -> float:
    """The mean reciprocal rank of each label's items, averaged over labels; 0 without any."""
    if not len(labels):
        return 0.0
    own = scores[np.arange(len(labels)), labels]
    reciprocal = 1 / (1 + (scores > own[:, None]).sum(axis=1))
    place = np.unique(labels, return_inverse=True)[1]
    return float((np.bincount(place, weights=reciprocal) / np.bincount(place)).mean())


def principal_axes(
    rows: NDArray[np.floating], most: int, prepare: Callable[[NDArray[np.floating]], Floats] = np.asarray
) -> Floats:
    """The axes along which unit-length features are longest, one column each.

    Args:
        rows: Features, of which there may be more than fit into memory.
        most: How many axes are kept.
        prepare: What brings some rows to unit length, where they are not.
    """
    if len(rows) <= rows.shape[1]:
        return np.asarray(np.linalg.svd(prepare(rows), full_matrices=False)[2][:most].T)
    blocks = (prepare(rows[block]) for block in matrix_blocks(*rows.shape))
    return np.asarray(np.linalg.eigh(column_products(blocks, rows.shape[1]))[1][:, ::-1][:, :most])
