"""Every command of docs/unknown-and-costs.md runs as it stands there, on a small release and with a small network."""

from __future__ import annotations

import re
import shlex

from typer.testing import CliRunner

from fieldmark.cli.main import app
from fieldmark.methods.openset import COMBINED
from fieldmark.steps.costs import RULES
from fieldmark.steps.novelty import SCORES
from fieldmark_tests.open_release import write_open_release
from fieldmark_tests.places import DOCS

PAGE = DOCS / "unknown-and-costs.md"
LITTLE = [part for pair in ("backbone=resnet10t", "weights=random", "size=32") for part in ("--set", pair)]
SMALL_TRAINING = ("network=resnet10t", "weights=random", "size=32", "epochs=1", "batch=8")
TRAINED = [part for setting in SMALL_TRAINING for part in ("--set", setting)]


def test_every_command_of_the_page_runs(tmp_path, monkeypatch):
    write_open_release(tmp_path / "data" / "FungiTastic")
    (tmp_path / "prices.csv").write_text("true,predicted,cost\n2,0,50\n3,0,50\n-1,0,5\n")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    commands = [
        shlex.split(line)[1:] for block in blocks for line in block.splitlines() if line.startswith("fieldmark ")
    ]
    assert len(commands) >= 8
    for command in commands:
        little = TRAINED if "finetune" in command else [] if "backbone=runs/energy" in command else LITTLE
        result = CliRunner().invoke(app, command + (little if command[0] == "fit" else []))
        assert result.exit_code == 0, (command, result.output, result.exception)


def test_the_page_names_every_score_and_every_rule():
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in (*SCORES, COMBINED, *RULES))
