"""Small releases of painted squares, and runs on them whose answers are chosen by hand."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.releases import open_dataset
from fieldmark.runs.label_scores import LabelScores, Scale
from fieldmark.runs.provenance import Run
from fieldmark.scoring import SCORECARD_FILE, score_predictions
from fieldmark.views.open_benchmark import Opened, open_benchmark

Counts = Mapping[str, int]
MakeRelease = Callable[..., Path]
MakeRun = Callable[..., Path]
MONTHS = (1, 5, 5, 9, 10)


@dataclass
class Release:
    """A folder release in the making; two photos in a row share an observation."""

    root: Path
    taxa: list[dict[str, str]] = field(default_factory=list)
    rows: list[dict[str, str]] = field(default_factory=list)

    def add(self, label: str, counts: Counts, *, dated: bool, located: bool) -> None:
        rng = np.random.default_rng(len(self.rows))
        for part, count in counts.items():
            folder = self.root / part / label
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(count):
                name = f"{part}-{len(self.rows):05d}.jpg"
                color = tuple(int(value) for value in rng.integers(0, 255, 3))
                Image.new("RGB", (12, 9), color).save(folder / name)
                month = MONTHS[len(self.rows) % len(MONTHS)]
                self.rows.append(
                    {
                        "file": f"{part}/{label}/{name}",
                        "observation": f"{label}-{part}-{number // 2}",
                        "date": f"2021-{month:02d}-03" if dated else "",
                    }
                    | (_place(len(self.rows)) if located else {})
                )

    def close(self, *, world: bool) -> Path:
        _write_table(self.root / "observations.csv", self.rows)
        if self.taxa:
            _write_table(self.root / "taxa.csv", self.taxa)
        if world:
            (self.root / "WORLD.json").write_text(json.dumps({"fieldmark_world": 1, "simulated": True}))
        return self.root


def _place(number: int) -> dict[str, str]:
    return {"latitude": f"{50 + number % 7 / 4}", "longitude": f"{8 + number % 5 / 2}", "habitat": "<i>bog</i>"}


def _write_table(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_release(
    root: Path,
    classes: Mapping[str, Counts],
    *,
    taxa: Mapping[str, Mapping[str, str]] | None = None,
    dated: bool = False,
    located: bool = False,
    world: bool = False,
) -> Path:
    """Writes a release: `{label: {part: photos}}`, and what is known of each label."""
    release = Release(root, [{"label": label, **about} for label, about in (taxa or {}).items()])
    for label, counts in classes.items():
        release.add(label, counts, dated=dated, located=located)
    return release.close(world=world)


def write_run(
    folder: Path,
    root: Path,
    scores: Callable[[Opened, np.ndarray], np.ndarray],
    *,
    scale: Scale = "log_probability",
    benchmark: str = "folder",
    **about: Any,
) -> Path:
    """Writes the folder of a run whose answers are chosen by a function `(opened, truth codes) -> scores`."""
    declared = BENCHMARKS[benchmark]
    opened = open_benchmark(declared, open_dataset(declared.dataset, root, declared.subset))
    run = Run(
        **{
            "benchmark": benchmark,
            "version": declared.version,
            "method": "by hand",
            "options": {"pen": "blue"},
            "sees": "item",
            "features": None,
            "steps": [],
            "trained_on": ["train"],
            "seed": 0,
            "data": str(root),
            "data_digest": opened.dataset.digest,
            "world": opened.dataset.release.world,
            "seconds": {"fit": 1.5},
        }
        | about
    )
    run.write(folder)
    for part, truth in opened.truth.items():
        labels = opened.view.labels
        codes = labels.encode(truth.rows["label"])
        values = scores(opened, codes).astype(np.float32)
        predictions = LabelScores(truth.items, labels, values, scale)
        predictions.write(folder / "predictions" / f"{part}.parquet")
        card = score_predictions(declared, predictions, truth, labels=labels, split=part, run=run)
        if part == "test" or "test" not in opened.truth:
            card.write(folder / SCORECARD_FILE)
    return folder


def soft(answers: np.ndarray, n_classes: int, confidence: np.ndarray | float = 0.7) -> np.ndarray:
    """Log-probabilities that give each answer its confidence and share the rest among the other labels."""
    stated = np.broadcast_to(np.asarray(confidence, dtype=np.float64), answers.shape)
    probabilities = np.repeat(((1 - stated) / max(n_classes - 1, 1))[:, None], n_classes, axis=1)
    probabilities[np.arange(len(answers)), answers] = stated
    return np.log(np.maximum(probabilities, 1e-9))


def noisy(opened: Opened, truth: np.ndarray) -> np.ndarray:
    """Answers that are right two times out of three, with varying confidence, the same in each call."""
    rng = np.random.default_rng(7)
    size = len(opened.view.labels)
    wrong = rng.random(len(truth)) < 1 / 3
    answers = np.where(wrong, rng.integers(0, size, len(truth)), truth)
    return soft(answers, size, rng.uniform(0.4, 0.99, len(truth)))


def perfect(opened: Opened, truth: np.ndarray) -> np.ndarray:
    """Answers that are all right."""
    return soft(truth, len(opened.view.labels), 0.9)


FUNGI = {
    "Amanita muscaria": {"train": 12, "val": 2, "test": 8},
    "Amanita rubescens": {"train": 6, "val": 2, "test": 6},
    "Boletus edulis": {"train": 5, "val": 2, "test": 4},
    "Boletus <b>&nus": {"train": 3, "val": 2, "test": 5},
    "Galerina marginata": {"train": 1, "test": 0, "val": 2},
}
FUNGI_TAXA = {
    label: {
        "genus": label.split()[0],
        "poisonous": "true" if label.split()[1] in ("muscaria", "marginata") else "false",
    }
    for label in FUNGI
}
