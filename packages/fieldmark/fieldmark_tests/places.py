"""Where things lie in the workspace."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from fieldmark.registry import declared

TESTS = Path(__file__).parent
GOLDEN = TESTS / "golden"
ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
# What processes that tests start import from.
_PACKAGES = (ROOT / "packages" / "fieldmark", ROOT / "packages" / "fieldmark-challenge")
IMPORTED_FROM = [*(package / "src" for package in _PACKAGES), *_PACKAGES, ROOT]


@cache
def declared_in_tests(name: str, room: str = "releases") -> dict[str, Callable[..., Any]]:
    """What the tests of a room declare for others, so that a dataset or a metric needs one file of tests.

    `SAMPLES = {"dataset": "function"}` names what writes a small release into a folder and returns it;
    `ORACLES = {"benchmark": "test"}` names the test that compares every metric with a naive program;
    `NAIVE = {"metric": "function"}`, in the tests of metrics, names a naive program of one metric.
    """
    return {
        key: getattr(import_module(module), function)
        for module, text in declared(f"fieldmark_tests.{room}", TESTS / room, name)
        for key, function in ast.literal_eval(text).items()
    }
