"""The commands in `docs/few-shot.md` run, in the order in which they stand there."""

from __future__ import annotations

import re
import shlex
import shutil

import torch
from typer.testing import CliRunner

from fieldmark.cli.main import app
from fieldmark_tests.features.test_clip import TINY, write_repository
from fieldmark_tests.places import DOCS

PAGE = (DOCS / "few-shot.md").read_text()
COMMANDS = [
    line.removeprefix("$ fieldmark ")
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
]


def test_every_command_of_the_page_runs(fungi_world, tmp_path, monkeypatch):
    import open_clip  # seconds of importing, which a process that collects tests need not pay

    shutil.copytree(fungi_world, tmp_path / "data" / "FungiTastic")
    torch.manual_seed(0)
    write_repository(tmp_path / "models" / "bioclip", open_clip.CLIP(**TINY).state_dict(), "safetensors")
    monkeypatch.chdir(tmp_path)
    assert len(COMMANDS) == 5
    printed = {}
    for command in COMMANDS:
        done = CliRunner().invoke(app, shlex.split(command))
        assert done.exit_code == 0, f"{command}\n{done.output}"
        printed[command.split()[0]] = done.stdout
    assert "simulated data" in printed["episodes"] and "prototypes" in printed["episodes"]
    assert "only ours are shown" in printed["reproduce"] and "BioCLIP, centroid *" in printed["reproduce"]
    assert (tmp_path / "reproduced/fungitastic-table5/table.html").exists()


def test_the_page_names_settings_that_exist():
    from dataclasses import fields

    from fieldmark.features.settings import FeatureSettings
    from fieldmark.methods import METHODS

    known = {field.name for owner in (FeatureSettings, *(METHODS[name] for name in METHODS)) for field in fields(owner)}
    named = set(re.findall(r"(?:--set |`|\s)([a-z_]+)=[\w:.-]", PAGE))
    assert named and named <= known
