"""Whatever changes a board changes its stamp, on each database; what does not leaves it alone."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import event, select

from fieldmark_challenge.boards import visibility
from fieldmark_challenge.boards.own_scores import own_metrics
from fieldmark_challenge.challenges import phases
from fieldmark_challenge.operations.lease_queue import RUNS
from fieldmark_challenge.people import teams
from fieldmark_challenge.records.schema import BoardStamp, Challenge, Submission, Team, utc_now
from fieldmark_challenge.scoring import queue
from fieldmark_challenge.submissions.submissions import select_final
from fieldmark_challenge_tests.boards.test_visibility import score_all
from fieldmark_challenge_tests.hosting import cards
from fieldmark_challenge_tests.platform import Platform, run_text


def stamp(platform: Platform) -> str:
    with platform.database.read() as session:
        query = select(BoardStamp.stamp).where(BoardStamp.challenge_id == platform.challenge.id)
        return session.scalars(query).one()


def test_every_change_of_a_board_leaves_another_stamp(platform: Platform):
    database, challenge = platform.database, platform.challenge
    ada = platform.captain("ada")
    run = platform.hand_in(ada, run_text(right=40))
    other = platform.hand_in(ada, run_text(right=20))

    def change(model: type, key: int, **values: object) -> None:
        with database.write() as session:
            for name, value in values.items():
                setattr(session.get_one(model, key), name, value)

    def retried() -> None:
        queue.rescore(database, platform.admin, challenge, only=run.id)
        claimed = queue.claim(database, "w")
        queue.give_back(database, claimed, "broken", again=False)

    steps: dict[str, Callable[[], object]] = {
        "a score": lambda: queue.finish(database, queue.claim(database, "w"), cards(0.5)),
        "a refusal": lambda: queue.refuse(database, queue.claim(database, "w"), [], "no number"),
        "a choice": lambda: select_final(database, ada, challenge, run.id, True),
        "the name of a run": lambda: change(Submission, run.id, title="another"),
        "the name of a team": lambda: change(Team, run.team_id, name="Another"),
        "a frozen board": lambda: phases.freeze(database, platform.admin, challenge),
        "the rules": lambda: change(Challenge, challenge.id, max_final=1),
        "a fault": retried,
        "a score again": lambda: queue.rescore(database, platform.admin, challenge),
    }
    seen = [stamp(platform)]
    for what, act in steps.items():
        act()
        assert stamp(platform) not in seen, what
        seen.append(stamp(platform))
    assert platform.submission(other.id).state == "refused"


def test_runs_that_wait_and_workers_that_live_change_nothing(platform: Platform):
    ada = platform.captain("ada")
    before = stamp(platform)
    platform.hand_in(ada)
    claimed = queue.claim(platform.database, "w")
    RUNS.renew(platform.database, claimed)
    queue.release(platform.database, claimed)
    teams.invite(platform.database, ada, platform.team(ada))
    assert stamp(platform) == before
    try:
        with platform.database.write() as session:
            session.get_one(Challenge, platform.challenge.id).max_final = 7
            session.flush()
            sight = visibility.look(session.get_one(Challenge, platform.challenge.id), None, manages=False)
            assert visibility.state_of(session, sight) is None  # in the midst of a change nothing is kept
            raise InterruptedError
    except InterruptedError:
        assert stamp(platform) == before


def test_a_kept_board_is_not_read_again_and_own_pages_read_own_rows(small_platform: Platform):
    platform = small_platform
    users = [platform.captain(name) for name in ("ada", "bea", "cyd")]
    runs = [platform.hand_in(user, run_text(right=20 + 10 * place)) for place, user in enumerate(users)]
    score_all(platform, right=[20, 30, 40])
    statements: list[str] = []

    def listen(_connection, _cursor, statement, parameters, *_rest) -> None:
        statements.append(f"{statement} {parameters}")

    event.listen(platform.database.engine, "before_cursor_execute", listen)
    with platform.database.read() as session:
        challenge = session.get_one(Challenge, platform.challenge.id)
        for _ in range(2):
            statements.clear()
            visibility.board_of(session, visibility.look(challenge, None, manages=False))
        assert [one for one in statements if "scores" in one] == []
        statements.clear()
        mine = [session.get_one(Submission, runs[0].id)]
        assert own_metrics(session, challenge, mine, manages=False)[runs[0].id]["public"]
        asked = [one for one in statements if "FROM scores" in one]
        assert len(asked) == 1 and f"({runs[0].id}, 'public')" in asked[0]


def test_a_board_is_another_one_after_the_end_of_a_freeze(small_platform: Platform):
    platform = small_platform
    platform.hand_in(platform.captain("ada"), run_text(right=40))
    phases.freeze(platform.database, platform.admin, platform.challenge)
    platform.hand_in(platform.captain("bea"), run_text(right=50), arrived=utc_now())
    score_all(platform, right=[40, 50])

    def teams_shown(manages: bool) -> list[str]:
        with platform.database.read() as session:
            challenge = session.get_one(Challenge, platform.challenge.id)
            board = visibility.board_of(session, visibility.look(challenge, "public", manages=manages))
            return [row.entrant.team for row in board.rows]

    assert teams_shown(manages=False) == ["team ada"] and teams_shown(manages=True) == ["team bea", "team ada"]
    phases.freeze(platform.database, platform.admin, platform.challenge, frozen=False)
    assert teams_shown(manages=False) == ["team bea", "team ada"]
