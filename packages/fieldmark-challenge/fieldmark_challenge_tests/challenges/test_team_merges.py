"""Teams that change: merged without a gain of runs, handed over, left, withdrawn."""

from __future__ import annotations

import datetime as dt

import pytest

from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError, TooOftenError
from fieldmark_challenge.boards import visibility
from fieldmark_challenge.challenges import phases, team_merges
from fieldmark_challenge.lifecycle import challenge_settings
from fieldmark_challenge.people import teams
from fieldmark_challenge.people.rights import team_of
from fieldmark_challenge.records.schema import AuditEvent, Challenge, Submission, Team, User, utc_now
from fieldmark_challenge.submissions.submissions import select_final
from fieldmark_challenge_tests.boards.test_visibility import score_all
from fieldmark_challenge_tests.platform import Platform, run_text
from fieldmark_challenge_tests.submissions.test_submissions import parallel


def allow(platform: Platform, **settings: object) -> None:
    with platform.database.write() as session:
        challenge = session.get_one(Challenge, platform.challenge.id)
        challenge.merging = True
        for name, value in settings.items():
            setattr(challenge, name, value)


def join(platform: Platform, captain: User, name: str) -> User:
    user = platform.person(name)
    teams.accept_rules(platform.database, user, platform.challenge)
    teams.join(platform.database, user, teams.invite(platform.database, captain, platform.team(captain)))
    return user


def board(platform: Platform) -> list[tuple[str, str]]:
    with platform.database.read() as session:
        challenge = session.get_one(Challenge, platform.challenge.id)
        shown = visibility.board_of(session, visibility.look(challenge, "public", manages=False))
        return [(row.entrant.team, row.entrant.title) for row in shown.rows]


def test_merged_teams_have_the_runs_and_the_limits_of_one(platform: Platform):
    ada, bea = platform.captain("ada"), platform.captain("bea")
    cyd = join(platform, ada, "cyd")
    today, place = utc_now(), (platform.database, platform.challenge)
    platform.set_phase(starts_at=today - dt.timedelta(days=9), daily_limit=3, total_limit=6)
    runs = [platform.hand_in(ada, run_text(right=40), title="of ada", idempotency_key="the same key")]
    runs += [
        platform.hand_in(bea, run_text(right=right), title="of bea", **keyed)
        for right, keyed in ((50, {"idempotency_key": "the same key"}), (30, {}))
    ]
    score_all(platform, right=[40, 50, 30])
    for user, run in zip((ada, bea, bea), runs, strict=True):
        select_final(platform.database, user, platform.challenge, run.id, True)
    with pytest.raises(ConflictError, match="do not allow"):
        team_merges.offer_merge(platform.database, ada, platform.challenge, "team bea")
    allow(platform)
    with pytest.raises(ConflictError, match="Only the captain"):
        team_merges.offer_merge(platform.database, cyd, platform.challenge, "team bea")
    with pytest.raises(RefusalError, match="no other team"):
        team_merges.offer_merge(platform.database, ada, platform.challenge, "team ada")
    offer = team_merges.offer_merge(platform.database, ada, platform.challenge, " Team  BEA")
    with pytest.raises(ConflictError, match="other team decides"):
        team_merges.settle_merge(platform.database, ada, platform.challenge, offer.id, accept=True)
    outsider = platform.captain("eve")
    with pytest.raises(NotThereError):
        team_merges.settle_merge(platform.database, outsider, platform.challenge, offer.id, accept=True)
    team_merges.settle_merge(platform.database, bea, platform.challenge, offer.id, accept=True)
    assert {platform.team(user).name for user in (ada, bea, cyd)} == {"team bea"}
    assert board(platform) == [("team bea", "of bea")]
    assert platform.quota(cyd).today_left == 0
    with pytest.raises(TooOftenError):
        platform.hand_in(cyd)
    with platform.database.read() as session:
        assert not any(session.query(Submission.selected).all()[0])  # three were chosen where two may be
        past = session.query(Team).filter_by(name="team ada").one()
        assert (past.standing, past.standing_reason) == ("merged", "merged into team bea")
    with pytest.raises(NotThereError):
        team_merges.settle_merge(platform.database, bea, place[1], offer.id, accept=True)
    with pytest.raises(ConflictError, match="looks like it"):
        teams.make_team(platform.database, _ready(platform, "fay"), platform.challenge, "Team Ada")


def _ready(platform: Platform, name: str) -> User:
    user = platform.person(name)
    teams.accept_rules(platform.database, user, platform.challenge)
    return user


def test_teams_that_handed_in_more_than_one_could_have_stay_apart(platform: Platform):
    ada, bea = platform.captain("ada"), platform.captain("bea")
    allow(platform)
    yesterday = utc_now() - dt.timedelta(days=1)
    platform.set_phase(starts_at=yesterday - dt.timedelta(days=9), daily_limit=2, total_limit=5)
    for user in (ada, bea):
        for _ in range(2):
            platform.hand_in(user, arrived=yesterday)
    day = yesterday.date().isoformat()
    with pytest.raises(ConflictError, match=f"4 runs on {day} in the phase 'main', where one team had 2 a day"):
        team_merges.offer_merge(platform.database, ada, platform.challenge, "team bea")
    platform.set_phase(daily_limit=9, total_limit=3)
    with pytest.raises(ConflictError, match="4 runs in the phase 'main', where one team had 3"):
        team_merges.offer_merge(platform.database, ada, platform.challenge, "team bea")
    platform.set_phase(total_limit=4)
    allow(platform, max_team_size=1)
    with pytest.raises(ConflictError, match="2 members"):
        team_merges.offer_merge(platform.database, ada, platform.challenge, "team bea")
    allow(platform, max_team_size=2)
    offers = [
        team_merges.offer_merge(platform.database, one, platform.challenge, other).id
        for one, other in ((ada, "team bea"), (bea, "team ada"))
    ]

    def agree(number: int) -> bool:
        try:
            user = (bea, ada)[number % 2]
            team_merges.settle_merge(platform.database, user, platform.challenge, offers[number % 2], accept=True)
        except RefusalError:
            return False
        return True

    assert sum(parallel(6, agree)) == 1  # asked of each other and agreed to at once: one of the two wishes is granted
    with platform.database.read() as session:
        assert session.query(Submission.team_id).distinct().count() == 1
    platform.set_phase(ends_at=utc_now())
    with pytest.raises(ConflictError, match="while a phase is open"):
        team_merges.offer_merge(platform.database, platform.captain("cyd"), platform.challenge, platform.team(ada).name)


def test_a_merge_goes_by_the_limits_that_held_when_each_run_was_handed_in(small_platform: Platform):
    """A limit that was raised later would let two teams gain, one that was lowered would keep them apart."""
    platform = small_platform
    ada, bea, cyd = (platform.captain(name) for name in ("ada", "bea", "cyd"))
    allow(platform)
    day = dt.timedelta(days=1)
    now = utc_now()
    platform.set_phase(starts_at=now - 9 * day, daily_limit=2, total_limit=9)

    def change(ago: dt.timedelta, **limits: object) -> None:
        phases.change_phase(platform.database, platform.admin, platform.challenge, platform.phase(), **limits)
        with platform.database.write() as session:
            session.query(AuditEvent).filter_by(action="phase.set").order_by(AuditEvent.id.desc()).first().at = (
                now - ago
            )

    for user in (ada, bea):
        for _ in range(2):
            platform.hand_in(user, arrived=now - 3 * day)
    change(2 * day, daily_limit=8, name="renamed")
    with pytest.raises(ConflictError, match=r"4 runs on .* in the phase 'renamed', where one team had 2 a day"):
        team_merges.offer_merge(platform.database, ada, platform.challenge, "team bea")
    for _ in range(4):
        platform.hand_in(cyd, arrived=now - 1.5 * day)
    change(day, daily_limit=3, total_limit=4)
    team_merges.offer_merge(
        platform.database, ada, platform.challenge, "team cyd"
    )  # six in all, when nine were allowed
    platform.hand_in(bea)
    with pytest.raises(ConflictError, match="7 runs in the phase 'renamed', where one team had 4"):
        team_merges.offer_merge(platform.database, bea, platform.challenge, "team cyd")


def test_a_captain_hands_over_and_leaves_for_good(small_platform: Platform):
    platform = small_platform
    ada = platform.captain("ada")
    bob = join(platform, ada, "bob")
    run = platform.hand_in(ada)
    with pytest.raises(ConflictError, match="Make another member captain"):
        teams.leave(platform.database, ada, platform.challenge)
    with pytest.raises(ConflictError, match="Only the captain"):
        teams.hand_over(platform.database, bob, platform.challenge, bob.id)
    with pytest.raises(NotThereError):
        teams.hand_over(platform.database, ada, platform.challenge, platform.person("eve").id)
    teams.hand_over(platform.database, ada, platform.challenge, bob.id)
    teams.leave(platform.database, ada, platform.challenge)
    with platform.database.read() as session:
        assert team_of(session, ada, platform.challenge) is None
    with pytest.raises(ConflictError, match="Make a team or join one"):
        platform.hand_in(ada)
    with pytest.raises(ConflictError, match="there is no other team for you"):
        teams.make_team(platform.database, ada, platform.challenge, "another")
    with pytest.raises(ConflictError, match="there is no other team for you"):
        cyd = platform.captain("cyd")
        teams.join(platform.database, ada, teams.invite(platform.database, cyd, platform.team(cyd)))
    with platform.database.write() as session:
        session.get_one(Challenge, platform.challenge.id).max_team_size = 2
    with pytest.raises(ConflictError, match="full"):  # not more people one after the other than at once
        join(platform, bob, "fay")
    with pytest.raises(ConflictError, match="takes part"):
        challenge_settings.add_organizer(platform.database, platform.admin, platform.challenge, "ada")
    teams.join(platform.database, ada, teams.invite(platform.database, bob, platform.team(bob)))
    assert platform.team(ada).captain_id == bob.id and platform.submission(run.id).team_id == platform.team(ada).id


def test_a_team_withdraws_until_the_results_are_out(small_platform: Platform):
    platform = small_platform
    ada, bea = platform.captain("ada"), platform.captain("bea")
    for user, right in ((ada, 50), (bea, 40)):
        platform.hand_in(user, run_text(right=right), title=user.name)
    score_all(platform, right=[50, 40])
    teams.withdraw(platform.database, ada, platform.challenge)
    assert board(platform) == [("team bea", "bea")]
    with pytest.raises(ConflictError, match="withdrawn"):
        platform.hand_in(ada)
    with pytest.raises(ConflictError, match="nothing to change"):
        teams.withdraw(platform.database, ada, platform.challenge)
    teams.withdraw(platform.database, ada, platform.challenge, back=True)
    assert len(board(platform)) == 2
    platform.set_phase(ends_at=utc_now())
    phases.reveal(platform.database, platform.admin, platform.challenge)
    with pytest.raises(ConflictError, match="results are out"):
        teams.withdraw(platform.database, bea, platform.challenge)
