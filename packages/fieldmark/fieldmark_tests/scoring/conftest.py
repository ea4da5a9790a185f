"""Run files as the tests of benchmarks write them."""

from __future__ import annotations

from fieldmark_tests.benchmarks.conftest import run

__all__ = ["run"]
