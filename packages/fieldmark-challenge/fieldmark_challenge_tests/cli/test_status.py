"""How a challenge stands, in the shell."""

from __future__ import annotations

import threading

from typer.testing import CliRunner

from fieldmark.cli.main import app
from fieldmark.scoring.measurement import FEW_UNITS_CAUTION
from fieldmark_challenge.scoring.worker import Worker
from fieldmark_challenge_tests.platform import Platform, run_text


def test_the_caution_about_few_units_is_told_beside_the_board(small_platform: Platform):
    platform = small_platform
    command = ["challenge", "board", platform.challenge.slug, "--folder", str(platform.folder)]
    assert "no scored runs on the public part yet" in CliRunner().invoke(app, command).stdout
    platform.hand_in(platform.captain("ada"), run_text(right=40))
    Worker(platform.database, platform.storage).run(threading.Event(), until_idle=True)
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0 and "team ada" in shown.stdout
    before, after = FEW_UNITS_CAUTION.split("{}")
    assert f"note: macro_f1_all: {before}" in shown.stdout and after in shown.stdout
