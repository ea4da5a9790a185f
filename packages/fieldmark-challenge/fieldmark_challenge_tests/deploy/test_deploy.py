"""Files that put the platform on a server: linted where they cannot be run, with options that exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.main import get_command

from fieldmark_challenge.cli import serve, worker
from fieldmark_tests.places import ROOT

DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
UNITS = sorted((*DEPLOY.glob("*.service"), *DEPLOY.glob("*.timer")))
FROM_ELSEWHERE = {"FIELDMARK_TOKEN"}


def options() -> dict[str, set[str]]:
    """The options of `serve` and `worker`, and the variables that stand in for them."""
    app = typer.Typer()
    serve.add_to(app)
    worker.add_to(app)
    found: dict[str, set[str]] = {"variables": set()}
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        found[name] = {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)}
        for one in command.params:
            found["variables"] |= {one.envvar} if isinstance(one.envvar, str) else set(one.envvar or ())
    return found


def commands() -> list[list[str]]:
    """Every command line of ours in these files."""
    lines = [line.partition("bin/fieldmark ")[2] for unit in UNITS for line in unit.read_text().splitlines()]
    found = [line.split() for line in lines if line and not line.startswith("challenge")]
    found += [service["command"] for service in COMPOSE["services"].values() if "command" in service]
    started = re.search(r"^CMD (\[.*\])$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    assert started is not None
    return [*found, json.loads(started[1])]


def test_only_options_that_exist_are_given():
    known = options()
    assert len(commands()) == 7
    for verb, *given in commands():
        asked = {word.partition("=")[0] for word in given if word.startswith("--")}
        assert asked <= known[verb], (verb, asked - known[verb])
    for path in DEPLOY.iterdir():
        named = set(re.findall(r"FIELDMARK_[A-Z_]+", path.read_text()))
        assert named <= known["variables"] | FROM_ELSEWHERE, path.name


def test_the_containerfile_passes_its_linter():
    hadolint = shutil.which("hadolint", path=Path(sys.executable).parent) or shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("hadolint is not installed")
    done = subprocess.run([hadolint, str(DEPLOY / "Containerfile")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_compose_file_is_one():
    jsonschema = pytest.importorskip("jsonschema")
    schemas = pytest.importorskip("check_jsonschema").__path__[0]
    schema = json.loads(Path(schemas, "builtin_schemas", "vendor", "compose-spec.json").read_text())
    assert [error.message for error in jsonschema.validators.validator_for(schema)(schema).iter_errors(COMPOSE)] == []


def test_nothing_runs_as_root_or_without_a_check_of_its_health():
    text = (DEPLOY / "Containerfile").read_text()
    last = text.rpartition("\nFROM ")[2]
    assert re.search(r"^USER 10001", last, re.MULTILINE) and "HEALTHCHECK" in last
    for name, service in COMPOSE["services"].items():
        assert "healthcheck" in service or name == "web", name  # that of the web is in the image
        assert name == "database" or (service["read_only"] and service["cap_drop"] == ["ALL"])
        assert "user" not in service and not service.get("privileged")
    for unit in DEPLOY.glob("*.service"):
        assert re.search(r"^User=fieldmark$", unit.read_text(), re.MULTILINE), unit.name


def test_systemd_understands_the_units(tmp_path: Path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    for unit in UNITS:  # with a program that is there: the path of ours is for the server
        text = unit.read_text().replace("/opt/fieldmark/bin/fieldmark", "/bin/true")
        (tmp_path / unit.name).write_text(text)
    names = [str(tmp_path / unit.name) for unit in UNITS]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *names], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if "fieldmark" in line]
    assert not ours, ours
