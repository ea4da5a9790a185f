"""How the studies of sheets and field photos look in `studies/pages`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studies.evidence.markdown import difference, table

GROUPS = ("unseen", "with field photos", "without")
COLUMNS = ["method", "left out in turn", "over sheet prototypes", "with field photos", "32 photos of others"]


def plants(name: str, result: dict[str, Any]) -> str:
    """Frozen features: every method by photo and by plant, and the trade-off by the bias."""
    said = ["## From herbarium sheets to field photos\n", f"Real pictures. {result['about']}\n"]
    for done in result["features"].values():
        for unit, rows in done["compared"].items():
            said += [f"Mean reciprocal rank {unit}, averaged over species, with 95 % intervals over species:\n"]
            said += [table(COLUMNS, [_row(called, row) for called, row in rows.items()])]
        points = [
            [f"{point['bias']:g}", *(f"{point[key]:.3f}" for key in ("unseen", "seen", "harmonic"))]
            for point in done.get("curve", ())
        ]
        if not points:
            continue
        said += ["`align` at every bias, by photo; nothing was chosen by this table:\n"]
        said += [table(["bias", "left out in turn", "with field photos", "harmonic mean"], points)]
    for unit, rows in result.get("networks", {}).items():
        said += [f"`align` in second order, mean reciprocal rank {unit}, averaged over species:\n"]
        groups = [[called, *(_number(row[group]) for group in GROUPS)] for called, row in rows.items()]
        said += [table(["network", "left out in turn", *COLUMNS[3:]], groups)]
    return "\n".join(said)


def trained(name: str, result: dict[str, Any]) -> str:
    """Networks that were trained on a GPU."""
    said = [
        "## Networks trained on sheets and field photos\n",
        "Real pictures, EfficientNet-Lite0 at 224 px, settings fixed beforehand; nine folds of four species whose "
        "field photos are hidden. `align` on the features of a network has fixed settings: the network has seen the "
        "photos by which it would choose.\n",
    ]
    for unit in ("by photo", "by plant"):
        said += [f"Mean reciprocal rank {unit}, averaged over species:\n"]
        said += [table(COLUMNS, [_row(called, rows[unit]) for called, rows in result["networks"].items()])]
    return "\n".join(said)


def _row(called: str, row: Mapping[str, Any]) -> list[str]:
    return [
        called,
        _number(row["unseen"]),
        difference(row["over sheet prototypes"], 1, ".3f"),
        _number(row["with field photos"]),
        _number(row["without"]),
    ]


def _number(triple: list[float | None]) -> str:
    value, low, high = triple
    bounds = "no interval" if low is None or high is None else f"{low:.3f}, {high:.3f}"
    return f"{value:.3f} [{bounds}]"


def plant_worlds(name: str, result: dict[str, Any]) -> str:
    """Simulated: methods on worlds of several seeds, all species and the rare ones."""
    rows = [
        [method, *(_number(values[metric]) for metric in ("mrr", "mrr_rare")), _over(values)]
        for method, values in result["methods"].items()
    ]
    columns = ["method", "MRR", "MRR, rare species", "rare: over linear"]
    return "\n".join(["## Sheets and field photos in worlds\n", f"{result['about']}\n", table(columns, rows)])


def _over(values: Mapping[str, Any]) -> str:
    return difference(values["over linear"], 1, ".3f")
