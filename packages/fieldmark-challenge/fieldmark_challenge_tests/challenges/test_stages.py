"""Two stages: another test set, dates and limits, and only the teams that came through."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError
from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.boards import visibility
from fieldmark_challenge.challenges import admissions, phases
from fieldmark_challenge.lifecycle import advancement, challenge_settings, creation, standings
from fieldmark_challenge.lifecycle.creation import NewChallenge, create_challenge, material_of_files
from fieldmark_challenge.people import accounts, teams
from fieldmark_challenge.people.rights import team_of
from fieldmark_challenge.records.schema import Challenge, Team, utc_now
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests.boards.test_visibility import score_all
from fieldmark_challenge_tests.platform import PASSWORD, Platform, run_text, truth_text

RIGHT = {"ada": 50, "bea": 40, "cyd": 40, "dan": 20}


def second_stage(platform: Platform, slug: str = "final", **settings: object) -> Challenge:
    """A stage on items of its own, with a limit of two runs a day."""
    truth = platform.folder / "second.csv"
    truth.write_text(re.sub(r"^i", "j", truth_text(), flags=re.M).replace("jd,", "id,"))
    with material_of_files("folder", truth) as material:
        given = {"public_share": 0.5, "stage_of": "tiny", "daily_limit": 2} | settings
        return create_challenge(
            platform.database, platform.storage, platform.admin, NewChallenge(slug, "folder", **given), material
        )


def first_stage(platform: Platform) -> None:
    """Four teams with a scored run each, and one without."""
    for name, right in RIGHT.items():
        platform.hand_in(platform.captain(name), run_text(right=right), title=name)
    platform.captain("eve")
    score_all(platform, right=list(RIGHT.values()))


def end_first_stage(platform: Platform) -> None:
    platform.set_phase(ends_at=utc_now())
    phases.reveal(platform.database, platform.admin, platform.challenge)


def names(platform: Platform, challenge: Challenge) -> set[str]:
    with platform.database.read() as session:
        found = session.query(Team).filter_by(challenge_id=challenge.id, kind="participants")
        return {team.name for team in found}


def test_the_first_teams_go_on_to_another_test_set(platform: Platform):
    first_stage(platform)
    final = second_stage(platform, stage_entry="top", stage_top=2)
    assert final.access == "invitation" and final.truth_sha256 != platform.challenge.truth_sha256
    with pytest.raises(ConflictError, match="reveal them first"):
        advancement.advance(platform.database, platform.admin, final)
    end_first_stage(platform)
    came = advancement.advance(platform.database, platform.admin, final)
    assert set(came) == {"team ada", "team bea", "team cyd"}  # the second place is shared
    assert advancement.advance(platform.database, platform.admin, final) == []
    ada, dan = platform.people["ada"], platform.people["dan"]
    with pytest.raises(ConflictError, match="Accept the rules"):
        platform.hand_in(ada, challenge=final)
    with pytest.raises(ConflictError, match="came through"):
        teams.accept_rules(platform.database, dan, final)
    code = admissions.make_code(platform.database, platform.admin, final)
    admissions.use_code(platform.database, dan, code)
    teams.accept_rules(platform.database, dan, final)
    with pytest.raises(ConflictError, match="came through"):
        teams.make_team(platform.database, dan, final, "by the back door")
    with pytest.raises(ConflictError, match="came through"):
        with platform.database.read() as session:
            own = team_of(session, ada, final)
        teams.join(platform.database, dan, teams.invite(platform.database, ada, own))
    teams.accept_rules(platform.database, ada, final)
    with pytest.raises(RefusalError, match="problems"):
        platform.hand_in(ada, challenge=final)  # a run about the items of the stage before
    run = platform.hand_in(ada, re.sub(r"^i(?=\d)", "j", run_text(right=30), flags=re.M), challenge=final)
    with platform.database.read() as session:
        quota_of = session.get_one(Challenge, final.id)
        assert (quota_of.phases[0].daily_limit, platform.submission(run.id).team_id) == (2, own.id)
        board = visibility.board_of(session, visibility.look(quota_of, "public", manages=False))
        assert board.rows == ()  # its own board, on which nothing is scored yet


def test_who_is_out_does_not_go_on_and_comes_after_being_put_back(small_platform: Platform):
    platform = small_platform
    first_stage(platform)
    final = second_stage(platform, stage_entry="final")
    end_first_stage(platform)
    with platform.database.read() as session:
        team = session.query(Team).filter_by(name="team ada").one()
    place = (platform.database, platform.admin, platform.challenge)
    standings.set_team_standing(*place, team.id, "disqualified", "two accounts")
    challenge_settings.add_organizer(platform.database, platform.admin, final, "dan")
    assert set(advancement.advance(platform.database, platform.admin, final)) == {"team bea", "team cyd"}
    standings.set_team_standing(*place, team.id, "", "")
    assert advancement.advance(platform.database, platform.admin, final) == ["team ada"]
    assert names(platform, final) == {"team ada", "team bea", "team cyd"}  # eve has no run, dan knows the truth
    with pytest.raises(ConflictError, match="came through"):
        texts = challenge_settings.texts_of(final)
        changed = challenge_settings.Texts(**{**texts.__dict__, "access": "open"})
        challenge_settings.change(platform.database, platform.admin, final, changed, most_upload_mb=64)


def test_a_private_line_of_stages_stays_private_and_pages_show_the_stages(small_platform: Platform):
    platform = small_platform
    ada = platform.captain("ada")
    platform.hand_in(ada, run_text(right=30))
    score_all(platform, right=[30])
    with platform.database.write() as session:
        session.get_one(Challenge, platform.challenge.id).access = "private"
    with pytest.raises(RefusalError, match="how many"):
        second_stage(platform, stage_entry="top")
    with pytest.raises(NotThereError):
        second_stage(platform, stage_of="none")
    final = second_stage(platform)
    assert final.access == "private"
    with pytest.raises(ConflictError, match="next stage already"):
        second_stage(platform, "another")
    end_first_stage(platform)
    client = TestClient(create_app(platform.database, platform.storage))
    client.cookies.set(SESSION_COOKIE, accounts.sign_in(platform.database, "ada", PASSWORD)[1])
    assert client.get("/c/final").status_code == 404 and "/c/final" not in client.get("/c/tiny/board").text
    advancement.advance(platform.database, platform.admin, final)
    for path in ("/c/tiny/board", "/c/final/board", "/c/tiny", "/c/final"):
        page = client.get(path)
        assert page.status_code == 200 and "Stage 1: tiny" in page.text and "Stage 2: final" in page.text, path
    token = accounts.make_token(platform.database, ada, "shell", ["read"])
    told = client.get("/api/v1/challenges/final", headers={"authorization": f"Bearer {token}"}).json()
    assert (told["stage_of"], told["stage_entry"]) == ("tiny", "all")
    assert creation.warnings_about(platform.database, platform.storage, final) == []
