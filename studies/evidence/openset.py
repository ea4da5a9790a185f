"""Unknown species: the score chosen on validation against max softmax, on five worlds (simulated) and on real birds.

The worlds give the paired comparison. The birds (`birds_cub_odd`) have 30 of 100 species held out as unknown: the first
30 of `numpy.random.default_rng(0).permutation(100)` over the species in alphabetical order, of which the first 15 occur
in val as unknown and the other 15 only in test. That rule was fixed before anything was measured.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.fitting import with_features
from fieldmark.fitting.configuration import configured_method
from fieldmark.fitting.unknown_table import UnknownTable, unknown_table
from fieldmark.methods.openset import OpenSet
from fieldmark.metrics.openset import known_roc_auc, known_roc_auc_without_each_unit
from fieldmark.questions.targets import LabelTargets
from fieldmark.questions.truth import Truth
from fieldmark.releases import open_dataset
from fieldmark.stats.comparison import compare
from fieldmark.stats.intervals import pseudo_values
from fieldmark.tables.labels import UNKNOWN_NAME, Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.open_benchmark import NEW_IN_TEST, SEEN_IN_VAL, Opened, open_benchmark
from fieldmark.views.parts import Part, View
from studies.evidence.results import real_data

SEEDS, SIZE = range(5), "tiny"
HELD_OUT, SEEN = 30, 15
CHOICES = ("val-unknowns", "held-out")


def run() -> dict[str, Any]:
    """Every score on each world and on the birds, and which one validation chose."""
    worlds = [_world(seed) for seed in SEEDS]
    result: dict[str, Any] = {"size": SIZE, "worlds": worlds}
    birds = _birds()
    return result | ({} if birds is None else {"birds": birds})


def _world(seed: int) -> dict[str, Any]:
    row: dict[str, Any] = {"seed": seed, "simulated": True, "chosen": {}}
    with tempfile.TemporaryDirectory() as folder:
        fieldmark.world("fungitastic", Path(folder, "world"), size=SIZE, seed=seed)
        for choose in CHOICES:
            settings = {"score": "all", "choose": choose, "size": 160}
            out = Path(folder, choose)
            result = fieldmark.fit("fungitastic/open", Path(folder, "world"), "openset", out, settings=settings)
            assert result.unknown is not None
            row["chosen"][choose] = result.unknown.chosen
            if choose == CHOICES[0]:
                row["scores"] = _values(result.unknown)
                row["photos"] = {part: card.items for part, card in result.scorecards.items()}
    print(seed, row["chosen"], {name: v["roc_auc"][0] for name, v in row["scores"]["test"].items()}, flush=True)
    return row


def _values(table: UnknownTable, group: str = "all unknown species") -> dict[str, Any]:
    """`{part: {score: {metric: [value, low, high]}}}`, to four digits."""
    return {
        part: {
            name: {metric: _triple(score) for metric, score in metrics.items()}
            for name, metrics in groups[group].items()
        }
        for part, groups in table.scores.items()
        if group in groups
    }


def _triple(score: Any) -> list[float | None]:
    return [None if number is None else round(number, 4) for number in (score.value, score.low, score.high)]


def _birds() -> dict[str, Any] | None:
    data = real_data("birds_cub_odd")
    if data is None:
        return None
    folder = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", data))
    supplied = with_features(folder, configured_method("openset", {"size": 160}))
    opened = with_unknown_species(folder, supplied)
    rows: dict[str, Any] = {"simulated": False, "species": len(opened.view.labels), "chosen": {}}
    for choose in CHOICES:
        fitted = OpenSet(score="all", choose=choose).fit(replace(opened.view, test=None))
        assert isinstance(fitted.method, OpenSet)
        rows["chosen"][choose] = fitted.method.chosen
        if choose == CHOICES[0]:
            table = unknown_table(opened, opened.view, {"val": fitted, "test": fitted})
            assert table is not None
            rows["scores"] = _values(table)
            rows["ahead_of_max_softmax"] = _ahead(table, opened.truth["test"])
            for name in (SEEN_IN_VAL, NEW_IN_TEST):
                rows[name] = _values(table, name)
            for part, truth in opened.truth.items():
                strange = int((truth.rows["label"] == UNKNOWN_NAME).sum())
                rows[f"{part}_photos"] = {"known": len(truth.items) - strange, "unknown": strange}
    print("birds", rows["chosen"], {name: v["roc_auc"][0] for name, v in rows["scores"]["test"].items()}, flush=True)
    return rows


def _ahead(table: UnknownTable, truth: Truth) -> list[float | None]:
    """ROC-AUC of the chosen score minus that of max softmax on test, with the paired interval over photos."""
    scores = table.values["test"]
    known = (truth.rows["label"] != UNKNOWN_NAME).to_numpy()
    unit = np.unique(np.array(truth.units), return_inverse=True)[1].astype(np.int32)
    values, pseudo = [], []
    for name in (table.chosen, "max-softmax"):
        score = scores[name].to_numpy().astype(np.float64)
        values.append(known_roc_auc(score, known))
        pseudo.append(pseudo_values(values[-1], known_roc_auc_without_each_unit(score, known, unit)))
    apart = compare(np.array(values), np.stack(pseudo)).differences[0]
    numbers = (apart.value, apart.interval.low, apart.interval.high)
    return [None if number is None else round(number, 4) for number in numbers]


def with_unknown_species(folder: Opened, supplied: View) -> Opened:
    """The birds as an open set, by the rule at the top of this file."""
    names = sorted(supplied.labels.names)
    order = np.random.default_rng(0).permutation(len(names))[:HELD_OUT]
    seen = {names[i] for i in order[:SEEN]}
    unknown = {names[i] for i in order}
    known = Labels(tuple(name for name in supplied.labels.names if name not in unknown))
    benchmark = replace(
        folder.benchmark,
        name="birds_cub_odd, open",
        task=replace(BENCHMARKS["fungitastic/open"].task, run=folder.benchmark.task.run),
    )
    parts, truth = {}, {}
    for name, allowed in (("train", set()), ("val", seen), ("test", unknown)):
        part: Part | None = getattr(supplied, name)
        assert part is not None
        label_of = dict(folder.items[name].select("item_id", "label").iter_rows())
        labels = np.array([label_of[item] for item in part.item_ids])
        kept = np.array([label in known.code_of or label in allowed for label in labels])
        targets = None if name == "test" else LabelTargets(known.encode(labels[kept]))
        parts[name] = replace(part.take(kept), targets=targets)
        if name != "train":
            truth[name] = _truth(parts[name], labels[kept], known, seen)
    view = View(known, Taxonomy.of(known, folder.dataset.taxa), parts["train"], parts["val"], None, parts["test"])
    return replace(folder, benchmark=benchmark, view=view, truth=truth)


def _truth(part: Part, labels: np.ndarray, known: Labels, seen: set[str]) -> Truth:
    coded = [label if label in known.code_of else UNKNOWN_NAME for label in labels]
    both = [SEEN_IN_VAL, NEW_IN_TEST]
    groups = [both if label in known.code_of else [SEEN_IN_VAL if label in seen else NEW_IN_TEST] for label in labels]
    several = len({group[0] for group in groups if len(group) == 1}) == 2
    rows = pl.DataFrame({"item_id": part.item_ids, "label": coded})
    units = tuple(part.items["observation_id"])
    return Truth(rows, part.item_ids, units, pl.DataFrame({"unknown_species": groups} if several else {}))
