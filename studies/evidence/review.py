"""How many looks a list needs until 95 % of it are right by the audit's lower bound: least certain first, or at random.

`birds_cub_odd`: all photos are parted at random into half to learn from (a fifth of it for the penalty) and half to be
named, by species, ten times. A linear classifier on frozen features (EfficientNet-Lite0, 224 px) names the second half;
a person who always knows the species looks at one photo after the other and puts the name right. The stopping rule is
that of `fieldmark review`: 95 % of the finished list right, with a risk of 5 % over all looks at the bound. In the
random order every look counts for the bound; least certain first, only those drawn at random do, one in ten or one in
five. "Learning" fits the classifier again after every 500 looks, with what was looked at and not drawn at random.
"Without a bound" is how many looks it takes until the list is 95 % right, which nobody would know. The unit is the
draw of the halves: the draws share their photos.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.fitting import with_features
from fieldmark.fitting.configuration import configured_method
from fieldmark.identification.review.queue import Drawn, ReviewQueue
from fieldmark.methods.linear import Linear
from fieldmark.questions.targets import LabelTargets
from fieldmark.releases import open_dataset
from fieldmark.runs.label_scores import log_softmax
from fieldmark.stats.audits import StoppingRule
from fieldmark.stats.intervals import interval
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark.views.parts import Part, View
from studies.evidence.results import read_result, real_data, write_result

DRAWS, SHARE, RISK, LEARN_AFTER = 10, 0.95, 0.05, 500
# The name of each way to look: one look in how many is at random, and whether the model learns on the way.
WAYS: dict[str, tuple[int, bool]] = {
    "random order": (1, False),
    "least certain first, one in ten at random": (10, False),
    "least certain first, one in five at random": (5, False),
    "least certain first, one in ten at random, learning": (10, True),
}
Floats = NDArray[np.float32]
Codes = NDArray[np.int32]


@dataclass(frozen=True)
class Half:
    """The photos to be named: their features and species, and what there is to learn from."""

    view: View
    named: Part
    truth: Codes
    ids: tuple[str, ...]


def run() -> dict[str, Any] | None:
    """Looks and corrections of each way, draw by draw; draws that are done are not done again."""
    data = real_data("birds_cub_odd")
    if data is None:
        return None
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", data))
    view = with_features(opened, configured_method("linear", {}))
    assert view.val is not None and view.test is not None  # the folder has a test, and val is drawn
    test = replace(view.test, targets=LabelTargets(view.labels.encode(opened.items["test"]["label"])))
    photos = Part.concat([view.train, view.val, test])
    earlier = read_result("review") or {}
    rows: list[dict[str, Any]] = list(earlier.get("draws", []))
    for draw in range(len(rows), DRAWS):
        rows.append(_draw(draw, photos, view))
        print(draw, {way: row["looks"] for way, row in rows[-1]["ways"].items()}, flush=True)
        write_result("review", _summary(rows))
    return _summary(rows)


def _draw(draw: int, photos: Part, view: View) -> dict[str, Any]:
    half = _half(draw, photos, view)
    fitted = Linear().fit(half.view)
    first = log_softmax(fitted.method.scores(fitted.arrays, half.named))
    right = float((first.argmax(axis=1) == half.truth).mean())
    ways = {
        name: _look(half, first, fitted.method, one_in=one_in, learning=learning, seed=draw)
        for name, (one_in, learning) in WAYS.items()
    }
    return {"photos": len(half.ids), "right_before": round(right, 4), "l2": fitted.method.options["l2"], "ways": ways}


def _half(draw: int, photos: Part, view: View) -> Half:
    """Half of each species to learn from, half to be named."""
    assert photos.truth is not None  # all photos are labeled
    rng = np.random.default_rng(draw)
    role = np.zeros(len(photos), dtype=np.int64)
    for species in np.unique(photos.truth):
        own = rng.permutation(np.flatnonzero(photos.truth == species))
        role[own[: len(own) // 2]] = 1
        role[own[len(own) // 2 : len(own) // 2 + len(own) // 10]] = 2
    named = photos.take(role == 1)
    assert named.truth is not None  # as above
    learned = replace(view, train=photos.take(role == 0), val=photos.take(role == 2), test=None)
    return Half(learned, named.unlabeled(), named.truth, named.item_ids)


def _look(half: Half, first: Floats, method: Any, *, one_in: int, learning: bool, seed: int) -> dict[str, Any]:
    rule = StoppingRule(SHARE, RISK, len(half.ids), one_in)
    place = {one: row for row, one in enumerate(half.ids)}
    names, certainty = _answers(half, first)
    queue = ReviewQueue(certainty, seed=seed, one_in=one_in)
    looks, corrections, without_bound = 0, 0, None
    left = set(np.flatnonzero(names != half.truth).tolist())
    learn_at = LEARN_AFTER
    while (shown := queue.next()) is not None:
        entry, how = shown
        queue.note(entry, how)
        looks += 1
        corrections += bool(names[place[entry]] != half.truth[place[entry]])
        left.discard(place[entry])
        if without_bound is None and len(left) <= (1 - SHARE) * len(half.ids):
            without_bound = looks
        if how is Drawn.RANDOM and len(queue.drawn) in rule.looks:
            right = {one: bool(names[place[one]] == half.truth[place[one]]) for one in queue.drawn}
            audit = queue.audit(rule, right.__getitem__)
            if audit.share_right >= SHARE:
                break
        if learning and looks >= learn_at:
            learn_at += LEARN_AFTER
            names, certainty = _answers(half, _learned(half, method, queue, place))
            queue.reorder(certainty)
            seen = {place[one] for one in (*queue.reached, *queue.drawn)}
            left = set(np.flatnonzero(names != half.truth).tolist()) - seen
    return {
        "looks": looks,
        "corrections": corrections,
        "right_after": round(1 - len(left) / len(half.ids), 4),
        "without_bound": without_bound,
    }


def _answers(half: Half, scores: Floats) -> tuple[NDArray[np.int64], Mapping[str, float]]:
    best = scores.argmax(axis=1)
    return best, dict(zip(half.ids, scores.max(axis=1).tolist(), strict=True))


def _learned(half: Half, method: Any, queue: ReviewQueue, place: Mapping[str, int]) -> Floats:
    """The scores of a classifier that has learned from what was looked at and not drawn at random."""
    rows = np.array(sorted(place[one] for one in queue.reached if one not in queue.drawn), dtype=np.int64)
    checked = replace(half.named.take(rows), targets=LabelTargets(half.truth[rows]))
    assert half.view.val is not None  # drawn above
    train = Part.concat([half.view.train, half.view.val, checked])
    fitted = method.fit(replace(half.view, train=train, val=None))
    return log_softmax(fitted.method.scores(fitted.arrays, half.named))


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    ways: dict[str, Any] = {}
    for name in WAYS:
        own = [row["ways"][name] for row in rows]
        ways[name] = {
            key: _mean(np.array([float(one[key]) for one in own]))
            for key in ("looks", "corrections", "right_after", "without_bound")
        }
        ways[name]["below_the_share"] = sum(one["right_after"] < SHARE for one in own)
        plain = np.array([row["ways"]["random order"]["looks"] for row in rows], dtype=np.float64)
        ways[name]["looks_less_random_order"] = _mean(np.array([one["looks"] for one in own]) - plain)
    return {
        "simulated": False,
        "about": " ".join(str(__doc__).split("\n\n", 1)[1].split()),
        "share": SHARE,
        "photos": rows[0]["photos"],
        "right_before": _mean(np.array([row["right_before"] for row in rows])),
        "ways": ways,
        "draws": rows,
    }


def _mean(values: NDArray[np.float64]) -> list[float | None]:
    """The mean over draws with its interval."""
    mean = float(values.mean())
    if len(values) < 2:
        return [round(mean, 4), None, None]
    bounds = interval(mean, values, bounds=(-np.inf, np.inf))
    return [None if one is None else round(one, 4) for one in (mean, bounds.low, bounds.high)]
