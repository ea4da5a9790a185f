"""Programs of the system that some tests need."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def absent(sentence: str) -> NoReturn:
    """Skips what needs a program of the system; where all of them must be there (CI), fails instead."""
    if os.environ.get("FIELDMARK_REQUIRE_SYSTEM") == "1":
        pytest.fail(f"{sentence}, and FIELDMARK_REQUIRE_SYSTEM=1 asks for it")
    pytest.skip(sentence)
