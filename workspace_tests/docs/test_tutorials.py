"""The tutorials run as they stand, command by command, in one folder; so do the lines of Python in them."""

from __future__ import annotations

import re
import shlex
import subprocess

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from fieldmark.cli.main import app
from fieldmark_tests.places import ROOT

TUTORIALS = ("researcher", "organizer", "naturalist")
GROUP = typer.main.get_command(app)


def commands_of(name: str) -> list[str]:
    page = (ROOT / "docs" / "tutorials" / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    return [line.removeprefix("$ ").removeprefix("fieldmark ") for block in blocks for line in block.splitlines()]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Types a command in the folder that all tutorials share; what was typed before is not typed again."""
    folder, printed = tmp_path_factory.mktemp("tutorials"), {}

    def typed(command: str) -> str:
        if command not in printed:
            if command.split()[0] not in GROUP.commands:  # of the shell
                subprocess.run(command, shell=True, cwd=folder, check=True)
                printed[command] = ""
                return ""
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(folder)
                done = CliRunner().invoke(app, shlex.split(command))
            assert done.exit_code == 0, f"{command}\n{done.output}{done.exception!r}"
            printed[command] = done.stdout
        return printed[command]

    typed.folder = folder
    return typed


def test_a_researcher_gets_a_number_a_page_and_files(run):
    printed = {command.split()[0]: run(command) for command in commands_of("researcher")}
    assert "simulated data" in printed["fit"] and "not separable from the best" in printed["compare"]
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    assert 'id="comparison"' in page and 'id="classes"' in page
    answers = pl.read_parquet(run.folder / "answers.parquet")
    assert answers.group_by("id").agg(pl.col("probability").sum())["probability"].to_list() == pytest.approx(
        [1.0] * answers["id"].n_unique(), abs=1e-4
    )
    text = (ROOT / "docs" / "tutorials" / "researcher.md").read_text(encoding="utf-8")
    block = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert block
    names: dict[str, object] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(run.folder)
        exec(block[1], names)
    assert names["card"].metrics


def test_a_naturalist_gets_an_answer_that_warns(run):
    printed = [run(command) for command in commands_of("naturalist")]
    assert "BE CAREFUL" in "".join(printed) and "Never eat a mushroom" in "".join(printed)
    assert "poisonous" in pl.read_csv(run.folder / "answers.csv").columns


def test_an_organizer_opens_a_challenge_and_ends_it(run):
    printed = [run(command) for command in commands_of("organizer")]
    assert "is public" in "".join(printed) and "revealed" in "".join(printed)
    assert "nearest photos" in (run.folder / "fungi.csv").read_text()


@pytest.mark.parametrize(
    "page",
    ["README.md", *(f"docs/tutorials/{name}.md" for name in TUTORIALS), "docs/choose-a-method.md", "docs/reproduce.md"],
)
def test_every_command_that_a_page_shows_exists_with_its_options(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = re.findall(r"^(?:\$ )?fieldmark ([a-z][^\n]*)$", text, re.MULTILINE)
    assert lines
    for line in lines:
        group, words = GROUP, shlex.split(line, comments=True)
        while hasattr(group, "commands"):
            assert words[0] in group.commands, line
            group, words = group.commands[words[0]], words[1:]
        group.make_context("fieldmark", [word for word in words if word != "..."])
