"""Fitting: a method on a benchmark, with its settings, what a task allows, and what a backbone has seen before."""

from __future__ import annotations

from fieldmark.fitting.harness import FitResult, answer_test, fit, predict, prepare, with_features

__all__ = ["FitResult", "answer_test", "fit", "predict", "prepare", "with_features"]
