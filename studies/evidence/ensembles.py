"""Ensembles of three against their best member, on real snakes, plants, birds and places.

Snakes: logistic regression on the frozen features of three photo networks (EfficientNet-Lite0, 1 and 2). Plants (sheets
and field photos), birds (CUB, odd species): three methods on the features of one network. Places (South America of
disdat): a forest, a network on coordinates and additive splines. Each member is fitted alone; the means are made of
their stored predictions (`fieldmark ensemble`), and once the members are fitted together with weights by folds of train
(`fit --method ensemble`; not for places, whose weights have a study of their own). All at default settings, nothing was
changed after looking at test. The best member is the one that is best on test, which no one could have known: the
comparison is hard on the ensemble. Differences are paired over units, with 95 % intervals.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fieldmark
from studies.evidence.results import read_result, real_data, write_result

RUNS = Path(tempfile.gettempdir()) / "fieldmark-evidence" / "ensembles"
BEST = "best member"


@dataclass(frozen=True)
class Case:
    """A benchmark on real data, and three members: each a method with its settings; and whether folds weigh them."""

    benchmark: str
    folder: str
    file: str
    members: dict[str, tuple[str, dict[str, Any]]]
    by_folds: bool = True


def _on(backbone: str) -> tuple[str, dict[str, Any]]:
    return "linear", {"backbone": backbone}


CASES = {
    "snakes": Case(
        "folder",
        "snakes_philippines",
        "",
        {name: _on(name) for name in ("efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2")},
    ),
    "plants": Case(
        "folder",
        "plants_sheets_and_field",
        "",
        {"align": ("align", {}), "linear": ("linear", {}), "prototypes": ("prototypes", {})},
    ),
    "birds": Case("folder", "birds_cub_odd", "", {"linear": ("linear", {}), "lda": ("lda", {}), "knn": ("knn", {})}),
    "places": Case(
        "occurrences/presence",
        "sdm_disdat",
        "SAtrain_po.parquet",
        {
            "random-forest": ("random-forest", {"inputs": "environment"}),
            "sinr": ("sinr", {"inputs": "environment"}),
            "spline-logistic": ("spline-logistic", {"inputs": "environment"}),
        },
        by_folds=False,
    ),
}
MEANS: dict[str, dict[str, Any]] = {
    "probabilities, equal": {"mean": "probabilities"},
    "logits, equal": {"mean": "logits"},
    "ranks, equal": {"mean": "ranks"},
    "probabilities, weights from val": {"mean": "probabilities", "weights": "val"},
}
TOGETHER = "probabilities, weights by folds"


def run() -> dict[str, Any]:
    """All cases whose data are there; what is done already is not done again."""
    result = read_result("ensembles") or {}
    about = " ".join(str(__doc__).split("\n\n", 1)[1].split())
    result |= {"simulated": False, "about": about, "cases": result.get("cases", {})}
    for name, case in CASES.items():
        root = real_data(case.folder)
        if root is not None and name not in result["cases"]:
            result["cases"][name] = study(name, case, root / case.file if case.file else root)
            write_result("ensembles", result)
    return result


def study(name: str, case: Case, root: Path) -> dict[str, Any]:
    """Members, means of their runs, and the three fitted together, compared on test."""
    folders = {member: RUNS / name / member for member in case.members}
    for member, (method, settings) in case.members.items():
        if not folders[member].exists():
            fieldmark.fit(case.benchmark, root, method, folders[member], settings=settings)
    members = list(folders.values())
    for called, how in MEANS.items():
        made = RUNS / name / _slug(called)
        fieldmark.ensemble(members, made, data=root, overwrite=True, **how)
        folders[called] = made
    if not case.by_folds:
        return summary(case, folders)
    folders[TOGETHER] = RUNS / name / _slug(TOGETHER)
    texts = [
        ":".join([method, *(f"{key}={value}" for key, value in own.items())]) for method, own in case.members.values()
    ]
    settings = {"members": ",".join(texts), "weights": "folds"}
    if not folders[TOGETHER].exists():
        fieldmark.fit(case.benchmark, root, "ensemble", folders[TOGETHER], settings=settings)
    return summary(case, folders)


def summary(case: Case, folders: dict[str, Path]) -> dict[str, Any]:
    """Scores with intervals, and every ensemble less the best member."""
    compared = fieldmark.compare(list(folders.values()))
    told = compared.to_json()
    name_of = {folder.name: called for called, folder in folders.items()}
    scores = {name_of[one["name"]]: one for one in told["runs"]}
    best = max(case.members, key=lambda member: scores[member]["value"])
    apart = {}
    for pair in told["differences"]:
        first, second = name_of[pair["first"]], name_of[pair["second"]]
        if best in (first, second) and not {first, second} <= set(case.members):
            sign, other = (1, first) if second == best else (-1, second)
            ends = sorted(sign * pair[end] for end in ("low", "high"))
            apart[other] = [round(one, 4) for one in (sign * pair["value"], *ends)]
    return {
        "benchmark": told["benchmark"],
        "metric": told["metric"],
        "units": told["units"],
        "members": {m: [round(scores[m][end], 4) for end in ("value", "low", "high")] for m in case.members},
        BEST: best,
        "ensembles": {
            called: {
                "score": [round(scores[called][end], 4) for end in ("value", "low", "high")],
                "less_best": apart[called],
            }
            for called in folders
            if called not in case.members
        },
    }


def _slug(text: str) -> str:
    return text.replace(", ", "-").replace(" ", "-")
