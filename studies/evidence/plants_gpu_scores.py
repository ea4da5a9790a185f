"""What the networks of `plants_gpu` come to, beside sheet prototypes and `align` on the same frozen features."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.features.alignment import TwoDomains, Ways, align_classes
from fieldmark.features.embeddings import unit_rows
from studies.evidence import plants
from studies.evidence.plants_gpu import FOLDS, SETTINGS, asked_in, file_name
from studies.evidence.results import write_result

FIELD_SHARE = 0.5
# On features of a trained network `align` cannot choose inside: the network has seen the photos that it would hide.
FIXED, FIXED_BIAS = Ways(), 0.08
BASELINE, ALIGNED = "sheet prototypes, frozen", "align, frozen"


def score(listing: Path, folder: Path) -> None:
    """Writes plants_gpu.json, and plants.json with the frozen features from the same run."""
    listed = json.loads(listing.read_text())
    frozen = np.load(folder / "frozen.npz")
    write_result("plants_gpu", networks(listed, folder, frozen["zooms"]), "python -m studies.evidence.plants_gpu score")
    result = plants.run({views: dict(zip(listed["file"], frozen[views], strict=True)) for views in frozen.files})
    if result is not None:
        write_result("plants", result)


def networks(listed: Mapping[str, Any], folder: Path, frozen: NDArray[np.float32]) -> dict[str, Any]:
    """Every network, and all of them together, on unseen and seen species."""
    ranks: dict[str, dict[str, dict[str, tuple[float, float]]]] = {}
    for fold in range(FOLDS + 1):
        asked, learned = asked_in(dict(listed), fold)
        answers = {
            BASELINE: _prototypes(listed, frozen, learned, asked),
            ALIGNED: _aligned(listed, frozen, learned, asked),
        }
        for name in SETTINGS:
            said = np.load(folder / f"{file_name(name)}-{fold}.npz")
            for called in said.files:
                if called != "features":
                    answers[f"{name}: {called}"] = said[called]
            answers[f"{name}: align on its features"] = _aligned(
                listed, said["features"].astype(np.float32), learned, asked
            )
        members = {"everything": list(answers), "align on all": [name for name in answers if "align" in name]}
        for called, names in members.items():
            answers[f"ensemble: {called}"] = np.mean([_standard(answers[name]) for name in names], axis=0)
        for name, scores in answers.items():
            _note(ranks.setdefault(name, {}), listed, scores, asked, unseen=fold < FOLDS)
    rows: dict[str, Any] = {}
    for name, groups in ranks.items():
        rows[name] = {}
        for place, unit in enumerate(("by photo", "by plant")):
            means = {group: {one: pair[place] for one, pair in values.items()} for group, values in groups.items()}
            base = {one: pair[place] for one, pair in ranks[BASELINE]["unseen"].items()}
            rows[name][unit] = {group: plants.summary(values) for group, values in means.items()}
            rows[name][unit]["over sheet prototypes"] = plants.difference(means["unseen"], base)
    about = " ".join(str(plants.__doc__).split("\n\n", 1)[0].split())
    return {"simulated": False, "about": about, "folds": FOLDS, "networks": rows}


def _lesson(listed: Mapping[str, Any], features: NDArray[np.float64], learned: NDArray[np.bool_]) -> TwoDomains:
    labels, field = np.array(listed["label"]), np.array(listed["field"])
    plant = np.unique(listed["plant"], return_inverse=True)[1]
    none = np.zeros(0, dtype=np.int64)
    taxa = tuple(np.array(codes) for codes in listed["taxa"].values())
    return TwoDomains(
        features[learned],
        labels[learned].astype(np.int32),
        field[learned],
        plant[learned],
        (none, none),
        listed["classes"],
        taxa,
    )


def _aligned(
    listed: Mapping[str, Any], features: NDArray[np.float32], learned: NDArray[np.bool_], asked: NDArray[np.bool_]
) -> NDArray[Any]:
    unit = unit_rows(features).astype(np.float64)
    lesson = _lesson(listed, unit, learned)
    classes = align_classes(lesson, FIXED)
    cosines = classes.in_field(unit[asked]) @ classes.prototypes(FIELD_SHARE).T
    return np.asarray(cosines + FIXED_BIAS * ~lesson.photographed)


def _prototypes(
    listed: Mapping[str, Any], features: NDArray[np.float32], learned: NDArray[np.bool_], asked: NDArray[np.bool_]
) -> NDArray[Any]:
    labels, sheets = np.array(listed["label"]), learned & ~np.array(listed["field"])
    unit = unit_rows(features)
    sums = np.zeros((listed["classes"], unit.shape[1]), dtype=np.float32)
    np.add.at(sums, labels[sheets], unit[sheets])
    return np.asarray(unit[asked] @ unit_rows(sums).T)


def _standard(scores: NDArray[Any]) -> NDArray[Any]:
    return np.asarray((scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True))


def _note(
    groups: dict[str, dict[str, tuple[float, float]]],
    listed: Mapping[str, Any],
    scores: NDArray[Any],
    asked: NDArray[np.bool_],
    *,
    unseen: bool,
) -> None:
    """Notes the mean reciprocal rank of each species, by photo and by plant."""
    labels, field, test = (np.array(listed[name]) for name in ("label", "field", "test"))
    photographed = set(labels[field & ~test].tolist())
    plant = np.array(listed["plant"])[asked]
    for label in np.unique(labels[asked]):
        rows = labels[asked] == label
        group = "unseen" if unseen else "with field photos" if label in photographed else "without"
        pooled = np.stack([scores[rows & (plant == one)].mean(axis=0) for one in np.unique(plant[rows])])
        pair = tuple(
            float(plants.reciprocal_ranks(part, np.full(len(part), label)).mean()) for part in (scores[rows], pooled)
        )
        groups.setdefault(group, {})[str(label)] = (pair[0], pair[1])
