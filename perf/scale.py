"""Predicts the cost of a larger size from smaller ones, as `docs/scale.md` does, and compares with what it takes.

The line through what 1 and 4 times the items took is drawn on to 32 times as many, and that size is run. At 1 time the
stages have half the items that they have in `perf.growth`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from perf.costs import growth_of
from perf.growth import STAGES, measured

CHECKED = ("extract", "score", "open an archive", "open the store")
SMALL, LARGE = (1, 4), 32


def run() -> dict[str, Any]:
    """Predicted and real seconds and memory of each stage."""
    with tempfile.TemporaryDirectory() as folder:
        return {"small": SMALL, "large": LARGE, "stages": {name: _compared(name, Path(folder)) for name in CHECKED}}


def _compared(name: str, folder: Path) -> dict[str, Any]:
    items = STAGES[name].items // 2
    few = [measured(name, items * factor, folder) for factor in SMALL]
    line = growth_of({what: [one[what] for one in few] for what in ("items", "cpu_s", "peak_mib")})
    large = measured(name, items * LARGE, folder, rounds=1)
    predicted_s, predicted_mib = 3600 * line.hours(items * LARGE), 1024 * line.gib(items * LARGE)
    found = {
        "small": items * SMALL[-1],
        "large": items * LARGE,
        "predicted_cpu_s": round(predicted_s, 2),
        "cpu_s": round(large["cpu_s"], 2),
        "seconds_over_predicted": round(large["cpu_s"] / predicted_s, 2),
        "predicted_peak_mib": round(predicted_mib),
        "peak_mib": round(large["peak_mib"]),
        "memory_over_predicted": round(large["peak_mib"] / predicted_mib, 2),
    }
    print(name, found, flush=True)
    return found
