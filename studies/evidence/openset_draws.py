"""Unknown species where val has none: five sets of real photos, five draws of the species that nobody told of.

30 % of the species are in no photo of train and val, and in test as unknown. `openset` with its defaults averages four
scores, on second-order features of EfficientNet-Lite0, here at 160 px. It is measured by ROC-AUC against max softmax of
the same linear classifier, and of one on plain features, where `score=all choose=held-out` may take another score by
species kept back in turn. Seeds draw the parts and the species, but the test photos of birds and snakes are those of
their source. What is averaged had been chosen on draws like these of fungi, snakes and birds with plain features. It
was kept after other weights, shrinkages, classifiers and both kinds of features had been compared on draws from train
of these three: averages with more weight on distances gained a point, but fell below max softmax more often. Amanita
and camera traps had no part in it. Intervals are over draws, which share photos, so that other photos would vary more.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.fitting.configuration import configured_method
from fieldmark.methods.base import truth_of
from fieldmark.methods.openset import OpenSet
from fieldmark.metrics.openset import known_roc_auc
from fieldmark.models.supply import Supply
from fieldmark.questions.targets import LabelTargets
from fieldmark.releases import open_dataset
from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark.views.parts import Part, View
from studies.evidence.grids import kept_data
from studies.evidence.results import real_data
from studies.evidence.suites import lay_out

DRAWS, SHARE = 5, 0.3
SETS = {
    "camera_traps": "camera traps (no part in the choice)",
    "amanita": "Amanita (no part in the choice)",
    "fungi_genera": "genera of fungi",
    "snakes_philippines": "snakes",
    "birds_cub_odd": "birds",
}


def run() -> dict[str, Any] | None:
    """The area of every score for each set and draw, and which one was chosen."""
    if real_data("birds_cub_odd") is None:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch, "sets")
        lay_out(root)
        tasks = {f"{name}-{draw}": (name, draw) for name in SETS for draw in range(DRAWS)}
        done = kept_data("openset-draws", tasks, partial(_areas, root))
    sets = {label: [done[f"{name}-{draw}"] for draw in range(DRAWS)] for name, label in SETS.items()}
    return {"simulated": False, "about": " ".join(str(__doc__).split("\n\n", 1)[1].split()), "sets": sets}


def _areas(root: Path, task: tuple[str, int]) -> dict[str, Any]:
    name, draw = task
    view, test = _drawn(root / name, draw, "second-order")
    known = truth_of(test) >= 0
    areas = _scored(OpenSet(), view, test)[1]
    chosen, plain = _scored(OpenSet(score="all", choose="held-out"), *_drawn(root / name, draw, "features"))
    counted = {"train": len(view.train), "known": int(known.sum()), "unknown": int((~known).sum())}
    return {"roc_auc": areas, "plain": {"chosen": chosen, "roc_auc": plain}, **counted}


def _scored(method: OpenSet, view: View, test: Part) -> tuple[str, dict[str, float]]:
    """The score that was chosen, and the area of each."""
    fitted = method.fit(view)
    assert isinstance(fitted.method, OpenSet)  # it is this method with its choices made
    scores = fitted.method.unknown_scores(fitted.arrays, test.unlabeled())
    known = truth_of(test) >= 0
    return fitted.method.chosen, {
        score: round(known_roc_auc(own.astype(np.float64), known), 4) for score, own in scores.items()
    }


@lru_cache(maxsize=2)
def _supply(data: Path, output: str) -> Supply:
    """Features of a set; in second order their axes change from draw to draw, while the network looks once."""
    dataset = open_dataset("folder", data)
    configured = configured_method("openset", {"size": 160, "output": output})
    supply = configured.supply(dataset.inputs_by_name, dataset.main_input.extractor)
    return supply.keeping_maps() if output == "second-order" else supply


def _drawn(data: Path, draw: int, output: str) -> tuple[View, Part]:
    """Train and val without the unknown species, and test with them."""
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", data), seed=draw)
    dataset = opened.dataset
    names = sorted(opened.view.labels.names)
    unknown = np.random.default_rng([draw, 7]).permutation(names)[: max(round(SHARE * len(names)), 1)]
    labels = Labels(tuple(name for name in names if name not in set(unknown)))

    def part(called: str) -> Part:
        own: Part | None = getattr(opened.view, called)
        assert own is not None  # a folder has all three
        label_of = dict(opened.items[called].select("item_id", "label").iter_rows())
        codes = np.array([labels.code_of.get(label_of[item], -1) for item in own.item_ids], dtype=np.int32)
        kept = np.ones(len(codes), dtype=np.bool_) if called == "test" else codes >= 0
        return replace(own.take(kept), targets=LabelTargets(codes[kept]))

    train, val, test = part("train"), part("val"), part("test")
    supply = _supply(data, output).fit(train)
    train, val, test = (supply.supply(one) for one in (train, val, test))
    return View(labels, Taxonomy.of(labels, dataset.taxa), train, val, None, None), test
