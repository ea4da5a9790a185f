"""Benchmarks: one module per challenge, declarations without logic.

A module says at its end which of them the registry lists: `ENTRIES = {"name": ("CONSTANT", "one line about it")}`. It
is found by reading, not by importing, so that listing what there is loads none of it.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

from fieldmark.registry import Registry, declared, late_imports

if TYPE_CHECKING:
    from fieldmark.benchmarks.declarations import Benchmark


class Benchmarks(Registry["Benchmark"]):
    """The benchmarks by name; `name@version` is one as it was in an earlier version."""

    def __contains__(self, name: object) -> bool:
        plain, at, version = str(name).partition("@")
        return super().__contains__(plain) and (not at or version in super().__getitem__(plain).versions)

    def __getitem__(self, name: str) -> Benchmark:
        plain, at, version = name.partition("@")
        benchmark = super().__getitem__(plain)
        return benchmark.at(version) if at else benchmark

    def about(self, name: str) -> str:
        return super().about(name.partition("@")[0])


def _declared() -> dict[str, tuple[str, str]]:
    """What the modules here declare as `ENTRIES`, by the name of the benchmark."""
    return {
        name: (f"{module}:{attribute}", about)
        for module, entries in declared(__name__, Path(__file__).parent, "ENTRIES")
        for name, (attribute, about) in ast.literal_eval(entries).items()
    }


BENCHMARKS = Benchmarks("benchmark", _declared, group="fieldmark.benchmarks")

__getattr__ = late_imports(__name__, "fieldmark.benchmarks.declarations:Benchmark")
__all__ = ["BENCHMARKS", "Benchmark"]
