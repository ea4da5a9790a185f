"""Fitting: a method on a benchmark, with its settings, what a task allows, and what a backbone has seen before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fieldmark.registry import late_imports

if TYPE_CHECKING:
    from fieldmark.fitting.adaptation import Adapted, adapt
    from fieldmark.fitting.auto import Auto
    from fieldmark.fitting.chains import Chain
    from fieldmark.fitting.fit_part import answer_test, prepare, readable_inputs, with_features
    from fieldmark.fitting.harness import FitResult, fit, predict
    from fieldmark.fitting.run_ensembles import EnsembleResult, ensemble
    from fieldmark.fitting.search import Search

# Late: a list of settings needs none of it.
__getattr__ = late_imports(
    __name__,
    "fieldmark.fitting.adaptation:Adapted",
    "fieldmark.fitting.adaptation:adapt",
    "fieldmark.fitting.auto:Auto",
    "fieldmark.fitting.chains:Chain",
    "fieldmark.fitting.fit_part:answer_test",
    "fieldmark.fitting.fit_part:prepare",
    "fieldmark.fitting.fit_part:readable_inputs",
    "fieldmark.fitting.fit_part:with_features",
    "fieldmark.fitting.harness:FitResult",
    "fieldmark.fitting.harness:fit",
    "fieldmark.fitting.harness:predict",
    "fieldmark.fitting.run_ensembles:EnsembleResult",
    "fieldmark.fitting.run_ensembles:ensemble",
    "fieldmark.fitting.search:Search",
)
__all__ = [
    "Adapted",
    "Auto",
    "Chain",
    "EnsembleResult",
    "FitResult",
    "Search",
    "adapt",
    "answer_test",
    "ensemble",
    "fit",
    "predict",
    "prepare",
    "readable_inputs",
    "with_features",
]
