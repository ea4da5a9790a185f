"""Fieldmark: biodiversity-recognition benchmarks as one system.

The library mirrors the verbs of the command line: `fit`, `predict`, `identify`, `score`, `compare`, `report`,
`reproduce`, `load_model`, `dataset`, `benchmark`, `world`. Nothing heavy is loaded before it is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fieldmark.version import __version__

if TYPE_CHECKING:
    from fieldmark.api import benchmark, dataset, reproduce, world
    from fieldmark.comparing import compare
    from fieldmark.fitting import fit, predict
    from fieldmark.identification import identify
    from fieldmark.models import load_model
    from fieldmark.reports import report
    from fieldmark.score_run import score

_HOME = {
    "benchmark": "fieldmark.api",
    "compare": "fieldmark.comparing",
    "dataset": "fieldmark.api",
    "world": "fieldmark.api",
    "fit": "fieldmark.fitting",
    "predict": "fieldmark.fitting",
    "identify": "fieldmark.identification",
    "load_model": "fieldmark.models",
    "report": "fieldmark.reports",
    "reproduce": "fieldmark.api",
    "score": "fieldmark.score_run",
}

__all__ = [
    "__version__",
    "benchmark",
    "compare",
    "dataset",
    "fit",
    "identify",
    "load_model",
    "predict",
    "report",
    "reproduce",
    "score",
    "world",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'fieldmark' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
