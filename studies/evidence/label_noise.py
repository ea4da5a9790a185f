"""Planted wrong labels: how many does `fieldmark check --labels` find, and how many right ones does it doubt?

A share of the labels is made wrong, drawn at random: *any* puts another label in their place, each as likely as the
other; *look-alike* the label that an out-of-fold model on the clean labels finds the likeliest of all others for that
very photo, the hardest case there is. Then the labels are checked as `check --labels` does: a linear classifier on
frozen features (EfficientNet-Lite0, 160 px), its penalty chosen on val with its wrong labels, five folds. Found: of the
planted ones, how many are doubted. Right: of the doubted ones, how many were planted. First: of as many as were
planted, from the head of the order of doubt among all labels, how many were planted. The labels of the real photos
have errors of their own, which count against "right". The unit is the seed of the draw (worlds: of the world and the
draw). For the time it takes, every fourth species of the birds takes part, and worlds are tiny.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.fitting import with_features
from fieldmark.fitting.configuration import configured_method
from fieldmark.identification.review.label_noise import all_labeled, out_of_fold
from fieldmark.methods.linear import Linear
from fieldmark.questions.targets import LabelTargets
from fieldmark.releases import open_dataset
from fieldmark.stats.intervals import interval
from fieldmark.stats.label_doubts import label_doubts
from fieldmark.tables.labels import Labels
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark.views.parts import View
from studies.evidence.results import read_result, real_data, write_result

RATES, KINDS, SEEDS, SIZE_PX = (0.05, 0.1, 0.2), ("any", "look-alike"), range(3), 160
# Each real folder, what it is called, and every how many-th of its classes takes part, for the time it takes.
REAL = {"fungi_genera": ("real fungi, 9 genera", 1), "birds_cub_odd": ("real birds, 25 species", 4)}
WORLDS = "tiny worlds of fungi"
Codes = NDArray[np.int32]


def run() -> dict[str, Any] | None:
    """Found, right and first for each place, kind and rate; what is done is not done again."""
    earlier = read_result("label_noise") or {}
    rows: list[dict[str, Any]] = list(earlier.get("rows", []))
    for name, (title, every) in REAL.items():
        data = real_data(name)
        if data is None:
            continue
        for seed in SEEDS:
            rows = _with(rows, title, seed, data, every)
    for seed in SEEDS:
        if not _done(rows, WORLDS, seed):
            with tempfile.TemporaryDirectory() as folder:
                fieldmark.world("folder", Path(folder, "world"), size="tiny", seed=seed)
                rows = _with(rows, WORLDS, seed, Path(folder, "world"))
    return _summary(rows)


def _done(rows: list[dict[str, Any]], title: str, seed: int) -> bool:
    return any(row["place"] == title and row["seed"] == seed for row in rows)


def _with(rows: list[dict[str, Any]], title: str, seed: int, data: Path, every: int = 1) -> list[dict[str, Any]]:
    if _done(rows, title, seed):
        return rows
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", data), seed=seed)
    view = all_labeled(opened, with_features(opened, configured_method("linear", {"size": SIZE_PX})))
    view = _some_classes(view, every)
    clean, whole = out_of_fold(Linear(), view, folds=5, seed=seed)
    assert whole.truth is not None  # all of them are labeled
    doubted = label_doubts(clean, whole.truth).doubted
    new = [{"place": title, "seed": seed, "kind": "none", "rate": 0.0, "labels": len(whole), "doubted": _n(doubted)}]
    for kind in KINDS:
        for rate in RATES:
            new.append(
                {"place": title, "seed": seed, "kind": kind, "rate": rate, **_plant(view, clean, kind, rate, seed)}
            )
            print(new[-1], flush=True)
    write_result("label_noise", _summary([*rows, *new]))
    return [*rows, *new]


def _some_classes(view: View, every: int) -> View:
    """The view with every so many-th class alone."""
    assert view.val is not None and view.train.truth is not None and view.val.truth is not None  # all are labeled
    labels = Labels(view.labels.names[::every])
    parts = {}
    for name, part, truth in (("train", view.train, view.train.truth), ("val", view.val, view.val.truth)):
        kept = truth % every == 0
        parts[name] = replace(part.take(kept), targets=LabelTargets((truth[kept] // every).astype(np.int32)))
    return replace(view, labels=labels, train=parts["train"], val=parts["val"], test=None, unlabeled=None)


def _n(flags: NDArray[np.bool_]) -> int:
    return int(flags.sum())


def _plant(view: View, clean: NDArray[np.float32], kind: str, rate: float, seed: int) -> dict[str, Any]:
    """Makes labels wrong, checks them, and counts."""
    assert view.val is not None and view.train.truth is not None and view.val.truth is not None  # all are labeled
    truth = np.concatenate([view.train.truth, view.val.truth])
    rng = np.random.default_rng([seed, round(100 * rate)])
    wrong = np.zeros(len(truth), dtype=np.bool_)
    wrong[rng.permutation(len(truth))[: round(rate * len(truth))]] = True
    labels = truth.copy()
    if kind == "any":
        shift = rng.integers(1, len(view.labels), size=_n(wrong))
        labels[wrong] = (truth[wrong] + shift) % len(view.labels)
    else:
        others = clean.copy()
        others[np.arange(len(truth)), truth] = -1
        labels[wrong] = others.argmax(axis=1)[wrong]
    n = len(view.train)
    noisy = replace(
        view,
        train=replace(view.train, targets=LabelTargets(labels[:n])),
        val=replace(view.val, targets=LabelTargets(labels[n:])),
    )
    probabilities, _ = out_of_fold(Linear(), noisy, folds=5, seed=seed)
    doubts = label_doubts(probabilities, labels)
    first = np.argsort(doubts.margin, kind="stable")[: _n(wrong)]
    return {
        "planted": _n(wrong),
        "doubted": _n(doubts.doubted),
        "found": round(_n(doubts.doubted & wrong) / _n(wrong), 4),
        "right": round(_n(doubts.doubted & wrong) / max(1, _n(doubts.doubted)), 4),
        "first": round(_n(wrong[first]) / _n(wrong), 4),
    }


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    places: dict[str, Any] = {}
    for place in dict.fromkeys(row["place"] for row in rows):
        own = [row for row in rows if row["place"] == place]
        clean = [row for row in own if row["kind"] == "none"]
        places[place] = {
            "labels": clean[0]["labels"],
            "doubted_as_they_are": _mean([row["doubted"] / row["labels"] for row in clean]),
            "rates": [
                {
                    "kind": kind,
                    "rate": rate,
                    **{
                        key: _mean([row[key] for row in own if (row["kind"], row["rate"]) == (kind, rate)])
                        for key in ("found", "right", "first")
                    },
                }
                for kind in KINDS
                for rate in RATES
            ],
        }
    about = " ".join(str(__doc__).split("\n\n", 1)[1].split())
    return {"simulated": f"only {WORLDS}", "about": about, "places": places, "rows": rows}


def _mean(values: list[float]) -> list[float | None]:
    mean = float(np.mean(values))
    if len(values) < 2:
        return [round(mean, 4), None, None]
    bounds = interval(mean, np.array(values))
    return [None if one is None else round(one, 4) for one in (mean, bounds.low, bounds.high)]
