"""The commands in `docs/snakeclef.md` run, and its numbers are those of the studies."""

from __future__ import annotations

import json
import re
import shlex
import shutil

from typer.testing import CliRunner

from fieldmark.cli.main import app
from fieldmark_tests.places import DOCS, ROOT

PAGE = (DOCS / "snakeclef.md").read_text()
COMMANDS = [
    line.removeprefix("fieldmark ")
    for block in re.findall(r"```\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("fieldmark ") and "data/" not in line
]


def test_every_command_of_the_page_runs(snake_world, tmp_path, monkeypatch):
    shutil.copytree(snake_world, tmp_path / "snake-world")
    monkeypatch.chdir(tmp_path)
    world, *others = COMMANDS
    assert world == "world snakeclef-2020 snake-world --size tiny" and len(others) == 6
    for command in others:
        done = CliRunner().invoke(app, shlex.split(command))
        assert done.exit_code == 0, f"{command}\n{done.output}"
    assert (tmp_path / "runs" / "country" / "report.html").exists()
    assert (tmp_path / "submission" / "run.sh").stat().st_mode & 0o111


def test_the_numbers_of_the_page_are_those_of_the_studies():
    tables, photos, worlds = (
        json.loads((ROOT / "studies" / "results" / f"{name}.json").read_text())
        for name in ("snake_countries", "snake-photos", "snakes")
    )
    rest, usa = (tables["sets"]["Microtrain to microval"][part] for part in ("the rest", "USA"))
    mapper = tables["sets"]["iNaturalist to HerpMapper"]["all"]
    venom, gains = photos["venom"], worlds["less_no_prior"]
    said = [
        *(f"{rest['log_loss'][name]['value']:.2f}" for name in ("no country", "smoothed counts", "presence mask")),
        *(f"{100 * rest['top_5'][name]['value']:.1f}" for name in ("no country", "smoothed counts", "presence mask")),
        *(f"{usa['log_loss'][name]['value']:.2f}" for name in ("no country", "smoothed counts")),
        f"{-100 * mapper['top_5']['smoothed counts']['less_no_country'][0]:.1f} points",
        f"{100 * mapper['top_5']['presence mask']['less_no_country'][0]:.1f};",
        f"{photos['test']} test photos, {photos['venomous_test']} of venomous",
        f"finds {photos['boxes']['yolox']} of",
        f"{100 * photos['top_1_finetune_ahead_of_linear']['none'][0]:.1f} points of top-1",
        *(f"{venom[name]['none']['called_harmless_per_1000']:.0f}" for name in ("linear", "linear, min-cost")),
        *(f"{venom[name]['none']['called_harmless_per_1000']:.0f}" for name in ("finetune", "finetune, min-cost")),
        f"{100 * gains['counts']['macro_f1_union'][0]:.1f} points",
        f"{-gains['counts']['log_loss'][0]:.2f} of log loss",
        f"{100 * gains['presence']['macro_f1_union'][0]:.1f} and {-gains['presence']['log_loss'][0]:.2f}",
        f"{100 * gains['boxes']['macro_f1_union'][0]:.1f} points",
        *(f"by {worlds['overlap'][name][0]:.2f}" for name in ("saliency", "yolox")),
    ]
    assert [number for number in said if number not in PAGE] == []
