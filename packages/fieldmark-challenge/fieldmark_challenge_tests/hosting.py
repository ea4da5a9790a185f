"""Entries and scorecards as boards get them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fieldmark.scoring import Score, Scorecard
from fieldmark.scoring.score_parts import score_parts, truth_files
from fieldmark_challenge.boards.leaderboard import Entrant
from fieldmark_tests.parted_truths import write_run, write_truth

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def entrants(folder: Path, skills: dict[str, float], part: str = "public") -> list[Entrant]:
    """One scored entry per team, submitted an hour after another."""
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
