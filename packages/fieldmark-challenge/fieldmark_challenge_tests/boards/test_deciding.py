"""A challenge is decided by the metric it was made with, whatever a later version of the benchmark names."""

from __future__ import annotations

from fieldmark.benchmarks import BENCHMARKS
from fieldmark_challenge.boards import visibility
from fieldmark_challenge.challenges.finals import final_submissions
from fieldmark_challenge.records.schema import Challenge
from fieldmark_challenge.scoring import queue
from fieldmark_challenge_tests.hosting import cards
from fieldmark_challenge_tests.platform import Platform, run_text


def test_the_stored_metric_decides_about_board_finals_and_stored_values(small_platform: Platform):
    platform = small_platform
    assert platform.challenge.metric == BENCHMARKS["folder"].task.deciding.name != "top_1"
    with platform.database.write() as session:
        session.get_one(Challenge, platform.challenge.id).metric = "top_1"
    ada = platform.captain("ada")
    platform.hand_in(ada, run_text(right=40))
    queue.finish(platform.database, queue.claim(platform.database, "w"), cards(0.5))
    with platform.database.read() as session:
        challenge = session.get_one(Challenge, platform.challenge.id)
        board = visibility.board_of(session, visibility.look(challenge, "public", manages=False))
        assert (board.metric.name, board.rows[0].score.value) == ("top_1", 0.25)
        assert [score.value for score in final_submissions(session, challenge)[0].submission.scores] == [0.25, 0.25]
