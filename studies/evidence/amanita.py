"""Photos, host trees, date and place of *Amanita*, alone and fused: `fungi_amanita` by specimen, five folds by site.

A specimen is one question: the mean of the features of all its photos (EfficientNet-Lite0, 224 px, frozen), up to two
host trees, the day of the year, latitude and longitude. Taxa and sections that were found at one site alone cannot be
right when a site is held out, and are left out, which leaves 19 of 32 taxa and 5 of 7 sections. Of each fold of sites
the next one is val: it decides regularizers, weights, exponents and epochs; what answers is then fitted to all but the
fold. Members of fusions are `linear`, since a few dozen specimens are too few for trees (shown for comparison). The
prior of trees is the DF20 rule on the first host tree. Every answer is mixed with 2 % of a uniform one, so that no
single miss decides the log loss. Intervals are paired over sites. Nothing was chosen by these numbers.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.features.settings import FeatureSettings
from fieldmark.methods.base import Method
from fieldmark.methods.frequent import Frequent
from fieldmark.methods.fusion import Fusion
from fieldmark.methods.joint import Joint
from fieldmark.methods.tabular import Tabular
from fieldmark.models.supply import FeatureSource, InputEncoder
from fieldmark.questions.targets import LabelTargets
from fieldmark.steps import make_step
from fieldmark.steps.base import Lesson, Step, fit_step
from fieldmark.tables.inputs import Input
from fieldmark.tables.labels import Labels
from fieldmark.tables.media import PHOTO
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part, View, loose_media
from studies.evidence.pairing import compared
from studies.evidence.results import real_data

FOLDS, SEED, SIZE, UNIFORM = 5, 0, 224, 0.02
RANKS = {"taxa": "species", "sections": "sectionid"}
TREES = Input("trees", ("tree", "other_tree"))
TABLES = (TREES, Input("date", ("date",)), Input("place", ("lat", "lon")))


def _fusion(inputs: str) -> Method:
    return Fusion(inputs=inputs, members=",".join("linear" for _ in inputs.split(",")))


VARIANTS: dict[str, tuple[Method, tuple[str, ...]]] = {
    "frequencies": (Frequent(), ()),
    "photos": (_fusion("photo"), ()),
    "trees": (_fusion("trees"), ()),
    "date": (_fusion("date"), ()),
    "place": (_fusion("place"), ()),
    "trees, date, place": (_fusion("trees,date,place"), ()),
    "trees, date, place by boosted trees": (Tabular(inputs="trees,date,place"), ()),
    "photos and trees": (_fusion("photo,trees"), ()),
    "photos and date": (_fusion("photo,date"), ()),
    "photos and place": (_fusion("photo,place"), ()),
    "all": (_fusion("photo,trees,date,place"), ()),
    "photos, prior of trees": (_fusion("photo"), ("prior:column=tree", "temperature")),
    "photos, prior of month": (_fusion("photo"), ("prior:column=month", "temperature")),
    "all, joint network": (Joint(inputs="photo,trees,date,place"), ()),
}
FIRST = "photos"


def run() -> dict[str, Any] | None:
    """Log loss and top-1 over specimens of each variant, with paired differences from photos alone."""
    data = real_data("fungi_amanita")
    if data is None:
        return None
    part, table = _specimens(data)
    ranks = {rank: _rank(part, table, column) for rank, column in RANKS.items()}
    return {"simulated": False, "about": " ".join(str(__doc__).split("\n\n", 1)[1].split()), "ranks": ranks}


def _specimens(data: Path) -> tuple[Part, pl.DataFrame]:
    """One item per specimen with the features of its photos, and everything else that is known about it."""
    with (data / "images_with_metadata.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    photos: dict[str, list[str]] = {}
    for row in rows:
        photos.setdefault(row["specimen_id"], []).append(str(data / row["file"]))
    first = {row["specimen_id"]: row for row in reversed(rows)}
    table = pl.DataFrame([first[one] for one in photos]).with_columns(pl.Series("item_id", list(photos)))
    table = table.with_columns(pl.col(pl.String).str.strip_chars().replace("", None))
    items = table.select(
        "item_id",
        observation_id="item_id",
        media_ids=pl.Series(list(photos.values())),
        tree="hosttree1_scientific",
        other_tree="hosttree2_scientific",
        date=pl.col("datecollected").str.to_date("%m/%d/%y", strict=False),
        lat=pl.col("lat").cast(pl.Float64, strict=False),
        lon=pl.col("long").cast(pl.Float64, strict=False),
        site=pl.coalesce("site", pl.format("{} alone", "item_id")),
    )
    paths = [Path(one) for own in photos.values() for one in own]
    settings = FeatureSettings(backbone="efficientnet_lite0", size=SIZE)
    part = FeatureSource(settings).supply(Part(items, media=loose_media(PHOTO, paths)), "photo")
    return replace(part, media=None), table


def _rank(part: Part, table: pl.DataFrame, column: str) -> dict[str, Any]:
    names, sites = table[column].to_numpy(), part.items["site"].to_numpy()
    at = {name: set(sites[names == name]) for name in set(names)}
    kept = np.array([len(at[name]) > 1 for name in names])
    labels = Labels.of(name for name, where in at.items() if len(where) > 1)
    own = replace(part.take(kept), targets=LabelTargets(labels.encode(names[kept])))
    taxonomy = Taxonomy.of(labels, pl.DataFrame({"label": labels.names}))
    fold = View(labels, taxonomy, own, None, None, None).fold_numbers("site", FOLDS, SEED)
    answers = {name: np.zeros((len(own), len(labels))) for name in VARIANTS}
    for number in range(FOLDS):
        for name, chances in _fold(own, fold, number, labels, taxonomy).items():
            answers[name][fold == number] = chances
        print(column, "fold", number, flush=True)
    truth = own.truth
    assert truth is not None
    each = np.arange(len(truth))
    loss = {name: -np.log(chances[each, truth]) for name, chances in answers.items()}
    hit = {name: (chances.argmax(axis=1) == truth).astype(np.float64) for name, chances in answers.items()}
    units = np.unique(sites[kept], return_inverse=True)[1]
    return {
        "specimens": len(own),
        "photos": int(own.items["media_ids"].list.len().sum()),
        "labels": len(labels),
        "labels_in_all": len(at),
        "sites": int(units.max()) + 1,
        "log_loss": compared(loss, units, FIRST, key="less_photos", higher_is_better=False),
        "top_1": compared(hit, units, FIRST, key="less_photos", higher_is_better=True),
    }


def _fold(
    part: Part, fold: NDArray[np.int64], number: int, labels: Labels, taxonomy: Taxonomy
) -> dict[str, NDArray[np.float64]]:
    """The chances that each variant gives to the labels of the specimens of one fold."""
    held, next_one = fold == number, fold == (number + 1) % FOLDS
    train = part.take(~held & ~next_one)
    encoders = [InputEncoder(declared).fit(train) for declared in TABLES]

    def supplied(own: Part) -> Part:
        for encoder in encoders:
            own = encoder.supply(own)
        return own

    train, val, test = supplied(train), supplied(part.take(next_one)), supplied(part.take(held))
    view = View(labels, taxonomy, train, val, None, None)
    lesson = Lesson(BENCHMARKS["folder"].task, labels, pl.DataFrame({"label": labels.names}), val, train)
    found = {}
    for name, (method, steps) in VARIANTS.items():
        fitted = method.fit(view)
        on_val = fitted.predict(val, labels)
        final = fitted.method.fit_again(fitted.arrays, view.with_val_in_train())
        answers = final.predict(test, labels)
        for text in ("temperature", *steps):
            step: Step = fit_step(make_step(text), on_val, lesson)
            on_val, answers = step.apply(on_val, val.items), step.apply(answers, test.items)
        chances = np.asarray(answers.probabilities(), dtype=np.float64)
        found[name] = (1 - UNIFORM) * chances / chances.sum(axis=1, keepdims=True) + UNIFORM / len(labels)
    return found
