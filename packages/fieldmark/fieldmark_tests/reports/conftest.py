"""Releases and runs for the tests of reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from fieldmark_tests.reports.by_hand import FUNGI, FUNGI_TAXA, MakeRelease, MakeRun, write_release, write_run


@pytest.fixture
def make_release(tmp_path: Path) -> MakeRelease:
    """Writes a release into the folder of the test; see `write_release`."""
    return lambda classes, *, name="release", **about: write_release(tmp_path / name, classes, **about)


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Writes a run into the folder of the test; see `write_run`."""
    return lambda root, scores, *, name="run", **about: write_run(tmp_path / name, root, scores, **about)


@pytest.fixture
def fungi(make_release: MakeRelease) -> Path:
    """Five classes in three genera, with dates, a class without test photos, and a name that is not safe in HTML."""
    return make_release(FUNGI, taxa=FUNGI_TAXA, dated=True)
