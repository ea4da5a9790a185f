"""Fieldmark: biodiversity-recognition benchmarks as one system.

The library mirrors the verbs of the command line: `fit`, `adapt`, `ensemble`, `predict`, `identify`, `score`,
`compare`, `evaluate`, `detections`, `ablate`, `report`, `reproduce`, `load_model`, `dataset`, `benchmark`, `world`.
Nothing heavy is loaded before it is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fieldmark.moved import find_moved_modules
from fieldmark.version import __version__

if TYPE_CHECKING:
    from fieldmark.by_name import benchmark, dataset, reproduce, world
    from fieldmark.fitting import adapt, ensemble, fit, predict
    from fieldmark.identification import identify
    from fieldmark.identification.species_at import species_at
    from fieldmark.models import load_model
    from fieldmark.reports import report
    from fieldmark.scoring.sound_detections import detections
    from fieldmark.suites.ablations import ablate
    from fieldmark.suites.suite_runs import evaluate
    from fieldmark.views.compare_runs import compare
    from fieldmark.views.score_run import score, score_many
    from fieldmark.views.split_tables import split_table

find_moved_modules()

_HOME = {
    "ablate": "fieldmark.suites.ablations",
    "adapt": "fieldmark.fitting",
    "benchmark": "fieldmark.by_name",
    "compare": "fieldmark.views.compare_runs",
    "dataset": "fieldmark.by_name",
    "detections": "fieldmark.scoring.sound_detections",
    "world": "fieldmark.by_name",
    "ensemble": "fieldmark.fitting",
    "evaluate": "fieldmark.suites.suite_runs",
    "fit": "fieldmark.fitting",
    "predict": "fieldmark.fitting",
    "identify": "fieldmark.identification",
    "load_model": "fieldmark.models",
    "report": "fieldmark.reports",
    "reproduce": "fieldmark.by_name",
    "score": "fieldmark.views.score_run",
    "score_many": "fieldmark.views.score_run",
    "species_at": "fieldmark.identification.species_at",
    "split_table": "fieldmark.views.split_tables",
}

__all__ = [
    "__version__",
    "ablate",
    "adapt",
    "benchmark",
    "compare",
    "dataset",
    "detections",
    "ensemble",
    "evaluate",
    "fit",
    "identify",
    "load_model",
    "predict",
    "report",
    "reproduce",
    "score",
    "score_many",
    "species_at",
    "split_table",
    "world",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'fieldmark' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
