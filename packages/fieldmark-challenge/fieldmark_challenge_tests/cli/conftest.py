"""The verbs of a challenge work on the platforms of `fieldmark_challenge_tests`."""

from __future__ import annotations

from fieldmark_challenge_tests.conftest import empty_sqlite, quick_passwords, small_platform

__all__ = ["empty_sqlite", "quick_passwords", "small_platform"]
