"""Learning the guide of a model from val, once its steps are fitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.models.guides.conformal import ConformalSets, calibrate, check_by_halves
from fieldmark.models.guides.contexts import contexts_of, without_contexts
from fieldmark.models.guides.dangers import dangerous_labels, draw_line
from fieldmark.models.guides.guide import Guide, KeptPhotos, ValRecord, context_key
from fieldmark.models.guides.living_groups import groups_of
from fieldmark.models.guides.novelty import evenly, learn_strangers, neighbor_distances
from fieldmark.models.guides.rollup import learn_roll_up
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.base import Step
from fieldmark.steps.costs import Prices
from fieldmark.steps.min_cost import MinCost
from fieldmark.steps.pooling import pool
from fieldmark.tables.labels import Labels
from fieldmark.tables.media import PHOTO
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part

# Probabilities of val are kept for recalibration where there are at most so many.
MOST_RECORDED = 4_000_000
# So many probabilities are held at once: of a larger val a part is drawn, whole observations at a time.
MOST_HELD = 20_000_000
# With more contexts than this, sets are calibrated with all of them and with none only.
MOST_CONTEXTS = 3

Floats = NDArray[np.float64]


class AnsweredVal(NamedTuple):
    """Val as it was answered.

    Args:
        part: Its items with their labels, and with features where the method has some.
        raw: What the method said.
        apply: Applies all steps to what the method said, for items with the given columns.
    """

    part: Part
    raw: LabelScores
    apply: Callable[[LabelScores, pl.DataFrame], LabelScores]


def learn_guide(
    labels: Labels,
    taxa: pl.DataFrame,
    steps: Sequence[Step],
    train: Part,
    val: AnsweredVal,
    root: str = "",
    paths: Mapping[str, str] | None = None,
) -> Guide | None:
    """The guide of a model that gives one label to each item; None for all others.

    Args:
        labels: What it can answer.
        taxa: What is known about the labels.
        steps: Its steps, fitted.
        train: What it learned from, with features where it has some.
        val: What its lines are drawn on.
        root: Where the release lies, to find training photos again.
        paths: Where in it each of them lies, by the id of the photo.
    """
    if val.part.targets is None or train.targets is None or val.part.targets.shape != "codes":
        return None
    if not val.raw.dense:
        return None
    val = _some(val, len(labels))
    final = val.apply(val.raw, val.part.items)
    if not isinstance(final, LabelScores) or not final.dense or final.scale == "score":
        return None
    assert val.part.targets is not None  # checked above
    taxonomy = Taxonomy.of(labels, taxa)
    unit = _units(val.part.items)
    first = np.unique(unit, return_index=True)[1]
    truth = val.part.targets.codes[first]
    chances = pooled(final, unit)
    known = truth >= 0
    if not known.any():
        return None
    counts = _counts(train, len(labels))
    kept, distance = _neighbors(train, val.part, unit)
    strangers = learn_strangers(
        None if distance is None else distance[known],
        1 - chances[known].max(axis=1),
        None if distance is None else _features(train)[kept],
    )
    dangerous = dangerous_labels(labels, taxa, groups_of(labels, taxa))
    danger = draw_line(chances[:, dangerous].sum(axis=1), known & dangerous[truth], _prices(steps))
    conformal = _conformal(steps, val, unit, truth, counts)
    few = chances.size <= MOST_RECORDED
    record = ValRecord(chances[known].astype(np.float16), truth[known].astype(np.int32)) if few else ValRecord()
    photos = KeptPhotos() if distance is None else _photos(train, kept, root, paths or {})
    return Guide(learn_roll_up(chances, truth, taxonomy), strangers, danger, conformal, counts, photos, record)


def _some(val: AnsweredVal, n_labels: int) -> AnsweredVal:
    """Val, or as many of its observations as may be held at once."""
    unit = _units(val.part.items)
    most = max(MOST_HELD // max(n_labels, 1), 1)
    if len(unit) <= most:
        return val
    order = np.random.default_rng(0).permutation(int(unit.max()) + 1)
    photos = np.bincount(unit)[order].cumsum()
    rows = np.flatnonzero(np.isin(unit, order[photos <= most]))
    part = val.part.take(rows)
    return AnsweredVal(part, val.raw.select(part.item_ids), val.apply)


def pooled(predictions: LabelScores, unit: NDArray[np.int64]) -> Floats:
    """The probabilities of labels for each observation: the mean of the log-probabilities of its photos."""
    return np.exp(pool(predictions, unit, "mean").astype(np.float64))[:, : len(predictions.labels)]


def _units(items: pl.DataFrame) -> NDArray[np.int64]:
    return np.unique(items["observation_id"].to_numpy(), return_inverse=True)[1].astype(np.int64)


def _counts(train: Part, n_labels: int) -> NDArray[np.int64]:
    """How many observations of train each label has."""
    assert train.targets is not None  # checked before
    table = pl.DataFrame({"unit": train.items["observation_id"], "code": train.targets.codes}).unique()
    codes = table["code"].to_numpy()
    return np.bincount(codes[codes >= 0], minlength=n_labels).astype(np.int64)


def _features(part: Part) -> NDArray[np.float32]:
    """The features of the media of a part; without columns where it has none, or those of other inputs alone."""
    medium = part.media.medium if part.media is not None else PHOTO
    return part.features.get(medium.name, np.zeros((len(part), 0), np.float32))


def _neighbors(train: Part, val: Part, unit: NDArray[np.int64]) -> tuple[NDArray[np.int64], Floats | None]:
    """Which rows of train are kept, and how far from them each observation of val lies; None without features."""
    assert train.targets is not None  # checked before
    kept = np.flatnonzero(train.targets.codes >= 0)
    features, asked = _features(train), _features(val)
    if not features.shape[1] or not asked.shape[1] or not len(kept):
        return np.zeros(0, np.int64), None
    kept = kept[evenly(train.targets.codes[kept])]
    distance = neighbor_distances(asked, features if len(kept) == len(features) else features[kept])
    return kept, np.bincount(unit, weights=distance) / np.bincount(unit)


def _photos(train: Part, kept: NDArray[np.int64], root: str, where: Mapping[str, str]) -> KeptPhotos:
    assert train.targets is not None  # checked before
    paths: list[str] = []
    for media in train.items["media_ids"][kept.tolist()].to_list():
        paths.append(where.get(media[0], "") if media else "")
    return KeptPhotos(root, tuple(paths), train.targets.codes[kept].astype(np.int32))


def _prices(steps: Sequence[Step]) -> Prices | None:
    own = next((step for step in steps if isinstance(step, MinCost)), None)
    return None if own is None else Prices(own.c_p, own.c_e, own.c_u, own.c_k)


def _conformal(
    steps: Sequence[Step], val: AnsweredVal, unit: NDArray[np.int64], truth: NDArray[Any], counts: NDArray[np.int64]
) -> Mapping[str, ConformalSets]:
    """The lines for each choice of contexts that a person may give."""
    contexts = contexts_of(steps)
    sizes = range(len(contexts) + 1) if len(contexts) <= MOST_CONTEXTS else (0, len(contexts))
    known, found = truth >= 0, {}
    for size in sizes:
        for given in combinations(contexts, size):
            items = without_contexts(val.part.items, [name for name in contexts if name not in given])
            chances = pooled(val.apply(val.raw, items), unit)[known]
            sets = calibrate(chances, truth[known], counts)
            if sets is not None:
                checked = check_by_halves(chances, truth[known], counts)
                found[context_key(given)] = _with_check(sets, checked)
    return found


def _with_check(sets: ConformalSets, checked: Mapping[str, Any] | None) -> ConformalSets:
    return ConformalSets(sets.upper, sets.lines, sets.calibrated_on, sets.coverage, checked)
