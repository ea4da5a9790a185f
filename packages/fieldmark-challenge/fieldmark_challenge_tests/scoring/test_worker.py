"""Workers as they really run: processes that die, scores that are right, walls that hold."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fieldmark.scoring.score_parts import score_parts, truth_files
from fieldmark_challenge.lifecycle import creation
from fieldmark_challenge.operations import lease_queue
from fieldmark_challenge.records.schema import AuditEvent, PartScore, Submission
from fieldmark_challenge.scoring.scoring_process import Outcome
from fieldmark_challenge.scoring.worker import Worker
from fieldmark_challenge_tests.hosting import cards
from fieldmark_challenge_tests.platform import Platform, run_text, truth_text

MAIN = [sys.executable, "-c", "from fieldmark.cli.main import main; main()"]


def start_worker(database_url: str, files: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [*MAIN, "worker", "--database", database_url, "--files", str(files), "--lease", "2", *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for(platform: Platform, submission_id: int, state: str, seconds: float = 60) -> Submission:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = platform.submission(submission_id)
        if found.state == state:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{found.state}: {found.reason} {found.detail}")


def test_a_worker_killed_in_mid_score_is_followed_by_another_that_scores_once(
    platform: Platform, database_url, tmp_path
):
    run = platform.hand_in(platform.captain("ada"), run_text(right=45))
    doomed = start_worker(database_url, tmp_path / "files")
    try:
        wait_for(platform, run.id, "running")
        doomed.send_signal(signal.SIGKILL)
        doomed.wait()
        assert platform.submission(run.id).state == "running"  # nobody has noticed yet
        with platform.database.read() as session:
            assert session.query(PartScore).count() == 0
    finally:
        doomed.kill()
    heir = Worker(platform.database, platform.storage, name="heir")
    deadline = time.monotonic() + 30
    while not heir.run_one() and time.monotonic() < deadline:
        time.sleep(0.1)
    found = platform.submission(run.id)
    assert (found.state, found.attempts, found.worker) == ("scored", 2, "heir")
    assert sorted(row.part for row in found.scores) == ["private", "public"] and found.counted
    with platform.database.read() as session:
        assert session.query(AuditEvent).filter_by(action="submission.rescored").count() == 0  # scored once
    truth = platform.storage.fetch_folder(platform.challenge.truth_path, tmp_path / "truth")
    (tmp_path / "run.csv").write_text(run_text(right=45))
    expected = score_parts("folder", tmp_path / "run.csv", truth_files(truth))
    for row in found.scores:
        assert row.card["metrics"] == expected[row.part].to_json()["metrics"]


def test_a_mended_truth_changes_the_scores(small_platform: Platform):
    platform = small_platform
    run = platform.hand_in(platform.captain("ada"))
    worker = Worker(platform.database, platform.storage)
    worker.run(threading.Event(), until_idle=True)
    assert {row.value for row in platform.submission(run.id).scores} == {1.0}
    (platform.folder / "mended.csv").write_text(truth_text(swapped=True))
    creation.replace_truth(
        platform.database, platform.storage, platform.admin, platform.challenge, platform.folder / "mended.csv"
    )
    worker.run(threading.Event(), until_idle=True)
    after = platform.submission(run.id)
    assert after.state == "scored" and [row.value for row in after.scores] == [pytest.approx(1 / 3)] * 2
    assert after.accepted_at == run.accepted_at


def test_a_stored_run_that_was_changed_is_not_scored(small_platform: Platform, monkeypatch):
    monkeypatch.setattr(lease_queue, "RETRY_S", 0.0)
    platform = small_platform
    run = platform.hand_in(platform.captain("ada"))
    (platform.folder / "other.csv").write_text(run_text(right=3))
    platform.storage.put(platform.folder / "other.csv", run.path)
    worker = Worker(platform.database, platform.storage)
    worker.run(threading.Event(), until_idle=True)
    found = platform.submission(run.id)
    assert found.state == "failed" and "SHA-256" in found.detail and not found.counted and not found.scores


def test_a_run_is_not_scored_against_another_truth_than_that_of_the_challenge(small_platform: Platform):
    platform = small_platform
    run = platform.hand_in(platform.captain("ada"))
    (platform.folder / "other.csv").write_text(truth_text(swapped=True))
    platform.storage.put(platform.folder / "other.csv", f"{platform.challenge.truth_path}/truth.csv")
    assert Worker(platform.database, platform.storage).run_one()
    found = platform.submission(run.id)
    assert not found.scores and "the stored truth is not the one of the challenge" in found.detail


def test_a_worker_survives_its_own_faults_and_charges_nobody(small_platform: Platform, monkeypatch):
    platform = small_platform
    monkeypatch.setattr(lease_queue, "RETRY_S", 0.0)
    run = platform.hand_in(platform.captain("ada"))

    def stumble(*_: object, **__: object) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr("fieldmark_challenge.scoring.worker.score_in_sandbox", stumble)
    Worker(platform.database, platform.storage).run(threading.Event(), until_idle=True)
    found = platform.submission(run.id)
    assert (found.state, found.attempts, found.counted) == ("failed", lease_queue.MAX_ATTEMPTS, False)
    assert "a bug of ours" in found.detail and "bug" not in found.reason


def test_a_worker_that_is_told_to_stop_gives_its_run_back(small_platform: Platform):
    platform = small_platform
    run = platform.hand_in(platform.captain("ada"))
    stop = threading.Event()
    thread = threading.Thread(target=Worker(platform.database, platform.storage).run, args=(stop,))
    thread.start()
    wait_for(platform, run.id, "running")
    stop.set()
    thread.join(20)
    found = platform.submission(run.id)
    assert not thread.is_alive() and found.state == "queued" and found.attempts == 0


def test_a_score_that_is_no_number_is_never_ranked(small_platform: Platform, monkeypatch):
    platform = small_platform
    run = platform.hand_in(platform.captain("ada"))
    outcome = Outcome(cards=cards(float("nan")))
    monkeypatch.setattr("fieldmark_challenge.scoring.worker.score_in_sandbox", lambda *_, **__: outcome)
    assert Worker(platform.database, platform.storage).run_one()
    after = platform.submission(run.id)
    assert after.state == "refused" and "not a number" in after.reason and not after.scores and not after.counted
