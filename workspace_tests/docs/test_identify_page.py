"""The page about answers to people names options that there are."""

from __future__ import annotations

import re

from typer.main import get_command

from fieldmark.cli.main import application
from fieldmark_tests.places import DOCS

PAGE = DOCS / "identify.md"


def test_every_option_on_the_page_is_one_of_the_command():
    commands = get_command(application("identify", "calibrate", "fit", "adapt")).commands
    there = {option for command in commands.values() for one in command.params for option in one.opts}
    named = set(re.findall(r"--[a-z][a-z-]+", PAGE.read_text(encoding="utf-8")))
    assert len(named) > 15 and named <= there, named - there
