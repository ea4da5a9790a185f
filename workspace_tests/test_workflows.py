"""The workflows that GitHub runs."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest
import yaml

from fieldmark_tests.places import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_workflows_are_valid():
    pytest.importorskip("check_jsonschema")
    assert WORKFLOWS
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_may_read_and_nothing_else(path):
    assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}


def test_every_python_that_is_claimed_is_tested():
    projects = [tomllib.loads(path.read_text())["project"] for path in ROOT.glob("packages/*/pyproject.toml")]
    lines = [line for project in projects for line in project["classifiers"]]
    claimed = {line.rpartition(" ")[2] for line in lines if "Python :: 3." in line}
    assert len(projects) == 2 and claimed
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert claimed == {version for version in claimed if f'"{version}"' in text}
