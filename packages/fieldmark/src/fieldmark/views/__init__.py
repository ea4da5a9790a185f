"""Benchmark and release become views and truth: what a method may see, and how tables are split."""

from __future__ import annotations

from fieldmark.moved import moved_name


def __getattr__(name: str) -> object:
    return moved_name(__name__, "parts", name)
