"""Teams and runs that are taken out of the ranking: the board says so, ranks close up, and it can be undone."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from fieldmark.cli.main import app
from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError
from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.boards import visibility
from fieldmark_challenge.challenges import phases
from fieldmark_challenge.challenges.finals import final_submissions
from fieldmark_challenge.lifecycle import standings
from fieldmark_challenge.people import accounts, teams
from fieldmark_challenge.records.schema import AuditEvent, Challenge, Submission, utc_now
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge.submissions.submissions import select_final
from fieldmark_challenge_tests.boards.test_visibility import score_all
from fieldmark_challenge_tests.platform import PASSWORD, Platform, run_text


def furnish(platform: Platform) -> dict[str, int]:
    """Three teams with a scored run each, and a second one of the best."""
    runs = {}
    for name, right in (("ada", 50), ("ada", 40), ("bea", 30), ("cyd", 20)):
        user = platform.people.get(name) or platform.captain(name)
        runs[f"{name} {right}"] = platform.hand_in(user, run_text(right=right), title=f"{name} {right}").id
    score_all(platform, right=[50, 40, 30, 20])
    return runs


def board(platform: Platform, part: str = "public", **sight: object) -> list[tuple[str, int | None]]:
    with platform.database.read() as session:
        challenge = session.get_one(Challenge, platform.challenge.id)
        shown = visibility.board_of(session, visibility.look(challenge, part, manages=part == "private"), "top_1")
        return [*((row.entrant.title, row.place) for row in shown.rows)]


def apart(platform: Platform) -> list[tuple[str, str, str, bool]]:
    with platform.database.read() as session:
        challenge = session.get_one(Challenge, platform.challenge.id)
        shown = visibility.board_of(session, visibility.look(challenge, "public", manages=False), "top_1")
        return [(one.team, one.title, one.reason, one.late) for one in shown.set_apart]


def test_the_board_names_who_is_out_and_the_others_close_up(platform: Platform):
    runs = furnish(platform)
    ada, place = platform.people["ada"], (platform.database, platform.admin, platform.challenge)
    team = platform.team(ada)
    assert board(platform) == [("ada 50", 1), ("bea 30", 2), ("cyd 20", 3)]
    standings.set_run_standing(*place, runs["ada 50"], "disqualified", "made with the labels")
    assert board(platform) == [("ada 40", 1), ("bea 30", 2), ("cyd 20", 3)]
    assert apart(platform) == [("team ada", "ada 50", "made with the labels", False)]
    standings.set_team_standing(*place, team.id, "disqualified", "two accounts")
    assert board(platform) == [("bea 30", 1), ("cyd 20", 2)] == board(platform, "private")
    assert apart(platform) == [("team ada", "", "two accounts", False)]
    with pytest.raises(ConflictError, match=r"disqualified.*two accounts"):
        platform.hand_in(ada)
    with pytest.raises(ConflictError, match="out of the ranking"):
        select_final(platform.database, ada, platform.challenge, runs["ada 40"], True)
    with pytest.raises(ConflictError, match="nobody leaves"):
        teams.leave(platform.database, ada, platform.challenge)
    standings.set_team_standing(*place, team.id, "hidden", "under investigation")
    assert board(platform) == [("bea 30", 1), ("cyd 20", 2)] and apart(platform) == []
    standings.set_team_standing(*place, team.id, "", "")
    standings.set_run_standing(*place, runs["ada 50"], "", "the labels were public")
    assert board(platform) == [("ada 50", 1), ("bea 30", 2), ("cyd 20", 3)] and apart(platform) == []
    with platform.database.read() as session:
        noted = [event.details for event in session.query(AuditEvent).filter(AuditEvent.action.like("%.standing"))]
    assert [(one["before"]["standing"], one["standing"]) for one in noted] == [
        *(("", "disqualified"), ("", "disqualified"), ("disqualified", "hidden"), ("hidden", ""), ("disqualified", ""))
    ]


def test_what_is_taken_out_before_the_results_makes_room_and_afterwards_leaves_its_place_empty(platform: Platform):
    runs = furnish(platform)
    place = (platform.database, platform.admin, platform.challenge)
    with platform.database.write() as session:
        session.get_one(Challenge, platform.challenge.id).max_final = 1

    def finals() -> list[str]:
        with platform.database.read() as session:
            challenge = session.get_one(Challenge, platform.challenge.id)
            return [final.submission.title for final in final_submissions(session, challenge)]

    assert finals() == ["ada 50", "bea 30", "cyd 20"]
    standings.set_run_standing(*place, runs["ada 50"], "disqualified", "by mistake")
    assert finals() == ["ada 40", "bea 30", "cyd 20"]
    standings.set_run_standing(*place, runs["ada 50"], "", "")
    platform.set_phase(ends_at=utc_now())
    phases.reveal(platform.database, platform.admin, platform.challenge)
    standings.set_run_standing(*place, runs["ada 50"], "disqualified", "found out later")
    assert finals() == ["bea 30", "cyd 20"]
    assert apart(platform) == [("team ada", "ada 50", "found out later", True)]
    with platform.database.read() as session:
        last = session.query(AuditEvent).order_by(AuditEvent.id.desc()).first()
    assert last.action == "submission.standing" and last.details["after_reveal"] is True


def test_pages_files_and_tags_follow(small_platform: Platform):
    platform = small_platform
    runs = furnish(platform)
    browser = TestClient(create_app(platform.database, platform.storage), follow_redirects=False)
    browser.cookies.set(SESSION_COOKIE, accounts.sign_in(platform.database, "bea", PASSWORD)[1])
    before = browser.get("/c/tiny/board")
    assert browser.get("/c/tiny/board", headers={"if-none-match": before.headers["etag"]}).status_code == 304
    with platform.database.read() as session:
        team_id = session.get_one(Submission, runs["ada 50"]).team_id
    place = (platform.database, platform.admin, platform.challenge)
    standings.set_team_standing(*place, team_id, "disqualified", "<b>two</b> accounts")
    after = browser.get("/c/tiny/board", headers={"if-none-match": before.headers["etag"]})
    assert after.status_code == 200 and "&lt;b&gt;two&lt;/b&gt; accounts" in after.text and "ada 50" not in after.text
    assert browser.get(f"/c/tiny/entries/{runs['ada 50']}").status_code == 404
    assert "team ada,,,,disqualified: <b>two</b> accounts" in browser.get("/c/tiny/board.csv").text
    assert browser.get("/c/tiny/board.json").json()["set_apart"][0]["reason"] == "<b>two</b> accounts"
    told = CliRunner().invoke(app, ["challenge", "board", "tiny", "--folder", str(platform.folder)])
    assert "disqualified: team ada (" in told.stdout


def test_a_reason_is_needed_and_only_ones_own_challenge_is_touched(small_platform: Platform):
    platform = small_platform
    ada = platform.captain("ada")
    place = (platform.database, platform.admin)
    team = platform.team(ada)
    with pytest.raises(RefusalError, match="reason"):
        standings.set_team_standing(*place, platform.challenge, team.id, "hidden", " ")
    with pytest.raises(RefusalError, match="expected disqualified"):
        standings.set_team_standing(*place, platform.challenge, team.id, "merged", "no")
    with pytest.raises(NotThereError):
        standings.set_team_standing(*place, platform.make("other"), team.id, "hidden", "why")
    shell = ["challenge", "disqualify", "tiny", "--folder", str(platform.folder)]
    said = CliRunner().invoke(app, [*shell, "--team", "team ada", "--reason", "cheats", "--json"])
    assert said.exit_code == 0 and '"standing": "disqualified"' in said.stdout, said.output
    assert platform.team(ada).standing_reason == "cheats"
    assert "again" in CliRunner().invoke(app, [*shell, "--team", "team ada", "--undo"]).stdout
    for wrong, sentence in ((["--team", "team ado"], "Did you mean team ada"), (["--run", "99"], "no submission 99")):
        refused = CliRunner().invoke(app, [*shell, *wrong, "--reason", "x"])
        assert sentence in str(refused.exception)
