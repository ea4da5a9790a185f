"""One platform of each database for all attacks: they bring their own people, and each is a stranger to the others."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge_tests.conftest import KINDS, administer
from fieldmark_challenge_tests.platform import Platform, open_platform
from fieldmark_challenge_tests.programs.test_program_queue import ask_for_programs


@pytest.fixture(scope="session", params=KINDS)
def attacked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform whose challenge `tiny` asks for programs; its challenge `plain` asks for runs."""
    folder = tmp_path_factory.mktemp("attacked")
    if request.param == "sqlite":
        shutil.copyfile(request.getfixturevalue("empty_sqlite"), folder / "platform.sqlite")
        url = f"sqlite:///{folder / 'platform.sqlite'}"
    else:
        server, name = request.getfixturevalue("postgresql"), f"t{os.urandom(6).hex()}"
        administer(server, f"CREATE DATABASE {name} TEMPLATE {request.getfixturevalue('empty_postgresql')}")
        url = f"{server}/{name}"
    database = Database(url)
    platform = ask_for_programs(open_platform(database, Storage(folder / "files"), folder))
    platform.make("plain", daily_limit=100)
    yield platform
    database.close()
