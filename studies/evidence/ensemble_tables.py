"""The table of ensembles in `studies/pages`."""

from __future__ import annotations

from typing import Any

from studies.evidence.markdown import difference, percent, table


def ensembles(name: str, result: dict[str, Any]) -> str:
    """Members and ensembles of each case, and what an ensemble gains over its best member."""
    parts = ["## Ensembles of three (real data)\n", result["about"]]
    for called, case in result["cases"].items():
        parts.append(
            f"\n{called.capitalize()}: {case['metric']} of {case['benchmark']} in percent, {case['units']:,} units. "
            f"Best member: {case['best member']}.\n"
        )
        rows = [[member, percent(score), ""] for member, score in case["members"].items()]
        rows += [
            [way, percent(one["score"]), difference(one["less_best"], 100, ".1f")]
            for way, one in case["ensembles"].items()
        ]
        parts.append(table(["", case["metric"], "less the best member"], rows))
    return "\n".join(parts)
