"""Boards from the database, of each kind in turn."""

from __future__ import annotations

import pytest

from fieldmark.scoring.score_parts import score_parts, truth_files
from fieldmark.web.refusals import NotThereError
from fieldmark_challenge.boards import visibility
from fieldmark_challenge.boards.leaderboard import duel
from fieldmark_challenge.records.schema import Challenge
from fieldmark_challenge.scoring import queue
from fieldmark_challenge_tests.platform import Platform, run_text


def score_all(platform: Platform, *, right: list[int]) -> None:
    """Scores what waits, as a worker would, with runs that have so many right answers."""
    truth = platform.storage.fetch_folder(platform.challenge.truth_path, platform.folder / f"truth-{right[0]}")
    for number in right:
        claimed = queue.claim(platform.database, "w")
        run = platform.folder / "run.csv"
        run.write_text(run_text(right=number))
        queue.finish(platform.database, claimed, score_parts("folder", run, truth_files(truth)))


def test_boards_follow_new_runs_choices_and_scores(platform):
    ada, bea = platform.captain("ada"), platform.captain("bea")
    for user, right in ((ada, 50), (bea, 20), (bea, 30)):
        platform.hand_in(user, run_text(right=right), title=f"{right} right")
    score_all(platform, right=[50, 20, 30])
    with platform.database.read() as session:
        challenge = session.get_one(Challenge, platform.challenge.id)
        sight = visibility.look(challenge, None, manages=False)
        board = visibility.board_of(session, sight, "top_1")
        assert [row.entrant.title for row in board.rows] == ["50 right", "30 right"]
        assert visibility.board_of(session, sight, "top_1") is board  # computed once
        first, second = (visibility.entry_of(session, sight, row.entrant.id) for row in board.rows)
        assert duel("folder", first, second, metric="top_1").difference.value > 0
        with pytest.raises(NotThereError):
            visibility.look(challenge, "private", manages=False)
        private = visibility.board_of(session, visibility.look(challenge, "private", manages=True), "top_1")
        assert [row.entrant.title for row in private.rows] == ["50 right", "30 right"]
    platform.hand_in(bea, run_text(right=60), title="all right")
    score_all(platform, right=[60])
    with platform.database.read() as session:
        challenge = session.get_one(Challenge, platform.challenge.id)
        board = visibility.board_of(session, visibility.look(challenge, None, manages=False), "top_1")
    assert [row.entrant.title for row in board.rows] == ["all right", "50 right"]


def test_a_team_that_breaks_the_rule_on_external_data_has_no_place_in_the_end(platform):
    ada, bea = platform.captain("ada"), platform.captain("bea")
    platform.hand_in(ada, title="with more data", external_data=True, external_note="GBIF")
    platform.hand_in(bea, run_text(right=20), title="without")
    score_all(platform, right=[60, 20])
    with platform.database.write() as session:
        challenge = session.get_one(Challenge, platform.challenge.id)
        challenge.needs_run_without_external = True
        session.flush()
        public = visibility.board_of(session, visibility.look(challenge, "public", manages=True))
        private = visibility.board_of(session, visibility.look(challenge, "private", manages=True))
    assert [(row.entrant.title, row.place) for row in public.rows] == [("with more data", 1), ("without", 2)]
    assert [(row.entrant.title, row.place) for row in private.rows] == [("with more data", None), ("without", 1)]
    assert "at least one run without external data" in private.rows[0].entrant.unranked
