"""Weights of the members of `ensemble` for places: equal, from val, or from blocks of train that are held out in turn.

The surveys of `later_baselines` (breeding birds on routes, trees in Swiss plots), written as GeoLifeCLEF 2025 and held
out in the same five folds of blocks (300 km and 20 km). Of what is left the benchmark draws val in blocks; the members,
at their defaults, learn from the rest, and are the same whatever their weights. `folds` holds out blocks of the same
side three times within train; `val` and `folds` take the mixture of lowest log loss. A species is listed from a
probability that all species share, chosen on val for the mean F1 of its places. The unit of intervals is the block.
Nothing was chosen on test; which single member is best is read off the table, after the fact.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import fieldmark
from fieldmark.fitting.configuration import configured_method
from fieldmark.fitting.fit_part import readable_inputs, shown_to, supplied_view, supply_of
from fieldmark.methods.base import Fitted
from fieldmark.methods.places.ensemble import PlaceEnsemble
from fieldmark.runs.label_scores import LabelScores
from fieldmark.stats.mixture import mixture_weights
from fieldmark.steps.base import Lesson
from fieldmark.steps.label_lists import ListLabels
from fieldmark.views.open_benchmark import open_benchmark, open_release
from fieldmark.views.parts import Part
from studies.evidence.grids import kept_arrays
from studies.evidence.later_baselines import FOLDS, REGIONS, f1_of_rows, with_interval
from studies.evidence.results import read_result, real_data, write_result
from studies.evidence.survey_releases import Surveys, write_surveys

NAME = "place_weights"
BENCHMARK = "geolifeclef-2025"
# What `ensemble` takes for many species; a model for each of 388 species would take most of the time.
MEMBERS = ("neighbors", "random-forest", "sinr")
INNER_FOLDS = 3
BLOCKS_M: Mapping[str, float] = {"breeding birds": 300_000.0, "Swiss trees": 20_000.0}
WAYS = ("equal", "val", "folds")
Flags = NDArray[np.bool_]


def run() -> dict[str, Any] | None:
    """Both regions; each fold is kept when it is done."""
    result: dict[str, Any] = {"about": __doc__, **(read_result(NAME) or {})}
    result = {key: value for key, value in result.items() if key not in ("command", "code_version")}
    for name, (folder, load) in REGIONS.items():
        done = result.setdefault("regions", {})
        if name not in done and real_data(folder) is not None:
            done[name] = study(name, load())
            write_result(NAME, result)
    return result if result.get("regions") else None


def study(name: str, surveys: Surveys, members: tuple[str, ...] = MEMBERS) -> dict[str, Any]:
    """Mean F1 of places for each member and each way of weighing, over the folds."""
    fold_of = np.random.default_rng(0).permutation(int(surveys.block.max()) + 1)[surveys.block] % FOLDS
    names = [*(member.partition(":")[0] for member in members), *(f"ensemble, {way}" for way in WAYS)]
    f1 = {one: np.zeros(len(surveys.lat)) for one in names}
    loss = {one: np.zeros(len(surveys.lat)) for one in names}
    weights: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    folds = kept_arrays(
        NAME,
        {f"{name}-{fold}": fold for fold in range(FOLDS)},
        lambda fold: answer_fold(surveys, fold_of == fold, members, BLOCKS_M[name]),
    )
    for fold, stored in enumerate(folds.values()):
        rows = np.flatnonzero(fold_of == fold)
        for one in names:
            f1[one][rows] = f1_of_rows(stored[f"listed {one}"], surveys.holds[rows])
            loss[one][rows] = stored[f"loss {one}"]
        for way in WAYS:
            weights[way].append([round(float(weight), 3) for weight in stored[f"weights {way}"]])
    return {
        "places": len(surveys.lat),
        "species": surveys.holds.shape[1],
        "blocks": len(np.unique(surveys.block)),
        "members": list(members),
        "sample_f1": {one: with_interval(f1[one], surveys.block) for one in names},
        "log_loss": {one: round(float(loss[one].mean()), 5) for one in names},
        "folds_less": {
            other: with_interval(f1["ensemble, folds"] - f1[other], surveys.block, bounds=(-1.0, 1.0))
            for other in names
            if other != "ensemble, folds"
        },
        "weights": weights,
    }


def answer_fold(surveys: Surveys, held: Flags, members: tuple[str, ...], blocks_m: float) -> dict[str, Any]:
    """What each way lists at the places that are held out, its log loss there, and the weights."""
    settings = {"members": ",".join(members), "inputs": "environment", "blocks_m": blocks_m, "folds": INNER_FOLDS}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "release"
        write_surveys(root, surveys, held)
        benchmark = fieldmark.benchmark(BENCHMARK)
        opened = open_benchmark(benchmark, open_release(benchmark, root))
        configured = configured_method("place-ensemble", settings, 0).on_release(readable_inputs(opened))
        view = supplied_view(opened, supply_of(configured, opened, None))
    method = configured.method
    assert isinstance(method, PlaceEnsemble) and view.val is not None and view.test is not None  # as asked for
    fitted = replace(method, weights="folds").fit(shown_to(method, view))
    chances = {name: _of_members(fitted, part) for name, part in (("val", view.val), ("test", view.test))}
    true = view.val.targets.holds(len(view.labels))  # type: ignore[union-attr]
    said = np.where(true, chances["val"], 1 - chances["val"]).reshape(len(members), -1)
    weights = {
        "equal": np.full(len(members), 1 / len(members)),
        "val": mixture_weights(said),
        "folds": fitted.arrays["weights"],
    }
    ways = {member.partition(":")[0]: own for member, own in zip(members, np.eye(len(members)), strict=True)}
    ways |= {f"ensemble, {way}": own for way, own in weights.items()}
    lesson = Lesson(benchmark.task, view.labels, opened.dataset.taxa, view.val, view.train)
    answered: dict[str, Any] = {f"weights {way}": own for way, own in weights.items()}
    for one, own in ways.items():
        mixed = {name: np.tensordot(own, chance, 1).astype(np.float32) for name, chance in chances.items()}
        answered |= _answers(one, mixed, lesson, view.test.item_ids, surveys.holds[held])
    return answered


def _of_members(fitted: Fitted, part: Part) -> NDArray[np.float64]:
    """The chances of all species at all places by each member: for a survey, the mixture is their mean."""
    n_members = len(fitted.arrays["weights"])
    alone = [{**fitted.arrays, "weights": own} for own in np.eye(n_members)]
    return np.stack([fitted.method.scores(own, part).astype(np.float64) for own in alone])


def _answers(
    name: str, chances: Mapping[str, NDArray[np.float32]], lesson: Lesson, items: tuple[str, ...], holds: Flags
) -> dict[str, Any]:
    """What is listed at the places of test in the order of their rows, and the log loss of each of them."""
    labels = lesson.labels
    val = LabelScores(lesson.val.item_ids, labels, chances["val"], "score")
    test = LabelScores(items, labels, chances["test"], "score")
    decided = ListLabels().fit(val, lesson).apply(test, pl.DataFrame({"item_id": items})).decisions
    assert decided is not None  # label-lists decides
    said = np.zeros(chances["test"].shape, dtype=np.bool_)
    said[np.repeat(np.arange(len(items)), decided.lengths), decided.codes] = True
    columns, order = np.array([int(one) for one in labels.names]), np.argsort([int(item) for item in items])
    listed, likely = np.zeros(holds.shape, dtype=np.bool_), np.full(holds.shape, 1e-6)
    listed[:, columns], likely[:, columns] = said[order], chances["test"][order]
    of_truth = np.clip(np.where(holds, likely, 1 - likely), 1e-6, 1.0)
    return {f"listed {name}": listed, f"loss {name}": -np.log(of_truth).mean(axis=1)}


if __name__ == "__main__":
    sys.exit(0 if run() else 1)
