"""The table of what crops are worth."""

from __future__ import annotations

from typing import Any

from studies.evidence.markdown import table

NAMES = {
    "birds_cub_odd": "birds (CUB, 100 species)",
    "snakes_philippines": "snakes (14 species)",
    "fungi_genera": "fungi (9 genera)",
    "fungi_amanita": "Amanita, by specimen",
}


def crops(name: str, result: dict[str, Any]) -> str:
    """What `crop=saliency` changes on each set."""
    rows = []
    for key, one in result["sets"].items():
        for metric, found in one["metrics"].items():
            value, low, high = (None if number is None else 100 * number for number in found["difference"])
            interval = "no interval" if low is None or high is None else f"{low:+.1f}, {high:+.1f}"
            rows.append(
                [
                    NAMES[key],
                    metric,
                    f"{100 * found['whole']:.1f}",
                    f"{100 * found['cropped']:.1f}",
                    f"{value:+.1f} [{interval}]",
                    f"{one['photos_cropped']:,} of {one['photos']:,}",
                ]
            )
    columns = ["", "metric", "whole", "cropped", "difference", "photos with a box"]
    return f"## The organism cut out (real photos)\n\nPercent. {result['about']}\n\n" + table(columns, rows)
