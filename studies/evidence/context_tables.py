"""The sections of `studies/pages` about priors and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from studies.evidence.markdown import difference, table

UNITS = {"log_loss": (1.0, ".2f", ".3f"), "top_1": (100.0, ".1f", ".1f"), "top_10": (100.0, ".1f", ".1f")}


def priors(name: str, result: dict[str, Any]) -> str:
    """What a context alone tells."""
    parts = ["## What a month or a country alone tells (real tables)\n", result["about"], ""]
    for title, one in result["sets"].items():
        strengths = ", ".join(f"{key} {value:g}" for key, value in one["strength"].items())
        parts += [
            f"### {title[0].upper()}{title[1:]}\n",
            f"{one['train']:,} observations teach, {one['test']:,} of {one['units']:,} units test, "
            f"{one['labels']:,} names; strengths: {strengths}.\n",
            rows_of(one, ("log_loss", "top_10"), "less_no_context", "less no context"),
        ]
    return "\n".join(parts)


def pooling(name: str, result: dict[str, Any]) -> str:
    """What several photos of a specimen tell together."""
    parts = ["## Pooling the photos of a specimen (real photos)\n", result["about"], ""]
    for rank, one in result["ranks"].items():
        sharpness = ", ".join(f"{value:g}" for value in one["sharpness"])
        parts += [
            f"### {rank[0].upper()}{rank[1:]} of *Amanita*\n",
            f"{one['photos']} photos of {one['specimens']} specimens, {one['labels']} labels; "
            f"sharpness by fold: {sharpness}.\n",
            rows_of(one, ("log_loss", "top_1"), "less_mean", "less mean"),
        ]
    return "\n".join(parts)


def rows_of(one: dict[str, Any], metrics: Sequence[str], key: str, title: str) -> str:
    """A table of variants: the value of each metric, and its difference under `key` from the one that `title` names."""
    rows = []
    for variant in one[metrics[0]]:
        row = [variant]
        for metric in metrics:
            factor, digits, finer = UNITS[metric]
            said = one[metric][variant]
            value = said["value"][0] if isinstance(said["value"], list) else said["value"]
            row += [f"{factor * value:{digits}}", difference(said.get(key), factor, finer)]
        rows.append(row)
    return table(["", *(column for metric in metrics for column in (metric, title))], rows)
