"""Real birds with a long-tailed test: before and after each way to tell frequencies from the answers.

`birds_cub_odd`: a linear classifier on features of its training photos, val drawn from train as the benchmark `folder`
does, calibrated there by `bias-temperature`. Test is thinned out without replacement: with species in an order drawn
with the seed, species k of 100 keeps the share 100^(-k/99) of its photos, at least one. Ten seeds give ten orders.
For `prior-online` the photos come in a random order, ten a day. On val, which has no time and no shift, its settings
cannot be chosen; it is shown with half_life=never and strength=1, fixed beforehand, and with its choice on val in the
same random order. "True frequencies" is what the right prior would give. The unit is the seed: intervals are for other
orders of the species, on these photos.
"""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.fitting import with_features
from fieldmark.fitting.configuration import configured_method
from fieldmark.fitting.fit_part import fit_steps
from fieldmark.methods.linear import Linear
from fieldmark.releases import open_dataset
from fieldmark.runs.label_scores import LabelScores
from fieldmark.stats.prior_shift import reweighted
from fieldmark.steps import make_step
from fieldmark.steps.base import Lesson, Step, apply_step, fit_step
from fieldmark.steps.past import PastStep
from fieldmark.steps.prior_shift import FromSource, OnTestSet
from fieldmark.tables.labels import Labels
from fieldmark.views.open_benchmark import Opened, open_benchmark
from fieldmark.views.parts import Part, View
from studies.evidence.pairing import compared
from studies.evidence.results import real_data

SEEDS, IMBALANCE, A_DAY = range(10), 100.0, 10
PLAIN, TRUE = "not adapted", "true frequencies"
STEPS = (
    "prior-em",
    "prior-map",
    "prior-map:toward=flat",
    "prior-confusion",
    "prior-confusion:solve=bbse",
    "prior-online",
    "prior-online:half_life=never,strength=1",
)
FIRST_DAY = datetime.date(2000, 1, 1)
Codes = NDArray[np.int64]


def run() -> dict[str, Any] | None:
    """Top-1, macro-F1 over the species that are there, and log loss, and how far the estimated frequencies are off."""
    data = real_data("birds_cub_odd")
    if data is None:
        return None
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", data))
    view = with_features(opened, configured_method("linear", {"size": 160}))
    assert view.val is not None and view.test is not None  # the folder has a test, and val is drawn
    fitted = Linear().fit(replace(view, test=None))
    lesson = _lesson(opened, view)
    calibrated, val = fit_steps([make_step("bias-temperature")], fitted.predict(view.val, view.labels), lesson)
    test = apply_step(calibrated[0], fitted.predict(view.test, view.labels), view.test.items)
    truth = _codes(opened, view.test.item_ids, view.labels)
    steps = {name: fit_step(make_step(name), val, lesson) for name in STEPS}
    rows = [_draw(seed, test, truth, steps) for seed in SEEDS]
    result: dict[str, Any] = {
        "simulated": False,
        "about": " ".join(str(__doc__).split("\n\n", 1)[1].split()),
        "photos": [int(row["photos"]) for row in rows],
        "labels": len(view.labels),
    }
    for metric, up in (("top_1", True), ("macro_f1_present", True), ("log_loss", False), ("off_by", False)):
        values = {name: np.array([row[metric][name] for row in rows]) for name in rows[0][metric]}
        result[metric] = compared(values, np.arange(len(rows)), PLAIN, key="less_plain", higher_is_better=up)
    print({metric: {k: v["value"] for k, v in result[metric].items()} for metric in ("top_1", "log_loss", "off_by")})
    return result


def _lesson(opened: Opened, view: View) -> Lesson:
    """What steps learn from; val has dates in a random order, ten photos a day."""
    assert view.val is not None  # the folder draws one
    items = _dated(view.val.items, np.random.default_rng(0))
    val = Part(items, view.val.targets)
    return Lesson(BENCHMARKS["fungitastic/closed"].task, view.labels, opened.dataset.taxa, val, view.train)


def _dated(items: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    place = rng.permutation(len(items)) // A_DAY
    dates = [FIRST_DAY + datetime.timedelta(days=int(day)) for day in place]
    return items.with_columns(pl.Series("date", dates))


def _codes(opened: Opened, items: tuple[str, ...], labels: Labels) -> Codes:
    label_of = dict(opened.items["test"].select("item_id", "label").iter_rows())
    return labels.encode([label_of[item] for item in items]).astype(np.int64)


def _draw(seed: int, test: LabelScores, truth: Codes, steps: dict[str, Step]) -> dict[str, Any]:
    """One long tail, answered in every way."""
    rng = np.random.default_rng(seed)
    number = len(test.labels)
    place = rng.permutation(number)
    kept = []
    for label in range(number):
        own = rng.permutation(np.flatnonzero(truth == label))
        kept.append(own[: max(round(len(own) * IMBALANCE ** (-place[label] / (number - 1))), 1)])
    rows = rng.permutation(np.concatenate(kept)).astype(np.int64)
    asked, true = test.take(rows), truth[rows]
    items = _dated(pl.DataFrame({"item_id": asked.items}), rng)
    shares = np.bincount(true, minlength=number) / len(true)
    source = next(step for step in steps.values() if isinstance(step, FromSource)).source
    answers = {PLAIN: asked}
    estimates = {PLAIN: asked.probabilities().mean(axis=0)}
    for name, step in steps.items():
        answers[name] = step.apply(asked, items)
        if isinstance(step, OnTestSet):
            estimates[name] = step.prior(asked)
        elif isinstance(step, PastStep):
            estimates[name] = answers[name].probabilities().mean(axis=0)
    with np.errstate(divide="ignore"):
        right = reweighted(asked.scores.astype(np.float64), np.log(shares) - np.log(source))
    answers[TRUE] = asked.with_scores(right, "log_probability")
    return {
        "photos": len(rows),
        "top_1": {name: float((one.top(1)[:, 0] == true).mean()) for name, one in answers.items()},
        "macro_f1_present": {name: _macro_f1(one.top(1)[:, 0], true) for name, one in answers.items()},
        "log_loss": {name: _log_loss(one, true) for name, one in answers.items()},
        "off_by": {name: float(np.abs(one - shares).sum() / 2) for name, one in estimates.items()},
    }


def _macro_f1(answered: NDArray[Any], true: Codes) -> float:
    scores = []
    for label in np.unique(true):
        hits = ((answered == label) & (true == label)).sum()
        scores.append(2 * hits / ((answered == label).sum() + (true == label).sum()))
    return float(np.mean(scores))


def _log_loss(predictions: LabelScores, true: Codes) -> float:
    chances = predictions.probabilities().astype(np.float64)[np.arange(len(true)), true]
    return float(-np.log(np.maximum(chances, 1e-12)).mean())
