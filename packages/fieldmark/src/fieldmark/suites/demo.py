"""The whole way in one call: a tiny world, the baselines, their scores, and a report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fieldmark.errors import MisuseError
from fieldmark.fitting import FitResult, fit
from fieldmark.registry import require
from fieldmark.reports import report
from fieldmark_worlds import WORLDS

SIZE_PX = 160

# The folder of each run, its method and its settings. The report is about the first.
RUNS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("linear", "linear", {"size": SIZE_PX}),
    ("knn", "knn", {"size": SIZE_PX}),
    ("centroid", "centroid", {"size": SIZE_PX}),
    ("frequent", "frequent", {}),
)


@dataclass(frozen=True)
class Demo:
    """What the demo made."""

    world: Path
    runs: dict[str, FitResult]
    report: Path


def run_demo(out: Path, *, seed: int = 0) -> Demo:
    """Makes a tiny world, fits the baselines to it, and writes the report.

    Args:
        out: The folder for everything; what an earlier demo left there is replaced.
        seed: The seed of the world.
    """
    for module in ("onnx", "onnxruntime", "jinja2", "matplotlib"):
        require(module, "The demo")  # said before anything is painted
    if out.exists() and any(out.iterdir()) and not (out / "world" / "WORLD.json").exists():
        raise MisuseError(f"{out} holds something other than an earlier demo. Choose another folder.")
    world = out / "world"
    WORLDS["folder"](world, size="tiny", seed=seed, overwrite=True)
    runs = {
        name: fit("folder", world, method, out / "runs" / name, settings=settings, overwrite=True)
        for name, method, settings in RUNS
    }
    page = report([result.folder for result in runs.values()], out / "report.html")
    return Demo(world, runs, page)
