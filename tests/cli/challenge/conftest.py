"""The verbs of a challenge work on the platforms of `tests/challenge`."""

from __future__ import annotations

from tests.challenge.conftest import empty_sqlite, quick_passwords, small_platform

__all__ = ["empty_sqlite", "quick_passwords", "small_platform"]
