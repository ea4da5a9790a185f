"""Real: how far does a public board foretell the private one? 62 entries of one team in GeoLifeCLEF 2025.

Kaggle showed a public score for each entry and, afterwards, the private one. Both are samples-averaged F1, on disjoint
parts of the same test set. The question of an entrant is whether a lead on the public board will last; that of an
organizer is how many places a rank may be off.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau, spearmanr

from fieldmark.tables.reader import read_csv
from fieldmark.tables.schema import parse_column
from studies.evidence.results import real_data

Values = NDArray[np.float64]
LEADS = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02)
DRAWS = 2000


def run() -> dict[str, Any] | None:
    """Agreement of both boards, how often a lead lasts, and how well intervals of the gap tell ranks."""
    folder = real_data("geolifeclef_2025")
    if folder is None:
        return None
    path = folder / "kaggle_scores.csv"
    with path.open("rb") as file:
        table = read_csv(file, path, required=("public_score", "private_score"))
    for name in ("public_score", "private_score"):
        table = parse_column(table, name, float, path)
    public, private = (table[name].to_numpy() for name in ("public_score", "private_score"))
    best = int(np.argmax(public))
    order = np.argsort(-private, kind="stable").argsort() + 1
    gap = private - public
    return {
        "simulated": False,
        "about": __doc__,
        "entries": len(public),
        "spearman": round(float(spearmanr(public, private).statistic), 4),
        "kendall": round(float(kendalltau(public, private).statistic), 4),
        "gap": {"mean": round(float(gap.mean()), 4), "spread": round(float(gap.std(ddof=1)), 4)},
        "public_winner": {
            "private_rank": int(order[best]),
            "behind_the_private_best": round(float(private.max() - private[best]), 4),
        },
        "leads": [_lasting(public, private, lead) for lead in LEADS],
        "rank_intervals": _rank_intervals(public, private),
    }


def _lasting(public: Values, private: Values, lead: float) -> dict[str, Any]:
    """Of pairs that are at least so far apart in public, the share whose order is the same in private."""
    kept = [
        (public[i] - public[j]) * (private[i] - private[j]) > 0
        for i, j in combinations(range(len(public)), 2)
        if abs(public[i] - public[j]) > lead
    ]
    return {"lead": lead, "pairs": len(kept), "lasts": round(float(np.mean(kept)), 4)}


def _rank_intervals(public: Values, private: Values) -> dict[str, Any]:
    """Whether intervals of ranks from the public board hold the private ranks, each entry left out in turn.

    What an entry gains or loses between the boards, beyond what all do, is drawn from the other entries; ranks over
    these draws have an interval of 95 %. Entries are epochs of a few models and no independent teams, so that this is
    kinder than a board of strangers would be.
    """
    rng = np.random.default_rng(0)
    slope, offset = np.polyfit(public, private, 1)
    residual = private - (slope * public + offset)
    ranks = (-private).argsort(kind="stable").argsort() + 1
    held, widths = [], []
    for place in range(len(public)):
        others = np.delete(residual, place)
        drawn = slope * public + offset + rng.choice(others, (DRAWS, len(public)))
        rank = (drawn > drawn[:, [place]]).sum(axis=1) + 1
        low, high = np.quantile(rank, [0.025, 0.975])
        held.append(low <= ranks[place] <= high)
        widths.append(high - low)
    return {"covers": round(float(np.mean(held)), 4), "mean_width": round(float(np.mean(widths)), 2)}
