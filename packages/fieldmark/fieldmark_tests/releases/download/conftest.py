from __future__ import annotations

from collections.abc import Iterator

import pytest

from fieldmark.releases.download.download import Patience
from fieldmark_tests.releases.download.server import Site, serving

IMPATIENT = Patience(timeout_s=5, tries=3, first_pause_s=0.01, longest_pause_s=0.05)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "*")
    with serving() as running:
        yield running


@pytest.fixture
def impatient() -> Patience:
    return IMPATIENT
