"""Fieldmark: biodiversity-recognition benchmarks as one system.

The library mirrors the verbs of the command line: `fit`, `adapt`, `predict`, `identify`, `score`, `compare`, `ablate`,
`report`, `reproduce`, `load_model`, `dataset`, `benchmark`, `world`. Nothing heavy is loaded before it is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fieldmark.version import __version__

if TYPE_CHECKING:
    from fieldmark.fitting import adapt, fit, predict
    from fieldmark.identification import identify
    from fieldmark.models import load_model
    from fieldmark.reports import report
    from fieldmark.scoring.comparing import compare
    from fieldmark.verbs.ablating import ablate
    from fieldmark.verbs.by_name import benchmark, dataset, reproduce, world
    from fieldmark.verbs.checklists import species_at
    from fieldmark.verbs.score_run import score, score_many
    from fieldmark.verbs.splitting import split_table

_HOME = {
    "ablate": "fieldmark.verbs.ablating",
    "adapt": "fieldmark.fitting",
    "benchmark": "fieldmark.verbs.by_name",
    "compare": "fieldmark.scoring.comparing",
    "dataset": "fieldmark.verbs.by_name",
    "world": "fieldmark.verbs.by_name",
    "fit": "fieldmark.fitting",
    "predict": "fieldmark.fitting",
    "identify": "fieldmark.identification",
    "load_model": "fieldmark.models",
    "report": "fieldmark.reports",
    "reproduce": "fieldmark.verbs.by_name",
    "score": "fieldmark.verbs.score_run",
    "score_many": "fieldmark.verbs.score_run",
    "species_at": "fieldmark.verbs.checklists",
    "split_table": "fieldmark.verbs.splitting",
}

__all__ = [
    "__version__",
    "ablate",
    "adapt",
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
