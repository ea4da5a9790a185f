"""The commands of docs/sound.md: each is one that exists, and those that need nothing but a recording are run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from fieldmark.cli.main import app
from fieldmark.methods import METHODS
from fieldmark.steps import STEPS
from fieldmark_tests.audio.sounds import encoded, song
from fieldmark_tests.places import DOCS

PAGE = DOCS / "sound.md"
COMMANDS = re.findall(r"^fieldmark (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
GROUP = typer.main.get_command(app)


def words_of(line: str) -> list[str]:
    return shlex.split(line.partition(" > ")[0])


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_page_exists_with_its_options(line):
    verb, *arguments = words_of(line)
    command = GROUP.commands[verb]
    values = command.make_context(verb, arguments).params
    assert values.get("method") is None or values["method"] in METHODS
    assert all(step in STEPS for step in values.get("steps") or ())


@pytest.mark.parametrize("line", [line for line in COMMANDS if "dawn.wav" in line and "--model birdnet" in line])
def test_commands_about_a_recording_run_as_they_stand(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("dawn.wav").write_bytes(encoded(song(4, 32_000, hz=4000), 32_000))
    GROUP(args=words_of(line), standalone_mode=False)
    assert "CC BY-NC-SA 4.0" in "".join(capsys.readouterr())
    if "--out" in line:
        assert Path(words_of(line)[-1]).read_text().startswith("Selection\t")
