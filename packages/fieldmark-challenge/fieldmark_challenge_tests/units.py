"""The shipped systemd units: what they start, for an account that has no systemd."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from fieldmark_tests.places import ROOT

DEPLOY = ROOT / "deploy"
PROGRAM, HOME = "/opt/fieldmark/bin/fieldmark", "/var/lib/fieldmark"
MAIN = [sys.executable, "-c", "from fieldmark.cli.main import main; main()"]


def command_of(unit: str, folder: Path, **variables: str) -> list[str]:
    """What a unit starts.

    Args:
        unit: Its file below `deploy`.
        folder: The platform, in place of /var/lib/fieldmark.
        variables: What its environment would say.
    """
    lines = (DEPLOY / unit).read_text().splitlines()
    command = next(line for line in lines if line.startswith("ExecStart=")).removeprefix("ExecStart=")
    for name, value in variables.items():
        command = command.replace(f"${{{name}}}", value)
    program, *words = shlex.split(command)
    assert program == PROGRAM
    return [*MAIN, *(str(folder) if word == HOME else word for word in words)]
