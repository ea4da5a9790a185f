"""Answers to people, held against the truth: unknown, danger, short lists and rolled-up answers.

Specimens (simulated, no photos): five natures of fungi as FungiTastic worlds have them, seeds 0 to 4, with 1,750 photos
to learn from and so many later ones that far more than 1,000 specimens of poisonous species are asked about. What a
network would see are the traits that the painter would paint, with noise, folded by a fixed random layer. Worlds
(simulated, painted): the same on photos of three tiny worlds, EfficientNet-Lite0 at 160 px, frozen. Both: `linear`,
`temperature`, a prior of month and habitat, `temperature`. All lines are drawn on val, that to unknown by known species
alone. Real photos: `fungi_genera` and `fungi_amanita` (by specimen) over five drawn splits, `birds_cub_odd` with the 30
unknown species of `studies.evidence.openset` (none of them in val), and `snakes_philippines` with its own split.
"""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.features.photos import is_plain
from fieldmark.fitting.configuration import configured_method
from fieldmark.fitting.fit_part import supplied_view, supply_of
from fieldmark.models.guides import Guide
from fieldmark.models.guides.dangers import dangerous_labels
from fieldmark.models.guides.living_groups import groups_of
from fieldmark.models.supply import Supply
from fieldmark.questions.items import loose_items
from fieldmark.questions.targets import LabelTargets
from fieldmark.releases import open_dataset
from fieldmark.tables.labels import Labels
from fieldmark.tables.media import PHOTO
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.open_benchmark import Opened, open_benchmark
from fieldmark.views.parts import Part, View, loose_media
from fieldmark_worlds.fungi.fungi_kingdom import FUNGI
from fieldmark_worlds.layouts import fungitastic
from fieldmark_worlds.layouts.fungitastic_finds import EXTENTS, Split, find
from fieldmark_worlds.nature.nature import grow_nature
from studies.evidence.identify_measures import (
    Asked,
    Flags,
    Said,
    all_shares,
    answer_specimens,
    called_unknown,
    conformal_shares,
    danger_shares,
    roll_up_shares,
    together,
    unknown_shares,
)
from studies.evidence.odd_pictures import write_pictures
from studies.evidence.openset import with_unknown_species
from studies.evidence.results import RESULTS, read_result, real_data, write_result

SEEDS, PAINTED, SIZE_PX = range(5), range(3), 160
# How noisy traits are seen (chosen for top-1 of about 95 and 75 %), and how many numbers they are folded into.
NOISE, FOLDS_TO = {"clear": 0.6, "poor": 1.4}, 256
STEPS = ("temperature", "prior:column=month+habitat", "temperature")
LATER: dict[Split, tuple[int, int, int]] = {"val": (6000, 60, 100), "test": (3000, 60, 200)}
SPLIT_SEEDS = range(5)


def run() -> dict[str, Any]:
    """Every part that is not in the results yet; each is written as soon as it is done."""
    result: dict[str, Any] = {"about": " ".join(str(__doc__).split())} | _kept()
    for view_of in NOISE:
        _each(result, f"specimens_{view_of}", SEEDS, partial(_specimens, view_of))
    _real(result)  # cheap, and before the photos of worlds are painted
    _each(result, "worlds", PAINTED, _world)
    return result


def _each(result: dict[str, Any], part: str, seeds: Iterable[int], study: Callable[[int], dict[str, Any]]) -> None:
    for seed in seeds:
        if str(seed) not in result[part]:
            result[part][str(seed)] = study(seed)
            result[f"{part}_together"] = together(list(result[part].values()))
            print(part, seed, json.dumps(result[f"{part}_together"]), flush=True)
            write_result("identify", result)


def _real(result: dict[str, Any]) -> None:
    studies = {"fungi_genera": _genera, "fungi_amanita": _amanita} | {
        "birds_cub_odd": _birds,
        "snakes_philippines": _snakes,
    }
    for name, study in studies.items():
        data = real_data(name)
        if data is not None and name not in result["real"]:
            result["real"][name] = study(data)
            print(name, flush=True)
            write_result("identify", result)


def _kept() -> dict[str, Any]:
    """The parts that an interrupted run has left; remove the file to begin anew."""
    before = read_result("identify") if (RESULTS / "identify.json").exists() else None
    simulated = [*(f"specimens_{view_of}" for view_of in NOISE), "worlds"]
    parts = ("real", *simulated, *(f"{name}_together" for name in simulated))
    return {name: (before or {}).get(name, {}) for name in parts}


def _answers(opened: Opened, view: View, steps: Sequence[str]) -> tuple[Asked, Said]:
    """Fits to train and val of an opened benchmark, and answers test specimen by specimen."""
    assert view.test is not None
    label_of = dict(opened.truth["test"].rows.iter_rows())
    labels = np.array([label_of[item] for item in view.test.item_ids])
    return answer_specimens(opened.benchmark.task, view, opened.dataset.taxa, labels, steps)


def _specimens(view_of: str, seed: int) -> dict[str, Any]:
    """A world without photos: specimens as their traits, noisy and folded as a network might show them."""
    extent = replace(EXTENTS["small"], later_photos=LATER)
    nature = grow_nature(extent.nature, seed)
    finds = find(nature, extent, seed)
    rng = np.random.default_rng([seed, 24])
    traits = finds.seen.traits
    options = [np.eye(len(one.options))[traits.options[:, place]] for place, one in enumerate(FUNGI.categorical)]
    seen = np.column_stack([traits.latents, *options])
    seen = seen + NOISE[view_of] * rng.standard_normal(seen.shape)
    folded = np.maximum(seen @ rng.standard_normal((seen.shape[1], FOLDS_TO)) + rng.standard_normal(FOLDS_TO), 0)
    names = np.array(nature.taxa["label"])
    labels = Labels(tuple(names[finds.known].tolist()))
    table = finds.seen.table
    items = table.select(
        item_id=pl.col("observation_id").cast(pl.String),
        observation_id=pl.col("observation_id").cast(pl.String),
        media_ids=pl.concat_list(pl.col("observation_id").cast(pl.String)),
        date="date",
        habitat="habitat",
    )
    kept = ~finds.few_shot[finds.seen.species]
    parts = {}
    for split in ("train", "val", "test"):
        rows = np.flatnonzero((finds.split == split) & kept)
        targets = LabelTargets(labels.encode(names[finds.seen.species[rows]]))
        features = {"photo": folded[rows].astype(np.float32)}
        parts[split] = Part(items[rows.tolist()], targets, features=features)
        if split == "test":
            true, poisonous = (
                names[finds.seen.species[rows]],
                nature.taxa["poisonous"].to_numpy()[finds.seen.species[rows]],
            )
    order = np.argsort(parts["test"].items["observation_id"].to_numpy())
    view = View(labels, Taxonomy.of(labels, nature.taxa), parts["train"], parts["val"], None, parts["test"].unlabeled())
    task = BENCHMARKS["fungitastic/open"].task
    asked, _ = answer_specimens(task, view, nature.taxa, true, STEPS)
    row = all_shares(asked, labels, nature.taxa, poisonous[order].astype(np.bool_), nature.taxa)
    return {"seed": seed, "view": view_of, "simulated": True, "labels": len(labels), "train": len(parts["train"])} | row


def _world(seed: int) -> dict[str, Any]:
    root = Path.home() / f".cache/fieldmark/evidence/identify/world-{seed}"
    if not root.exists():  # painted once; features are kept in the store
        fungitastic.write(root, size="tiny", seed=seed)
    dataset = open_dataset("fungitastic", root)
    opened = open_benchmark(BENCHMARKS["fungitastic/open"], dataset)
    view = supplied_view(opened, supply_of(configured_method("linear", {"size": SIZE_PX}), opened, None))
    asked, _ = _answers(opened, view, STEPS)
    about = {"seed": seed, "simulated": True, "labels": len(view.labels), "train": len(view.train)}
    return about | all_shares(asked, view.labels, dataset.taxa, _poisonous_specimens(root, view))


def _poisonous_specimens(root: Path, view: View) -> Flags:
    """Whether each specimen of test is poisonous, of unknown species too."""
    assert view.test is not None
    table = pl.read_csv(root / "metadata/FungiTastic/FungiTastic-OpenSet-Test.csv", infer_schema=False)
    flag = {row["observationID"]: row["poisonous"] in ("1", "true", "True") for row in table.iter_rows(named=True)}
    return np.array([flag[str(one)] for one in np.unique(view.test.items["observation_id"].to_numpy())])


def _folder(data: Path, seed: int) -> tuple[Opened, View, Supply]:
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", data), seed=seed)
    supply = supply_of(configured_method("linear", {"size": SIZE_PX}), opened, None)
    return opened, supplied_view(opened, supply), supply


def _odd(guide: Guide, supply: Supply, said: Said) -> dict[str, bool]:
    """Whether each picture that shows no living thing is called unknown, as `identify` decides it."""
    with tempfile.TemporaryDirectory() as folder:
        files = write_pictures(Path(folder))
        part = supply.supply(Part(loose_items(list(files.values())), media=loose_media(PHOTO, list(files.values()))))
        chances = np.asarray(said(part).chances(), dtype=np.float64)
        flags = called_unknown(guide, part.features["photo"], np.arange(len(files)), chances)
        plain = [is_plain(file.read_bytes()) for file in files.values()]
    return {name: bool(flag) or gray for name, flag, gray in zip(files, flags, plain, strict=True)}


def _measured(opened: Opened, view: View, supply: Supply, taxa: pl.DataFrame) -> dict[str, Any]:
    """What every data set is asked; danger where some labels are marked as dangerous."""
    asked, said = _answers(opened, view, ("temperature",))
    row = unknown_shares(asked)
    row |= {"conformal": conformal_shares(asked), "roll_up": roll_up_shares(asked, view.labels, taxa)}
    if taxa["poisonous"].any():
        dangerous = dangerous_labels(view.labels, taxa, groups_of(view.labels, taxa))
        row["danger"] = danger_shares(asked, dangerous, np.where(asked.truth >= 0, dangerous[asked.truth], False))
    row["pictures_called_unknown"] = _odd(asked.guide, supply, said)
    return row


def _over_splits(data: Path) -> dict[str, Any]:
    """The mean over drawn splits, and each of them."""
    rows = []
    for seed in SPLIT_SEEDS:
        opened, view, supply = _folder(data, seed)
        rows.append(_measured(opened, view, supply, opened.dataset.taxa))
    return {"simulated": False, "splits": rows}


def _genera(data: Path) -> dict[str, Any]:
    return _over_splits(data)


def _amanita(data: Path) -> dict[str, Any]:
    """Specimens of the taxa with at least three of them, as a folder with a table of observations."""
    with (data / "images_with_metadata.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    specimens: dict[str, set[str]] = {}
    for one in rows:
        specimens.setdefault(one["species"], set()).add(one["specimen_id"])
    kept = [one for one in rows if len(specimens[one["species"]]) >= 3]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "amanita")
        lines = ["file,observation_id"]
        for one in kept:
            place = Path(one["species"].replace("/", "-"), Path(one["file"]).name)
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).symlink_to(data / one["file"])
            lines.append(f'"{place.as_posix()}",{one["specimen_id"]}')
        (root / "observations.csv").write_text("\n".join(lines) + "\n")
        found = _over_splits(root)
    return found | {"taxa": len({one["species"] for one in kept}), "photos": len(kept)}


def _birds(data: Path) -> dict[str, Any]:
    folder, view, supply = _folder(data, 0)
    opened = with_unknown_species(folder, view)
    val = opened.view.val
    assert val is not None
    view = replace(opened.view, val=val.of_known_labels())  # no unknown species to draw lines by
    return {"simulated": False} | _measured(opened, view, supply, folder.dataset.taxa)


def _snakes(data: Path) -> dict[str, Any]:
    opened, view, supply = _folder(data, 0)
    return {"simulated": False} | _measured(opened, view, supply, opened.dataset.taxa)
