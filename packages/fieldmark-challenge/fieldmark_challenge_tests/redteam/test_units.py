"""The shipped units: what systemd says of them, and their processes side by side under one account."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from pathlib import Path

from fieldmark_challenge_tests.platform import Platform
from fieldmark_challenge_tests.programs.hosted import host_snakes
from fieldmark_challenge_tests.programs.programs import archive_of
from fieldmark_challenge_tests.redteam.test_sandbox import crowd
from fieldmark_challenge_tests.units import DEPLOY, PROGRAM, command_of
from fieldmark_challenge_tests.unprivileged import as_account, environment, hand_over
from fieldmark_tests.system_programs import absent


def test_systemd_finds_nothing_wrong_with_the_units(tmp_path):
    if shutil.which("systemd-analyze") is None:
        absent("systemd is not installed")
    names = []
    for unit in sorted([*DEPLOY.glob("*.service"), *DEPLOY.glob("*.timer")]):
        name = unit.name.replace("@.", "@1.")
        (tmp_path / name).write_text(unit.read_text().replace(PROGRAM, "/bin/true"))
        names.append(str(tmp_path / name))
    assert len(names) == 5
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


# Shows a hidden photo wherever it can: it says it, answers with it, and fails.
SPY = """
import os
folder = os.environ["AICROWD_TEST_IMAGES_PATH"]
photo = open(os.path.join(folder, os.listdir(folder)[0]), "rb").read().hex()
print("zebraphoto", photo, flush=True)
open(os.environ["AICROWD_PREDICTIONS_OUTPUT_PATH"], "w").write(f"hashed_id,zebraphoto\\n{photo},1.0\\n")
os._exit(EXIT)
"""


def test_workers_of_the_units_run_side_by_side_under_one_account(small_platform: Platform, snake_world, tmp_path: Path):
    """Two that run programs and one that scores, beside more processes of the account than a program may have.

    Nothing of what a program saw gets into what they log.
    """
    hosted = host_snakes(small_platform, snake_world)
    sent = [
        hosted.hand_in(small_platform.captain(name, hosted.challenge), hosted.archive(right=24))
        for name in ("ada", "bob")
    ]
    spies = [
        hosted.hand_in(
            small_platform.captain(f"eve {status}", hosted.challenge), archive_of(SPY.replace("EXIT", status))
        )
        for status in "01"
    ]
    units = ["fieldmark-programs@.service", "fieldmark-programs@.service", "fieldmark-worker@.service"]
    commands = [as_account(command_of(unit, tmp_path), places=[hand_over(tmp_path)]) for unit in units]
    with crowd(64), (tmp_path / "said").open("wb") as said:
        started = [
            subprocess.Popen(command, env=environment(), cwd="/", stdout=said, stderr=said) for command in commands
        ]
        try:
            deadline = time.monotonic() + 240
            while any(small_platform.submission(one.submission_id).state != "scored" for one in sent) or any(
                small_platform.submission(one.submission_id).state != "refused" for one in spies
            ):
                assert time.monotonic() < deadline, (tmp_path / "said").read_text()[-3000:]
                assert all(one.poll() is None for one in started), (tmp_path / "said").read_text()[-3000:]
                time.sleep(0.1)
        finally:
            for one in started:
                one.send_signal(signal.SIGTERM)
            ended = [one.wait(60) for one in started]
    logged = (tmp_path / "said").read_text()
    assert ended == [0, 0, 0], logged[-3000:]
    assert all("zebraphoto" in hosted.program(one.id).log for one in spies) and "zebraphoto" not in logged
