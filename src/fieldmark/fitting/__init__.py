"""Fitting: a method on a benchmark, with its settings, what a task allows, and what a backbone has seen before."""

from __future__ import annotations

from fieldmark.fitting.adapting import Adapted, adapt
from fieldmark.fitting.harness import FitResult, fit, predict
from fieldmark.fitting.learning import answer_test, prepare, readable_inputs, with_features
from fieldmark.fitting.searching import Search

__all__ = [
    "Adapted",
    "FitResult",
    "Search",
    "adapt",
    "answer_test",
    "fit",
    "predict",
    "prepare",
    "readable_inputs",
    "with_features",
]
