"""The box around what stands out (`crop=saliency`) against whole photos, real birds, snakes and fungi.

Both runs are `linear` on features of a frozen EfficientNet-Lite0 at 160 px and differ in the crop alone; its settings
are the defaults, which were chosen on other photos (the Leeds butterflies). The strength of the penalty is chosen on
val for each run by itself. Birds and snakes have an official test set; the snakes have a val as well, that of the birds
is drawn from train. Fungi are answered by cross-validation: five folds that keep each class in
proportion and each unit together, drawn anew five times; val is one further fold. The unit of Amanita is the
specimen, all photos of which are on one side (taxa with one specimen are left out), elsewhere the photo (copies with
the same bytes are one). Differences come with the paired 95 % interval over units; over draws, the pseudo-values of a
unit are averaged. What another draw of the training photos would give is not in the interval.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.features.settings import FeatureSettings
from fieldmark.features.store import content_key
from fieldmark.methods.linear import Linear
from fieldmark.methods.photo_crops import boxes_of
from fieldmark.metrics.classification import macro_f1, macro_f1_without_each_unit, top_k, top_k_without_each_unit
from fieldmark.models.supply import FeatureSource
from fieldmark.questions.items import loose_items
from fieldmark.questions.targets import LabelTargets
from fieldmark.releases import open_dataset
from fieldmark.runs.label_scores import log_softmax
from fieldmark.stats.comparison import compare
from fieldmark.stats.intervals import pseudo_values
from fieldmark.tables.labels import Labels
from fieldmark.tables.media import PHOTO
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark.views.parts import Part, View, loose_media
from studies.evidence.results import real_data

CROPS = ("saliency", "none")
SETTINGS = {"size": 160}
FOLDS, DRAWS, SEED = 5, 5, 0
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Photos:
    """Photos with their classes and units, as one part."""

    part: Part
    labels: Labels
    units: NDArray[np.int32]

    @property
    def truth(self) -> NDArray[np.int32]:
        assert self.part.truth is not None
        return self.part.truth


@dataclass(frozen=True)
class Split:
    """Rows to learn from, to choose on and to answer; whether the final model learns from val as well."""

    train: Rows
    val: Rows
    test: Rows
    val_is_drawn: bool = True


def run() -> dict[str, Any] | None:
    """Both runs and their difference on each set that is given."""
    sets: dict[str, Any] = {}
    for name in ("birds_cub_odd", "snakes_philippines", "fungi_genera", "fungi_amanita"):
        data = real_data(name)
        if data is None:
            continue
        if name in ("birds_cub_odd", "snakes_philippines"):
            photos, split = _official(data)
            draws = [[split]]
        else:
            photos = _genera(data) if name == "fungi_genera" else _amanita(data)
            draws = [list(_folds(photos, seed)) for seed in range(SEED, SEED + DRAWS)]
        sets[name] = _compared(photos, draws, by_unit=name == "fungi_amanita")
        print(name, sets[name]["metrics"], flush=True)
    if not sets:
        return None
    return {"simulated": False, "about": " ".join(str(__doc__).split("\n\n")[1].split()), "sets": sets}


def _official(data: Path) -> tuple[Photos, Split]:
    """The photos of a folder with its own parts."""
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", data), seed=SEED)
    view = opened.view
    assert view.val is not None and view.test is not None
    label_of = dict(opened.items["test"].select("item_id", "label").iter_rows())
    codes = view.labels.encode([label_of[item] for item in view.test.item_ids])
    parts = [view.train, view.val, replace(view.test, targets=LabelTargets(codes))]
    ends = np.cumsum([len(part) for part in parts])
    train, val, test = np.split(np.arange(ends[-1]), ends[:-1])
    together = Part.concat(parts)
    photos = Photos(together, view.labels, np.arange(len(together), dtype=np.int32))
    return photos, Split(train, val, test, opened.val_is_drawn)


def _genera(data: Path) -> Photos:
    paths = sorted(data.glob("*/*.jpg"))
    return _loose(paths, [path.parent.name for path in paths], [content_key(path.read_bytes()).hex() for path in paths])


def _amanita(data: Path) -> Photos:
    with (data / "images_with_metadata.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if (data / row["file"]).is_file()]
    specimens: dict[str, set[str]] = {}
    for row in rows:
        specimens.setdefault(row["species"], set()).add(row["specimen_id"])
    rows = [row for row in rows if len(specimens[row["species"]]) > 1]
    return _loose(
        [data / row["file"] for row in rows], *([row[key] for row in rows] for key in ("species", "specimen_id"))
    )


def _loose(paths: list[Path], names: list[str], units: list[str]) -> Photos:
    labels = Labels.of(names)
    part = Part(loose_items(paths), LabelTargets(labels.encode(names)), loose_media(PHOTO, paths))
    return Photos(part, labels, np.unique(units, return_inverse=True)[1].astype(np.int32))


def _folds(photos: Photos, seed: int) -> Iterator[Split]:
    """Each unit is answered in one fold; within a class, units are dealt out in a random order from a random fold."""
    rng = np.random.default_rng(seed)
    fold_of = np.empty(photos.units.max() + 1, dtype=np.int64)
    class_of = np.empty_like(fold_of)
    class_of[photos.units] = photos.truth
    for label in range(len(photos.labels)):
        units = rng.permutation(np.flatnonzero(class_of == label))
        fold_of[units] = (rng.integers(FOLDS) + np.arange(len(units))) % FOLDS
    fold = fold_of[photos.units]
    for number in range(FOLDS):
        val = (number + 1) % FOLDS
        train = np.flatnonzero((fold != number) & (fold != val))
        yield Split(train, np.flatnonzero(fold == val), np.flatnonzero(fold == number))


def _compared(photos: Photos, draws: list[list[Split]], *, by_unit: bool) -> dict[str, Any]:
    answered = np.unique(np.concatenate([split.test for split in draws[0]]))
    levels = {"photo": photos.units[answered]} | ({"specimen": np.unique(photos.units)} if by_unit else {})
    units = {level: np.unique(of, return_inverse=True)[1].astype(np.int32) for level, of in levels.items()}
    scores: dict[str, list[NDArray[np.float64]]] = {}
    for crop in CROPS:
        source = FeatureSource(FeatureSettings(crop=crop, **SETTINGS))  # type: ignore[arg-type]
        supplied = replace(photos, part=source.supply(photos.part))
        scores[crop] = [_answers(supplied, splits)[answered] for splits in draws]
    found: dict[str, Any] = {}
    for level, unit in units.items():
        for metric in ("top_1", "macro_f1_present"):
            values, pseudo = [], []
            for crop in CROPS:
                pairs = [_measured(photos, answered, rows, unit, level, metric) for rows in scores[crop]]
                values.append(float(np.mean([value for value, _ in pairs])))
                pseudo.append(np.mean([each for _, each in pairs], axis=0))
            apart = compare(np.array(values), np.stack(pseudo)).differences[0]
            found[f"{metric}, by {level}"] = {
                "cropped": round(values[0], 4),
                "whole": round(values[1], 4),
                "difference": [
                    None if number is None else round(number, 4)
                    for number in (apart.value, apart.interval.low, apart.interval.high)
                ],
            }
    boxes = boxes_of(photos.part, "saliency", FeatureSettings().crop_margin)
    shares = [(box.right - box.left) * (box.bottom - box.top) for box in boxes.boxes.values()]
    return {
        "photos": len(photos.part),
        "answered": len(answered),
        "classes": len(photos.labels),
        "units": {level: int(unit.max()) + 1 for level, unit in units.items()},
        "draws": len(draws),
        "folds": len(draws[0]),
        "photos_cropped": len(boxes.boxes),
        "median_share_of_area": round(float(np.median(shares)), 3) if shares else None,
        "metrics": found,
    }


def _answers(photos: Photos, splits: list[Split]) -> NDArray[np.float64]:
    """Log-probabilities of each photo, from the fold in which it is answered."""
    scores = np.full((len(photos.part), len(photos.labels)), np.nan)
    taxonomy = Taxonomy.of(photos.labels, pl.DataFrame({"label": photos.labels.names}))
    for split in splits:
        train, val = photos.part.take(split.train), photos.part.take(split.val)
        view = View(photos.labels, taxonomy, train, val, None, None)
        fitted = Linear().fit(view)
        if split.val_is_drawn:
            fitted = fitted.method.fit(view.with_val_in_train())
        predictions = fitted.predict(photos.part.take(split.test).unlabeled(), photos.labels)
        scores[split.test] = log_softmax(np.asarray(predictions.scores, dtype=np.float64))
    return scores


def _measured(
    photos: Photos, answered: Rows, scores: NDArray[np.float64], unit: NDArray[np.int32], level: str, metric: str
) -> tuple[float, NDArray[np.float64]]:
    """The value of a metric and its pseudo-values, for photos or for specimens (the sum over their photos)."""
    truth = photos.truth[answered]
    if level == "specimen":
        of = np.unique(photos.units[answered], return_inverse=True)[1]
        sums = np.zeros((len(unit), scores.shape[1]))
        np.add.at(sums, of, scores)
        first = np.unique(of, return_index=True)[1]
        scores, truth = sums, truth[first]
    predicted = scores.argmax(axis=1).astype(np.int32)
    if metric == "top_1":
        ranked = predicted[:, None]
        value, without = top_k(truth, ranked, k=1), top_k_without_each_unit(truth, ranked, unit, k=1)
    else:
        classes = len(photos.labels)
        value = macro_f1(truth, predicted, n_classes=classes, over="present")
        without = macro_f1_without_each_unit(truth, predicted, unit, n_classes=classes, over="present")
    return value, pseudo_values(value, without)
