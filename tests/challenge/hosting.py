"""Small truths and runs of known quality, as a challenge gets them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from fieldmark.challenge.boards.leaderboard import Entrant
from fieldmark.challenge.scoring.score_parts import draw_parts, score_parts, truth_files
from fieldmark.scoring import Score, Scorecard

SPECIES = tuple(
    f"Amanita_{name}" for name in ("muscaria", "phalloides", "rubescens", "citrina", "virosa", "pantherina")
)
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


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


def entrants(folder: Path, skills: dict[str, float], part: str = "public") -> list[Entrant]:
    """One scored entry per team, handed in an hour after another."""
    truth = write_truth(folder / "truth")
    found = []
    for place, (team, skill) in enumerate(skills.items()):
        run = write_run(folder / f"{team}.csv", truth, skill=skill, seed=place)
        card = score_parts("folder", run, truth_files(truth), parts=[part])[part]
        found.append(Entrant(f"s{place}", team, f"{team} run", card, START + timedelta(hours=place)))
    return found


def cards(value: float = 0.5) -> dict[str, Scorecard]:
    score = Score(value, value - 0.1, value + 0.1, "jackknife-t")
    metrics = {"macro_f1_all": score, "top_1": replace(score, value=value / 2)}
    return {
        part: Scorecard("folder", "1", part, 30, 15, 3, metrics, {}, pseudo={}, unit_ids=())
        for part in ("public", "private")
    }
