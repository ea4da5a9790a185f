"""Few labels and many unlabeled photos of real birds: methods on the same frozen features, ten draws of labels.

Half of the 100 species of `birds_cub_odd` are in-class, drawn once within groups of names (warblers, gulls). Of each,
5 photos are labeled and 5 are val; all else is unlabeled, with all photos of the other half mixed in. Test are the
official test photos of the in-class species. The group of names stands for the phylum. Every setting is chosen on val
or stays at its default, but that components and steps were lowered for time. The best use of labels alone is the one of
four heads with the highest top-1 on test, which favors it. That prototypes are compared by distance, move little by
unlabeled photos and take discriminants of taxa beside their own was tried on the test photos of the first five draws;
draws 5 to 9 were answered once. The supervised head standardizes and reduces features by its labels alone, others of
its kind by unlabeled photos as well: a part of what they gain, and all of it where next to nothing is taught, may be
that. The network was trained on ImageNet, which contains some of these photos: what it has seen helps all methods
alike, and the gains say little about networks that have not.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import t as student

import fieldmark
from fieldmark.fitting.configuration import configured_method
from fieldmark.fitting.fit_part import shown_to, with_features
from fieldmark.methods import METHODS as METHODS_BY_NAME
from fieldmark.methods import Method
from fieldmark.methods.semi.heads import SemiHead
from fieldmark.questions.targets import LabelTargets
from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark.views.parts import Part, View
from studies.evidence.grids import kept_data
from studies.evidence.results import real_data
from studies.evidence.semi_draws import draw_parts, group_of, half_of_species, listed

DRAWS = 10
SIZE_PX = 160
TAILS = ("balanced", "long-tailed")
# The same for all heads by logistic regression: fewer components and steps than by default, for the time that ten draws
# take; not tuned.
SHARED: dict[str, Any] = {"components": 128, "iterations": 50}
LABELS_ALONE = ("supervised", "ridge", "lda", "prototypes")
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in LABELS_ALONE},
    "prototypes-unlabeled": ("prototypes-unlabeled", {}),
    "prototypes-coarse": ("prototypes-coarse", {}),
    "oracle": ("oracle", {}),
    "pseudo-label": ("pseudo-label", {}),
    "pseudo-label, aligned": ("pseudo-label", {"align": True}),
    "pseudo-label, half kept": ("pseudo-label", {"keep": 0.5}),
    "pseudo-label, SoftMatch": ("pseudo-label", {"thresholds": "softmatch"}),
    "pseudo-label, FreeMatch": ("pseudo-label", {"thresholds": "freematch"}),
    "pseudo-label-coarse": ("pseudo-label-coarse", {}),
    "fixmatch (features)": ("fixmatch", {"steps": 100}),
    "self-training": ("self-training", {}),
    "label-propagation": ("label-propagation", {}),
    "coarse": ("coarse", {}),
}


def run() -> dict[str, Any] | None:
    """Top-1 of each method, and by how much it is ahead of the supervised head, over photos and draws."""
    data = real_data("birds_cub_odd")
    if data is None:
        return None
    photos, features = bird_features(data)
    train, test = listed(data)
    inside = half_of_species(sorted(train))
    tails = {}
    for tail in TAILS:
        hits: dict[str, list[Any]] = {name: [] for name in METHODS}
        used: dict[str, list[Any]] = {name: [] for name in METHODS}
        for draw in range(DRAWS):
            view, hidden, asked = bird_view(photos, features, draw_parts(train, test, inside, draw, tail))
            tasks = {f"{tail}-{draw}-{name}": name for name in METHODS}
            done = kept_data("semi", tasks, partial(_answer, view, hidden, asked))
            for own, name in zip(done.values(), METHODS, strict=True):
                hits[name].append(np.array(own["right"], dtype=np.float64))
                used[name].append(own["taught"])
            print(tail, draw, {name: round(float(own[-1].mean()), 3) for name, own in hits.items()}, flush=True)
        best = max(LABELS_ALONE, key=lambda name: float(np.mean(hits[name])))
        tails[tail] = {
            "labels": len(view.train), "unlabeled": len(hidden), "unlabeled_in_class": int((hidden >= 0).sum()),
            "test": len(asked), "labels_alone": best,
            "rows": {name: _row(hits[name], hits["supervised"], hits[best], used[name]) for name in METHODS},
        }  # fmt: skip
    return {
        "simulated": False,
        "about": about(),
        "draws": DRAWS,
        "size_px": SIZE_PX,
        "species": len(inside),
        "sets": tails,
    }


def about() -> str:
    """What a reader must know."""
    return " ".join(str(__doc__).split("\n\n")[1].split())


def bird_features(data: Path) -> tuple[dict[str, int], Part]:
    """All photos with their features, and the row of each by its path."""
    opened = open_benchmark(fieldmark.benchmark("folder"), fieldmark.dataset("folder", data), seed=0)
    view = with_features(opened, configured_method("linear", {"size": SIZE_PX}))
    parts = [part.unlabeled() for part in (view.train, view.val, view.test) if part is not None]
    together = Part.concat(parts)
    path_of = opened.dataset.media_paths
    rows = {path_of[one]: row for row, one in enumerate(together.items["media_ids"].list.first())}
    return rows, together


def bird_view(
    rows: dict[str, int], photos: Part, parts: dict[str, list[tuple[str, str]]]
) -> tuple[View, np.ndarray[Any, np.dtype[np.int32]], Part]:
    """The view of one draw, the hidden labels, and test with its labels."""
    inside = sorted({species for _, species in parts["train"]})
    labels = Labels(tuple(inside))
    taxa = pl.DataFrame({"label": inside, "phylum": [group_of(one) for one in inside]})
    taxonomy = Taxonomy.of(labels, taxa)

    def part(name: str) -> Part:
        own = photos.take(np.array([rows[path] for path, _ in parts[name]]))
        return replace(own, targets=LabelTargets(labels.encode([species for _, species in parts[name]])))

    unlabeled = part("unlabeled")
    assert unlabeled.targets is not None  # given above
    hidden = unlabeled.targets.codes
    names = taxonomy.ranks["phylum"][0].names
    groups = [group_of(species) for _, species in parts["unlabeled"]]
    coarse = Labels((*names, *sorted(set(groups) - set(names)))).encode(groups)
    told = LabelTargets(np.full(len(hidden), -1, dtype=np.int32), coarse={"phylum": coarse})
    view = View(labels, taxonomy, part("train"), part("val"), replace(unlabeled, targets=told), None)
    return view, hidden, part("test")


def method_of(name: str) -> Method:
    """One of the methods with its settings."""
    registered, settings = METHODS[name]
    shared = SHARED if issubclass(METHODS_BY_NAME[registered], SemiHead) else {}
    return configured_method(registered, {**shared, **settings}).method


def _answer(view: View, hidden: Any, asked: Part, name: str) -> dict[str, Any]:
    """What one method got right in one draw, and what it taught unlabeled photos as."""
    method = method_of(name)
    fitted = method.fit(shown_to(method, view, hidden))
    right = fitted.predict(asked, view.labels).top(1)[:, 0] == asked.truth
    return {"right": right.astype(int).tolist(), "taught": _taught(fitted.arrays, hidden)}


def _taught(arrays: Any, hidden: Any) -> dict[str, float] | None:
    """How much of the weight went to out-of-class photos, and how much of the rest was taught rightly."""
    if "taught_weight" not in arrays:
        return None
    weight, inside = arrays["taught_weight"].astype(np.float64), hidden >= 0
    total, own = max(float(weight.sum()), 1e-12), max(float(weight[inside].sum()), 1e-12)
    right = weight[inside & (arrays["taught_as"] == hidden)].sum()
    return {
        "taught": float((weight > 0).mean()),
        "weight_on_out_of_class": float(weight[~inside].sum()) / total,
        "in_class_right": float(right) / own,
    }


def _row(hits: list[Any], base: list[Any], best: list[Any], used: list[Any]) -> dict[str, Any]:
    own, other = np.stack(hits), np.stack(base)
    row: dict[str, Any] = {
        "top_1": [round(float(value), 4) for value in own.mean(axis=1)],
        "mean_top_1": round(float(own.mean()), 4),
        "ahead_of_supervised": interval(own - other),
        "ahead_of_labels_alone": interval(own - np.stack(best)),
    }
    if all(one is not None for one in used):
        row["unlabeled"] = {key: round(float(np.mean([one[key] for one in used])), 4) for key in used[0]}
    return row


def against_supervised(own: Any, base: Any, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """How a way of training stands beside labels alone.

    Args:
        own: Whether each photo was answered rightly, by draw.
        base: The same of labels alone.
        runs: What was noted about its trainings.
    """
    sure = {
        name: round(float(np.mean([run[name] for run in runs])), 4) for name in ("sure_in_class", "sure_out_of_class")
    }
    ahead = interval(own - base) if len(own) > 1 else None
    return {"draws": len(own), "mean_top_1": round(float(own.mean()), 4), "ahead_of_supervised": ahead, **sure}


def interval(differences: Any) -> list[float]:
    """Mean, low and high at 95 % of differences by draw and photo; variances over draws and photos add up."""
    by_photo, by_draw = differences.mean(axis=0), differences.mean(axis=1)
    parts = [(float(own.var(ddof=1)) / len(own), len(own) - 1) for own in (by_photo, by_draw)]
    variance = sum(part for part, _ in parts)
    mean = float(differences.mean())
    if not variance:
        return [round(mean, 4)] * 3
    reach = float(student.ppf(0.975, variance**2 / sum(part**2 / count for part, count in parts))) * variance**0.5
    return [round(value, 4) for value in (mean, mean - reach, mean + reach)]
