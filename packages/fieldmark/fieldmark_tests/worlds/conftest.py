"""One small nature and one tiny world, made once for all tests of the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from fieldmark_worlds.fungi.fungi_kingdom import FUNGI
from fieldmark_worlds.layouts import folder
from fieldmark_worlds.nature.nature import Nature, NatureSettings, grow_nature


@pytest.fixture(scope="session")
def nature() -> Nature:
    return grow_nature(NatureSettings(species=120, genera=24, kingdom=FUNGI), seed=11)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    root = tmp_path_factory.mktemp("world") / "tiny"
    return root, folder.write(root, size="tiny", seed=3)
