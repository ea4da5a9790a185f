"""studies/documents.md: every command, module, benchmark and test that the page names is there."""

from __future__ import annotations

import re
import shlex

import pytest
import typer

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.cli.main import app
from fieldmark.methods import METHODS
from fieldmark.releases import DATASETS
from fieldmark.steps import STEPS
from fieldmark_tests.places import ROOT

PAGE = (ROOT / "studies" / "documents.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("|") and not line.startswith(("|---", "| says |"))
]
NAMED = re.compile(r"`([^`]+)`")
COMMANDS = sorted({name for row in ROWS for name in NAMED.findall(row[2]) if name.startswith("fieldmark ")})
GROUP = typer.main.get_command(app)
PACKAGES = ROOT / "packages"
SOURCES = [PACKAGES / "fieldmark" / "src", PACKAGES / "fieldmark-challenge" / "src"]
TESTS = [
    PACKAGES / "fieldmark" / "fieldmark_tests",
    PACKAGES / "fieldmark-challenge" / "fieldmark_challenge_tests",
    ROOT / "workspace_tests",
]


def test_the_page_has_a_row_for_each_statement_with_a_place_and_a_proof():
    assert len(ROWS) >= 139
    for row in ROWS:
        assert len(row) == 3 and NAMED.search(row[1]) and NAMED.search(row[2]), row
        assert "absent" not in " ".join(row).lower(), row


def test_no_statement_stands_twice():
    assert len({(row[0], row[1]) for row in ROWS}) == len(ROWS)


def test_what_cannot_be_reached_is_weights_or_a_release_and_its_loading_is_tested():
    for row in ROWS:
        if "not reachable" in row[0].lower():
            assert re.search(r"weights|release|models|embeddings|archive", row[0].lower()), row
            assert "test_" in row[2], row


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_page_exists_with_its_options(line):
    verb, *arguments = shlex.split(line.removeprefix("fieldmark "))
    command = GROUP.commands[verb]
    while hasattr(command, "commands"):
        command, arguments = command.commands[arguments[0]], arguments[1:]
    values = command.make_context(verb, list(arguments)).params  # click takes the list apart
    method = values.get("method")
    for name in method if isinstance(method, list) else [method] if method else []:
        assert name.partition(":")[0] in METHODS
    assert all(step.partition(":")[0] in STEPS for step in values.get("steps") or ())
    if values.get("benchmark"):
        assert values["benchmark"] in BENCHMARKS
    if verb == "check":
        assert arguments[0] in DATASETS


def _module(name: str) -> str | None:
    """The source of the module that a dotted name begins with, and of what stands behind it, by files alone."""
    for prefix in ("", "fieldmark."):
        for root in SOURCES:
            parts = (prefix + name).split(".")
            for cut in range(len(parts), 0, -1):
                folder = root.joinpath(*parts[:cut])
                file = folder.with_suffix(".py") if folder.with_suffix(".py").is_file() else folder / "__init__.py"
                if file.is_file() and len(parts) - cut <= 1 and not (cut == 1 and prefix):
                    defined = parts[cut:] == [] or re.search(
                        rf"^(class|def) {parts[cut]}\b|^{parts[cut]}\b", file.read_text(encoding="utf-8"), re.MULTILINE
                    )
                    if defined:
                        return str(file)
    return None


def test_every_place_is_a_module_or_a_benchmark():
    missing = [
        name for row in ROWS for name in NAMED.findall(row[1]) if name not in BENCHMARKS and _module(name) is None
    ]
    assert not missing


def test_every_test_of_the_page_is_there():
    missing = []
    for row in ROWS:
        for name in NAMED.findall(row[2]):
            if name.startswith("fieldmark "):
                continue
            file, _, function = name.partition("::")
            found = [root / file for root in TESTS if (root / file).is_file()]
            defined = found and (not function or re.search(rf"^def {function}\(", found[0].read_text(), re.MULTILINE))
            missing += [] if defined else [name]
    assert not missing
