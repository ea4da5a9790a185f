"""A challenge that asks for programs, from the archive to the board."""

from __future__ import annotations

import pytest

from fieldmark.challenge.coding.program_worker import ProgramWorker
from fieldmark.challenge.scoring.worker import Worker
from tests.challenge.coding.hosted import Hosted, host_snakes
from tests.challenge.platform import Platform


@pytest.fixture
def hosted(small_platform: Platform, snake_world) -> Hosted:
    return host_snakes(small_platform, snake_world)


def test_a_program_is_run_on_hidden_photos_and_its_run_is_scored_by_another_worker(hosted: Hosted):
    platform = hosted.platform
    ada = platform.captain("ada", hosted.challenge)
    program = hosted.hand_in(ada, hosted.archive(right=24))
    scorer = Worker(platform.database, platform.storage)
    assert not scorer.run_one()  # there is no run yet
    worker = ProgramWorker(platform.database, platform.storage)
    assert worker.run_one()
    done = hosted.program(program.id)
    assert (done.state, done.log) == ("done", "photos 24\n"), (done.reason, done.detail, done.log)
    assert scorer.run_one()
    scored = platform.submission(program.submission_id)
    assert scored.state == "scored" and {row.value for row in scored.scores} == {1.0}, scored.reason
    worker.inputs.close()
