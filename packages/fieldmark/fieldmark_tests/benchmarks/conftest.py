"""A run file with the content of a test."""

from __future__ import annotations

import pytest


@pytest.fixture
def run(tmp_path):
    def write(content: str):
        (tmp_path / "run.csv").write_text(content)
        return tmp_path / "run.csv"

    return write
