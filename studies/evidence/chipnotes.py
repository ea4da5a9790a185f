"""Real birds by ear: `birds_chipnotes`, twenty species, five folds by source recording."""

from __future__ import annotations

import csv
import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import fieldmark
from fieldmark.features.birdnet import BirdNet
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.predictions import read_predictions
from fieldmark.scoring import Scorecard
from studies.evidence.results import real_data, rounded

FOLDS, SEED = 5, 0
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "frequent": ("frequent", {}),
    "centroid, log-mel": ("centroid", {}),
    "linear, log-mel": ("linear", {}),
    "centroid, BirdNET embedding": ("centroid", {"backbone": "birdnet"}),
    "linear, BirdNET embedding": ("linear", {"backbone": "birdnet"}),
    "BirdNET as it is": ("birdnet", {}),
}
REMARK = (
    "BirdNET was trained on xeno-canto, where these recordings come from: it may have heard them. "
    "Log-mel features have not."
)


def run() -> dict[str, Any] | None:
    """Top-1 of each method over all clips, each answered by a model that did not hear its source recording."""
    data = real_data("birds_chipnotes")
    if data is None:
        return None
    clips = list_clips(data)
    cards: dict[str, Scorecard] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (method, settings) in RUNS.items():
            answered = []
            for fold in range(FOLDS):
                root, out = Path(folder, f"fold-{fold}"), Path(folder, "run")
                if not root.exists():
                    _write_fold(root, clips, fold)
                fieldmark.fit("folder", root, method, out, settings=settings, seed=SEED, overwrite=True)
                answered.append(read_predictions(out / "predictions" / "test.parquet"))
            cards[name] = _score(answered, clips)
            print(name, rounded(cards[name])["top_1"], flush=True)
    compared = fieldmark.compare(cards, metric="top_1").to_json()
    pair = {"linear, BirdNET embedding", "centroid, log-mel"}
    difference = next(one for one in compared["differences"] if {one["first"], one["second"]} == pair)
    return {
        "simulated": False,
        "clips": len(clips),
        "sources": len({clip["source"] for clip in clips}),
        "species": len({clip["label"] for clip in clips}),
        "folds": FOLDS,
        "remark": REMARK,
        "names_birdnet_does_not_have": _unknown_to_birdnet({clip["label"] for clip in clips}),
        "rows": {name: rounded(card) for name, card in cards.items()},
        "difference": difference,
    }


def _unknown_to_birdnet(names: set[str]) -> list[str]:
    """Common names that BirdNET's list spells otherwise, so that BirdNET as it is cannot answer with them."""
    known = {common for _, common in BirdNet().species}
    return sorted(names - known)


def list_clips(data: Path) -> list[dict[str, Any]]:
    """One row per clip: file, species, source recording and fold. The folds share out the sources of each species."""
    common = {row["species_code"]: row["common_name"] for row in json.loads((data / "clips.json").read_text())}
    sources: dict[str, list[str]] = defaultdict(list)
    clips: list[dict[str, Any]] = []
    for path in sorted(data.glob("*/*.flac")):
        source = "XC" + path.stem.split("_")[1]
        clips.append({"path": path, "label": common[path.parent.name], "source": source})
        if source not in sources[path.parent.name]:
            sources[path.parent.name].append(source)
    rng = np.random.default_rng(SEED)
    fold_of: dict[str, int] = {}
    for names in sources.values():
        fold_of |= {source: place % FOLDS for place, source in enumerate(rng.permutation(names).tolist())}
    return [{**clip, "fold": fold_of[clip["source"]]} for clip in clips]


def _write_fold(root: Path, clips: list[dict[str, Any]], fold: int) -> None:
    """A folder of links in which one fold is test and val is drawn from the rest, by source."""
    rows = []
    for clip in clips:
        part = "test" if clip["fold"] == fold else "train"
        place = root / part / clip["label"] / clip["path"].name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(clip["path"].resolve())
        rows.append({"file": str(place.relative_to(root)), "observation": clip["source"]})
    with (root / "observations.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["file", "observation"])
        writer.writeheader()
        writer.writerows(rows)


def _score(answered: list[LabelScores], clips: list[dict[str, Any]]) -> Scorecard:
    """One scorecard over all folds; the unit is the source recording."""
    by_item = {item: (fold, row) for fold, found in enumerate(answered) for row, item in enumerate(found.items)}
    labels = answered[0].labels
    items = [clip["path"].name for clip in clips]
    rows = [answered[fold].scores[row] for fold, row in (by_item[item] for item in items)]
    pooled = LabelScores(tuple(items), labels, np.stack(rows), answered[0].scale)
    return fieldmark.score(
        "folder",
        pooled,
        truth={
            "id": items,
            "label": [clip["label"] for clip in clips],
            "unit": [clip["source"] for clip in clips],
        },
        classes={"label": list(labels.names)},
    )
