"""Do rank intervals over units and cells together hold, and are equal models separated by chance (simulated)?

A simulated suite has six models and a number of cells. A cell has its own number of units (30 to 600) and difficulty;
each unit has a luck that all models share in part, so that hits are correlated between models as they are in real
tables. A model's skill in a cell is its skill in general, plus what this kind of cell adds for it (`cell_effect`,
in units of the latent scale; other cells like these have other effects). Hits are counted, and ranks are made by
`stats.cell_ranks.rank_over_cells` with both of its questions:

- `other_cells`: a rank is right where it holds the rank of the skill in general.
- `these_cells`: where it holds the rank of the expected mean over the cells that were drawn.

Reported are, over 2,000 suites each: how often all six intervals hold the true ranks at once (of equal models, all
ranks that they share), and how often any two of six equal models are separated. 99 % bounds are exact
(Clopper-Pearson). Power: the share of truly different pairs that are told apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr

from fieldmark.stats.cell_ranks import CellRanks, CellScores, rank_over_cells

SUITES, MODELS = 2000, 6
FEWEST_UNITS, MOST_UNITS = 30, 600
SHARED_LUCK = 0.7  # the correlation of luck between models
SKILLS = {"equal": np.zeros(MODELS), "apart": np.array([0.5, 0.4, 0.3, 0.3, 0.1, -0.2])}
CELLS, CELL_EFFECTS = (4, 8, 20), (0.0, 0.1, 0.3)
QUESTIONS = {"other_cells": True, "these_cells": False}
Values = NDArray[np.float64]


def run() -> dict[str, Any]:
    """All settings, each with both questions."""
    rows = []
    for cells in CELLS:
        for effect in CELL_EFFECTS:
            for skills in SKILLS:
                rows += study(cells, effect, skills)
                print(*rows[-2:], sep="\n", flush=True)
    return {"suites": SUITES, "models": MODELS, "level": 0.95, "rows": rows}


def study(cells: int, effect: float, skills: str) -> list[dict[str, Any]]:
    """One setting: how often ranks hold, or equal models are separated, by each question."""
    rng = np.random.default_rng([cells, int(100 * effect), len(skills)])
    counts = dict.fromkeys(QUESTIONS, 0)
    found: dict[str, list[float]] = {name: [] for name in QUESTIONS}
    for _ in range(SUITES):
        drawn, expected = simulated_suite(rng, cells, effect, SKILLS[skills])
        for name, other_cells in QUESTIONS.items():
            truth = SKILLS[skills] if other_cells else expected
            ranks = rank_over_cells(drawn, other_cells=other_cells)
            if skills == "equal" and (other_cells or effect == 0):
                counts[name] += separates(ranks)
            else:
                counts[name] += holds(ranks, truth)
                found[name].append(told_apart(ranks, truth))
    rows = []
    for name, number in counts.items():
        measured = "separated" if skills == "equal" and (name == "other_cells" or effect == 0) else "held"
        share, low, high = (round(one, 4) for one in (number / SUITES, *exact(number, SUITES)))
        row = {"cells": cells, "cell_effect": effect, "skills": skills, "question": name, measured: [share, low, high]}
        rows.append(row | ({"told_apart": round(float(np.mean(found[name])), 3)} if found[name] else {}))
    return rows


def simulated_suite(
    rng: np.random.Generator, cells: int, effect: float, skills: Values
) -> tuple[list[CellScores], Values]:
    """The scores of one suite, and what each model would score on these cells with units without end."""
    drawn, expected = [], []
    for _ in range(cells):
        units = int(np.exp(rng.uniform(np.log(FEWEST_UNITS), np.log(MOST_UNITS))))
        here = skills + rng.normal(0.0, 0.6) + effect * rng.normal(size=MODELS)
        luck = SHARED_LUCK**0.5 * rng.normal(size=units) + (1 - SHARED_LUCK) ** 0.5 * rng.normal(size=(MODELS, units))
        hits = (luck < here[:, None]).astype(np.float64)
        drawn.append(CellScores(hits.mean(axis=1), hits))
        expected.append(ndtr(here))
    return drawn, np.mean(expected, axis=0)


def holds(ranks: CellRanks, truth: Values) -> bool:
    """Whether every interval holds all ranks that the model truly has; equal ones share theirs."""
    return all(
        one.rank_low <= 1 + (truth > truth[one.run]).sum() and one.rank_high >= (truth >= truth[one.run]).sum()
        for one in ranks.standings
    )


def separates(ranks: CellRanks) -> bool:
    """Whether any two models are told apart."""
    return any(one.rank_low > 1 or one.rank_high < len(ranks.means) for one in ranks.standings)


def told_apart(ranks: CellRanks, truth: Values) -> float:
    """The share of truly different pairs that are told apart, the right way round or not."""
    models = len(truth)
    different = (truth[:, None] != truth[None, :]).sum()
    return float(sum(models - 1 - (one.rank_high - one.rank_low) for one in ranks.standings) / max(different, 1))


def exact(number: int, of: int, level: float = 0.99) -> tuple[float, float]:
    """The exact interval of a share."""
    tail = (1 - level) / 2
    low = float(betaincinv(number, of - number + 1, tail)) if number else 0.0
    return low, float(betaincinv(number + 1, of - number, 1 - tail)) if number < of else 1.0


__all__ = ["exact", "holds", "run", "separates", "simulated_suite", "study"]
