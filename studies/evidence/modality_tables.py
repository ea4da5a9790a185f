"""The sections of `studies/pages` about modalities."""

from __future__ import annotations

from typing import Any

import numpy as np

from studies.evidence.context_tables import rows_of
from studies.evidence.markdown import mean_difference, table

TITLES = {"closed": "Closed set", "open": "Open set"}


def amanita(name: str, result: dict[str, Any]) -> str:
    """Photos, host trees, date and place of real specimens."""
    parts = ["## Photos, host trees, date and place of *Amanita* (real photos)\n", result["about"], ""]
    for rank, one in result["ranks"].items():
        parts += [
            f"### {rank[0].upper()}{rank[1:]}\n",
            f"{one['specimens']} specimens with {one['photos']} photos at {one['sites']} sites, {one['labels']} labels "
            f"of {one['labels_in_all']}.\n",
            rows_of(one, ("log_loss", "top_1"), "less_photos", "less photos"),
        ]
    return "\n".join(parts)


def modalities(name: str, result: dict[str, Any]) -> str:
    """Priors, fusion and the joint network on worlds, beside the exact posterior."""
    parts = ["## Photos and metadata on worlds, beside the exact posterior (simulated)\n", result["about"], ""]
    for kind, worlds in result["worlds"].items():
        for key, title in TITLES.items():
            rows = [one["sets"][key] for one in worlds]
            metrics = list(rows[0]["photo"])
            parts += [
                f"### {title}, {kind}: {len(rows)} worlds of size {result['sizes'][kind]}\n",
                table(
                    ["", *(column for metric in metrics for column in (metric, "less photo"))],
                    [
                        [variant, *(cell for metric in metrics for cell in _cells(rows, variant, metric))]
                        for variant in rows[0]
                    ],
                ),
            ]
    parts.append("Means over worlds, in percent, and paired differences from the photo alone, intervals over worlds.\n")
    return "\n".join(parts)


def _cells(rows: list[dict[str, Any]], variant: str, metric: str) -> tuple[str, str]:
    values = np.array([row[variant][metric][0] for row in rows])
    apart = values - np.array([row["photo"][metric][0] for row in rows])
    return f"{100 * values.mean():.1f}", "" if variant == "photo" else mean_difference(apart)
