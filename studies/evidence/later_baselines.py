"""The baselines of the later editions, each from a release on disk, on real data laid out as that edition is.

**Surveys.** Breeding birds on routes of North America (species seen on a route in at least one of 15 years, at least 20
routes each) and trees in Swiss plots, written as GeoLifeCLEF 2025. Square blocks (300 km and 20 km) are held out in
five folds; what is left is train, from which the benchmark draws val in blocks. All methods are at their defaults. A
list is what reaches 1/2, a threshold that all species share, or thresholds by species, the last two chosen on val for
the mean F1 of its places. The unit of intervals is the block.

**Plots.** Field photos of 36 plant species, written as PlantCLEF 2024: single plants teach, and the photos of test are
put together to pictures of three by three, four species in each, ten transects of three. The photos are real, the plots
are not. A linear model on frozen features of EfficientNet-Lite0 at 224 px votes on the whole picture or on tiles; from
which probability on a species is listed is 1/2, or chosen on pictures made of photos of val in the same way.

**Individuals.** Photos of vouchered specimens of *Amanita* as individuals, written as AnimalCLEF 2026: half of the
specimens, drawn, teach, and the photos of the others are put together by specimen. The unit is the specimen.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import fieldmark
from fieldmark.identification.tiles import listed, tile_votes
from fieldmark.models import load_model
from fieldmark.releases.occurrences.coordinates import to_degrees
from fieldmark.runs.predictions import read_predictions
from fieldmark.splits.grids import square_blocks
from fieldmark.stats.intervals import interval, pseudo_values
from fieldmark.steps.base import Lesson
from fieldmark.steps.label_lists import ListLabels
from fieldmark.steps.multilabel import chances_of
from fieldmark.views.open_benchmark import open_benchmark, open_release
from studies.evidence.breeding_routes import asked
from studies.evidence.grids import kept_arrays
from studies.evidence.results import read_result, real_data, rounded, write_result
from studies.evidence.survey_releases import Surveys, write_animals, write_plants, write_surveys

NAME = "later_baselines"
FOLDS = 5
METHODS: Mapping[str, dict[str, Any]] = {
    "frequent": {},
    "neighbors": {},
    "linear": {"inputs": "environment,place"},
    "random-forest": {},
}
RULES: Mapping[str, ListLabels | None] = {
    "one half": None,
    "shared": ListLabels(),
    "by species": ListLabels(by="label"),
}
TRIED = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
AMANITA_SEED = 0
Flags = NDArray[np.bool_]


def routes() -> Surveys:
    """Breeding birds by route."""
    points, _, _, share, block = asked()
    return Surveys(points.lat, points.lon, points.table.astype(np.float64), share > 0, block)


def swiss_trees() -> Surveys:
    """Trees in Swiss plots."""
    data = real_data("sdm_disdat")
    assert data is not None  # asked before
    env = pl.read_parquet(data / "SWItest_env.parquet").sort("siteid")
    found = pl.read_parquet(data / "SWItest_pa.parquet").sort("siteid")
    x, y = (env[name].to_numpy().astype(np.float64) for name in ("x", "y"))
    lat, lon = to_degrees(x, y, "EPSG:21781", "SWItest_env.parquet")
    numbers = env.drop("group", "siteid", "x", "y").to_numpy().astype(np.float64)
    species = [name for name in found.columns if name.startswith("swi")]
    holds = found.select(species).to_numpy() > 0
    cells = np.column_stack(square_blocks(lat, lon, 20_000.0))
    block = np.unique(cells, axis=0, return_inverse=True)[1].ravel()
    kept = holds.any(axis=1)  # a survey that found none of them is not in the table of a challenge
    return Surveys(lat[kept], lon[kept], numbers[kept], holds[kept], block[kept])


REGIONS: Mapping[str, tuple[str, Callable[[], Surveys]]] = {
    "breeding birds": ("breeding_birds", routes),
    "Swiss trees": ("sdm_disdat", swiss_trees),
}


def run() -> dict[str, Any] | None:
    """All parts that are not done yet; the result is written after each."""
    result: dict[str, Any] = {"about": __doc__, **(read_result(NAME) or {})}
    result = {key: value for key, value in result.items() if key not in ("command", "code_version")}
    for name, folder, study in (
        ("plots", "plants_sheets_and_field", study_plots),
        ("individuals", "fungi_amanita", study_individuals),
    ):
        data = real_data(folder)
        if name not in result and data is not None:
            result[name] = study(data)
            write_result(NAME, result)
    for name, (folder, load) in REGIONS.items():
        done = result.setdefault("surveys", {})
        if name not in done and real_data(folder) is not None:
            done[name] = study_surveys(name, load())
            write_result(NAME, result)
    return result if len(result) > 1 else None


def study_surveys(name: str, surveys: Surveys) -> dict[str, Any]:
    """Sample F1 of every method and rule over the folds."""
    fold_of = np.random.default_rng(0).permutation(int(surveys.block.max()) + 1)[surveys.block] % FOLDS
    f1 = {(method, rule): np.zeros(len(surveys.lat)) for method in METHODS for rule in RULES}
    lengths = {key: np.zeros(len(surveys.lat)) for key in f1}
    tasks = {f"{name}-{fold}-{method}": (fold, method) for fold in range(FOLDS) for method in METHODS}
    stored = kept_arrays(NAME, tasks, lambda task: dict(answer_fold(surveys, fold_of == task[0], task[1])))
    for key, (fold, method) in tasks.items():
        rows = np.flatnonzero(fold_of == fold)
        for rule in RULES:
            answers = stored[key][rule]
            f1[method, rule][rows] = f1_of_rows(answers, surveys.holds[rows])
            lengths[method, rule][rows] = answers.sum(axis=1)
    tables = {
        method: {
            rule: {
                "sample_f1": with_interval(f1[method, rule], surveys.block),
                "listed": round(float(lengths[method, rule].mean()), 2),
            }
            for rule in RULES
        }
        for method in METHODS
    }
    gains = {
        method: with_interval(f1[method, "by species"] - f1[method, "shared"], surveys.block, bounds=(-1.0, 1.0))
        for method in METHODS
    }
    return {
        "places": len(surveys.lat),
        "species": surveys.holds.shape[1],
        "blocks": len(np.unique(surveys.block)),
        "true_species_per_place": round(float(surveys.holds.sum(axis=1).mean()), 2),
        "methods": tables,
        "by_species_less_shared": gains,
    }


def answer_fold(surveys: Surveys, held: Flags, method: str) -> dict[str, Flags]:
    """The lists of the held-out places by each rule, from a release on disk."""
    with tempfile.TemporaryDirectory() as folder:
        root, out = Path(folder) / "release", Path(folder) / "run"
        write_surveys(root, surveys, held)
        settings = METHODS[method]
        fieldmark.fit("geolifeclef-2025", root, method, out, settings=settings, steps=["presence"])
        benchmark = fieldmark.benchmark("geolifeclef-2025")
        opened = open_benchmark(benchmark, open_release(benchmark, root))
        val, test = (read_predictions(out / "predictions" / f"{part}.parquet") for part in ("val", "test"))
    shown = opened.view.val
    assert shown is not None  # drawn in blocks
    lesson = Lesson(benchmark.task, val.labels, opened.dataset.taxa, shown, opened.view.train)
    columns = np.array([int(name) for name in test.labels.names])
    order = np.argsort([int(item) for item in test.items])
    answers = {}
    for rule, step in RULES.items():
        made = np.zeros((int(held.sum()), surveys.holds.shape[1]), dtype=np.bool_)
        if step is None:
            said = chances_of(test) >= 0.5
        else:
            decided = step.fit(val, lesson).apply(test, pl.DataFrame({"item_id": test.items})).decisions
            assert decided is not None  # label-lists decides
            said = np.zeros((len(test.items), len(columns)), dtype=np.bool_)
            said[np.repeat(np.arange(len(test.items)), decided.lengths), decided.codes] = True
        made[:, columns] = said[order]
        answers[rule] = made
    return answers


def f1_of_rows(answers: Flags, holds: Flags) -> NDArray[np.float64]:
    """F1 of each place; 0 where nothing right is listed."""
    named = answers.sum(axis=1) + holds.sum(axis=1)
    return np.asarray(2.0 * (answers & holds).sum(axis=1) / np.maximum(named, 1))


def with_interval(
    values: NDArray[np.float64], block: NDArray[np.int64], bounds: tuple[float, float] = (0.0, 1.0)
) -> list[float | None]:
    """The mean of places with its interval over blocks."""
    unit = np.unique(block, return_inverse=True)[1]
    total, count = np.bincount(unit, values), np.bincount(unit)
    mean = float(values.mean())
    without = (total.sum() - total) / (count.sum() - count)
    own = interval(mean, pseudo_values(mean, without), bounds=bounds)
    return [None if one is None else round(one, 4) for one in (mean, own.low, own.high)]


def study_plots(data: Path) -> dict[str, Any]:
    """Tiles against the whole picture, with the threshold of 1/2 and one that val chooses."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "release"
        about = write_plants(root, data)
        run_folder = Path(folder) / "run"
        single = fieldmark.fit("plantclef-2024/single-plants", root, "linear", run_folder, settings={"size": 224})
        model = load_model(run_folder)
        found: dict[str, Any] = {}
        for tiles in (1, 2, 3, 4, 6):
            names = {part: sorted((root / part).glob("*.jpg")) for part in ("val_plots", "PlantCLEF2025_test_images")}
            votes = {part: tile_votes(model, photos, tiles=tiles) for part, photos in names.items()}
            chosen = max(TRIED, key=lambda at: _score(root, "val", listed(votes["val_plots"], at_least=at, most=20)))
            for rule, at_least in (("one half", 0.5), ("chosen", chosen)):
                answers = listed(votes["PlantCLEF2025_test_images"], at_least=at_least, most=20)
                card = fieldmark.score("plantclef-2025", answers, data=root)
                found[f"{tiles} x {tiles}, {rule}"] = {**rounded(card), "at_least": at_least}
            print("tiles", tiles, chosen, flush=True)
        return {**about, "single_plants": rounded(single.scorecard), "tiles": found}


def _score(root: Path, part: str, answers: Any) -> float:
    """The mean F1 of the pictures that were put together of val."""
    truth = pl.read_csv(root / f"{part}_plots.csv", infer_schema=False)
    return fieldmark.score("plantclef-2025", answers, truth=truth).metrics["sample_f1"].value or 0.0


def study_individuals(data: Path) -> dict[str, Any]:
    """Clusters of photos by specimen: calibrated merging beside fixed ways."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "release"
        about = write_animals(root, data, np.random.default_rng(AMANITA_SEED))
        found: dict[str, Any] = {}
        for name, settings in (
            ("calibrated on pairs", {"by": "pairs"}),
            ("chosen on clusters", {"by": "clusters"}),
            ("each photo by itself", {"threshold": 1.01}),
            ("all together", {"threshold": -1.01}),
        ):
            out = Path(folder) / "run"
            shutil.rmtree(out, ignore_errors=True)
            made = fieldmark.fit("animalclef-2026", root, "clustering", out, settings={"size": 224, **settings})
            threshold = getattr(made.model.fitted.method, "threshold", None)
            found[name] = {**rounded(made.scorecard), "threshold": None if settings.get("threshold") else threshold}
            print(name, found[name], flush=True)
        return {**about, "ways": found}


if __name__ == "__main__":
    sys.exit(0 if run() else 1)
