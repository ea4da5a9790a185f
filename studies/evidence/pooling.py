"""Photos of one specimen pooled by mean, max and attention: `fungi_amanita`, five folds by specimen (real photos).

Linear on frozen EfficientNet-Lite0. Of each fold the next one is val: it decides the regularizer, the temperature and
the sharpness of attention; the model that answers is then fitted to all but the fold. Species or sections with a single
specimen cannot be right and are left out. All photos of a specimen are pooled, habitats and microscopy among them.
"one photo" is the mean over the photos of a specimen, each answered by itself. Folds are drawn once, with seed 0.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.features.settings import FeatureSettings
from fieldmark.methods.linear import Linear
from fieldmark.models.supply import FeatureSource
from fieldmark.questions.items import loose_items
from fieldmark.questions.targets import LabelTargets
from fieldmark.stats.comparison import compare
from fieldmark.stats.intervals import interval
from fieldmark.steps.base import Lesson, Step, fit_step
from fieldmark.steps.observation import ObservationAttention, ObservationMax, ObservationMean
from fieldmark.steps.temperature import Temperature
from fieldmark.tables.labels import Labels
from fieldmark.tables.media import PHOTO
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part, View, loose_media
from studies.evidence.results import real_data

FOLDS, SEED, SIZE = 5, 0, 224
POOLED: dict[str, tuple[Step, ...]] = {
    "one photo": (),
    "mean": (ObservationMean(),),
    "max": (ObservationMax(),),
    "attention": (ObservationAttention(),),
}


def run() -> dict[str, Any] | None:
    """Log loss and top-1 over specimens for each pooling, with paired differences from the mean."""
    data = real_data("fungi_amanita")
    if data is None:
        return None
    with (data / "images_with_metadata.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    photos = [data / row["file"] for row in rows]
    part = _features(photos, [row["specimen_id"] for row in rows])
    ranks = {rank: _rank(part, [row[column] for row in rows]) for rank, column in RANKS.items()}
    return {"simulated": False, "about": " ".join(str(__doc__).split("\n\n", 1)[1].split()), "ranks": ranks}


RANKS = {"species": "species", "section": "sectionid"}


def _features(photos: list[Path], specimens: list[str]) -> Part:
    """All photos with their features; a specimen is an observation."""
    items = loose_items(photos).with_columns(observation_id=pl.Series(specimens))
    settings = FeatureSettings(backbone="efficientnet_lite0", size=SIZE)
    return FeatureSource(settings).supply(Part(items, media=loose_media(PHOTO, photos)))


def _rank(part: Part, names: list[str]) -> dict[str, Any]:
    specimens = part.items["observation_id"].to_list()
    label_of = dict(zip(specimens, names, strict=True))
    times = Counter(label_of.values())
    kept = np.array([times[name] > 1 for name in names])
    labels = Labels.of(name for name, own in times.items() if own > 1)
    own = part.take(kept)
    own = Part(own.items, LabelTargets(labels.encode(np.array(names)[kept])), features=own.features)
    fold = _folds({specimen: name for specimen, name in label_of.items() if times[name] > 1})
    fold_of = np.array([fold[specimen] for specimen in own.items["observation_id"]])
    loss: dict[str, dict[str, float]] = defaultdict(dict)
    hit: dict[str, dict[str, float]] = defaultdict(dict)
    sharpness = [_fold(own, fold_of, number, labels, loss, hit) for number in range(FOLDS)]
    return {
        "specimens": len(fold),
        "photos": len(own),
        "labels": len(labels),
        "sharpness": sharpness,
        "log_loss": _compared(loss, higher_is_better=False),
        "top_1": _compared(hit, higher_is_better=True),
    }


def _folds(label_of: dict[str, str]) -> dict[str, int]:
    """The fold of each specimen: those of a label are dealt out in turn, so that no fold has them all."""
    rng = np.random.default_rng(SEED)
    dealt = 0
    fold = {}
    for label in sorted(set(label_of.values())):
        own = sorted(specimen for specimen, name in label_of.items() if name == label)
        for specimen in rng.permutation(own):
            fold[str(specimen)] = dealt % FOLDS
            dealt += 1
    return fold


def _fold(
    part: Part,
    fold_of: NDArray[np.int64],
    number: int,
    labels: Labels,
    loss: dict[str, dict[str, float]],
    hit: dict[str, dict[str, float]],
) -> float:
    """Answers one fold, and notes log loss and hit of each specimen; returns the sharpness that val has chosen."""
    test, val = part.take(fold_of == number), part.take(fold_of == (number + 1) % FOLDS)
    train = part.take((fold_of != number) & (fold_of != (number + 1) % FOLDS))
    taxa = pl.DataFrame({"label": labels.names})
    view = View(labels, Taxonomy.of(labels, taxa), train, val, None, None)
    fitted = Linear().fit(view)
    lesson = Lesson(BENCHMARKS["folder"].task, labels, taxa, val, train)
    on_val = fitted.predict(val, labels)
    temperature = fit_step(Temperature(), on_val, lesson)
    on_val = temperature.apply(on_val, val.items)
    final = fitted.method.fit_again(fitted.arrays, view.with_val_in_train())
    answers = temperature.apply(final.predict(test, labels), test.items)
    truth = test.truth
    assert truth is not None
    chosen = 0.0
    for name, steps in POOLED.items():
        pooled = answers
        for step in steps:
            step = fit_step(step, on_val, lesson)
            pooled = step.apply(pooled, test.items)
            chosen = step.chosen if isinstance(step, ObservationAttention) else chosen
        logs = np.log(np.maximum(pooled.probabilities()[np.arange(len(truth)), truth], 1e-15))
        right = pooled.top(1)[:, 0] == truth
        for specimen in set(test.items["observation_id"]):
            rows = (test.items["observation_id"] == specimen).to_numpy()
            loss[name][specimen], hit[name][specimen] = -float(logs[rows].mean()), float(right[rows].mean())
    return chosen


def _compared(found: dict[str, dict[str, float]], *, higher_is_better: bool) -> dict[str, Any]:
    """The mean of each pooling with its interval over specimens, and the difference of each from the mean."""
    specimens = sorted(found["mean"])
    table = np.array([[found[name][one] for one in specimens] for name in POOLED])
    means = table.mean(axis=1)
    bounds = (0.0, 1.0) if higher_is_better else (0.0, np.inf)
    said: dict[str, Any] = {}
    for name, own, value in zip(POOLED, table, means, strict=True):
        around = interval(float(value), own, bounds=bounds)
        said[name] = {"value": _three(value, around.low, around.high)}
        if name != "mean":
            pair = np.stack([own, table[list(POOLED).index("mean")]])
            apart = compare(pair.mean(axis=1), pair, higher_is_better=higher_is_better).differences[0]
            said[name]["less_mean"] = _three(apart.value, apart.interval.low, apart.interval.high)
    return said


def _three(*numbers: Any) -> list[float | None]:
    return [None if number is None else round(float(number), 4) for number in numbers]
