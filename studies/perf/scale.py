"""Predicts the cost of a larger size from smaller ones, as `docs/scale.md` does, and compares with what it took.

For each stage of `studies.perf.growth`, the line through what 1 and 4 times the items took is drawn on to 16 times as
many, which that job has run as well: `python -m studies.perf growth scale` measures and compares anew.
"""

from __future__ import annotations

from typing import Any

from studies.perf.costs import growth_of, needed

MEASURED = ("items", "cpu_s", "peak_mib")


def run() -> dict[str, Any]:
    """Predicted and real seconds and memory of each stage.

    Raises:
        FileNotFoundError: When growth has not been measured.
    """
    return {"stages": {name: compared(stage) for name, stage in needed("growth")["stages"].items()}}


def compared(stage: dict[str, Any]) -> dict[str, Any]:
    """What the largest size took, beside the line through the smaller ones.

    >>> compared({"items": [1, 4, 16], "cpu_s": [2.0, 5.0, 34.0], "peak_mib": [9, 9, 9]})["seconds_over_predicted"]
    2.0
    """
    few = {what: stage[what][:-1] for what in MEASURED}
    small, large = stage["items"][-2:]
    line, (seconds, mib) = growth_of(few), (stage["cpu_s"][-1], stage["peak_mib"][-1])
    predicted_s, predicted_mib = 3600 * line.hours(large), 1024 * line.gib(large)
    return {
        "small": small,
        "large": large,
        "predicted_cpu_s": round(predicted_s, 2),
        "cpu_s": seconds,
        "seconds_over_predicted": round(seconds / predicted_s, 2),
        "predicted_peak_mib": round(predicted_mib),
        "peak_mib": mib,
        "memory_over_predicted": round(mib / predicted_mib, 2),
    }
