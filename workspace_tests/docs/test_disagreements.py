"""The commands in `docs/disagreements.md` print what the page says."""

from __future__ import annotations

import re
import shlex

import pytest
from typer.testing import CliRunner

from fieldmark.cli.main import app
from fieldmark_tests.places import DOCS

BLOCKS = re.findall(r"```console\n\$ fieldmark (.*?)\n(.*?)\n```", (DOCS / "disagreements.md").read_text(), re.DOTALL)


def test_there_are_examples():
    assert len(BLOCKS) >= 7


@pytest.mark.parametrize(("command", "expected"), BLOCKS, ids=[command.split()[1] for command, _ in BLOCKS])
def test_each_command_prints_what_the_page_says(command, expected, monkeypatch):
    monkeypatch.chdir(DOCS / "disagreements")
    printed = CliRunner().invoke(app, shlex.split(command)).stdout
    assert [line.rstrip() for line in printed.splitlines()] == expected.splitlines()
