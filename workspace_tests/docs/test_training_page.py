"""Every command of docs/training.md runs here, in its order."""

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from fieldmark.cli.main import app
from fieldmark_tests.places import DOCS

PAGE = (DOCS / "training.md").read_text()


def test_the_commands_of_the_page_run(make_release, tmp_path, monkeypatch):
    make_release(name="my-photos")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIELDMARK_CACHE", str(tmp_path / "cache"))
    recipe = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert recipe
    Path("mine.toml").write_text(recipe[1])
    commands = re.findall(r"^fieldmark (.*)$", PAGE, re.MULTILINE)
    assert len(commands) == 8
    for command in commands:
        few = " --set workers=1" if "--method finetune" in command else ""
        done = CliRunner().invoke(app, shlex.split(command + few))
        assert done.exit_code == 0, f"{command}: {done.output} {done.exception!r}"
    assert Path("scratch.onnx").stat().st_size > 1_000_000
