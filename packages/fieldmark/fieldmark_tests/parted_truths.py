"""Small truths in two parts and runs of known quality, as a challenge scores them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fieldmark.scoring.score_parts import draw_parts

SPECIES = tuple(
    f"Amanita_{name}" for name in ("muscaria", "phalloides", "rubescens", "citrina", "virosa", "pantherina")
)


def write_truth(folder: Path, *, items: int = 120, photos_per_unit: int = 2, public: float | None = 0.4) -> Path:
    """A truth in a folder: photos in observations, months, classes, and parts."""
    rng = np.random.default_rng(7)
    folder.mkdir(parents=True, exist_ok=True)
    labels = rng.integers(0, len(SPECIES), items)
    units = [f"o{row // photos_per_unit:03}" for row in range(items)]
    rows = [f"p{row:03},{SPECIES[label]},{units[row]}" for row, label in enumerate(labels)]
    (folder / "truth.csv").write_text("id,label,unit\n" + "\n".join(rows) + "\n")
    (folder / "classes.csv").write_text("label\n" + "\n".join(SPECIES) + "\n")
    if public is not None:
        draw_parts(units, public=public, seed=1).write_csv(folder / "parts.csv")
    return folder


def write_run(path: Path, truth: Path, *, skill: float, seed: int = 0) -> Path:
    """A run that is right with the given probability, in the format of the folder benchmark."""
    rng = np.random.default_rng(seed)
    lines = ["id,predicted"]
    for row in (truth / "truth.csv").read_text().splitlines()[1:]:
        item, label, _ = row.split(",")
        others = [name for name in SPECIES if name != label]
        order = rng.permutation(len(others))
        named = [others[place] for place in order[:2]]
        named.insert(0 if rng.random() < skill else 2, label)
        lines.append(f"{item},{'|'.join(named)}")
    path.write_text("\n".join(lines) + "\n")
    return path
