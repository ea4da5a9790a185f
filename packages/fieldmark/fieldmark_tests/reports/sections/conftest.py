"""A run on a few fungi, as sections see it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.section import Context
from fieldmark_tests.reports.by_hand import MakeRun, noisy


@pytest.fixture
def context(fungi: Path, make_run: MakeRun) -> Context:
    return load_context([make_run(fungi, noisy)])
