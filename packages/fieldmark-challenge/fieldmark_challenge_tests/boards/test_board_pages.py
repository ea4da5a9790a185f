"""Boards beyond a hundred rows, and browsers that have them already."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from fieldmark.web.refusals import NotThereError
from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.boards.board_pages import ROWS, BoardPage
from fieldmark_challenge.boards.leaderboard import make_board
from fieldmark_challenge.people import accounts
from fieldmark_challenge.records.schema import PartScore, Submission, Team, utc_now
from fieldmark_challenge.scoring import queue
from fieldmark_challenge.scoring.stored_scores import to_row
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge.site.server import warm_boards
from fieldmark_challenge_tests.hosting import cards
from fieldmark_challenge_tests.platform import PASSWORD, Platform


def fill(platform: Platform, count: int) -> None:
    """So many teams with a scored run each."""
    with platform.database.write() as session:
        for number in range(count):
            team = Team(challenge_id=platform.challenge.id, name=f"t{number:03}", name_key=f"t{number:03}")
            session.add(team)
            session.flush()
            run = Submission(
                challenge_id=platform.challenge.id,
                team_id=team.id,
                user_id=platform.admin.id,
                filename="run.csv",
                size=1,
                sha256="",
                accepted_at=utc_now(),
                quota_day="",
                state="scored",
            )
            session.add(run)
            session.flush()
            session.add_all(
                to_row(run.id, part, 1, card, "macro_f1_all") for part, card in cards(1 - number / count).items()
            )


def test_a_board_of_many_comes_in_pages_of_a_hundred(small_platform: Platform):
    platform = small_platform
    fill(platform, ROWS + 20)
    token = accounts.make_token(platform.database, platform.person("ada"), "shell", accounts.SCOPES)
    with TestClient(create_app(platform.database, platform.storage)) as client:
        first, second = (client.get(f"/c/tiny/board?page={page}").text for page in (1, 2))
        assert first.count("<tr class=") == ROWS and second.count("<tr class=") == 20
        first, second = (page.split("</table>")[0] for page in (first, second))
        assert "t000" in first and "t119" in second and "t119" not in first
        assert client.get("/c/tiny/board?page=3").status_code == 404
        headers = {"authorization": f"Bearer {token}"}
        whole = client.get("/api/v1/challenges/tiny/board", headers=headers).json()
        page = client.get("/api/v1/challenges/tiny/board?page=2", headers=headers).json()
    assert len(whole["entries"]) == whole["total"] == page["total"] == ROWS + 20
    assert page["entries"] == whole["entries"][ROWS:]


def test_a_browser_that_has_the_board_is_told_so_until_it_changes(small_platform: Platform):
    platform = small_platform
    fill(platform, 3)
    ada = platform.captain("ada")
    secret = accounts.sign_in(platform.database, "ada", PASSWORD)[1]
    token = accounts.make_token(platform.database, ada, "shell", accounts.SCOPES)
    with TestClient(create_app(platform.database, platform.storage), cookies={SESSION_COOKIE: secret}) as client:
        for path, headers in (
            ("/c/tiny/board", {}),
            ("/api/v1/challenges/tiny/board", {"authorization": f"Bearer {token}"}),
        ):
            page = client.get(path, headers=headers)
            known = {**headers, "if-none-match": page.headers["etag"]}
            again = client.get(path, headers=known)
            assert (again.status_code, again.content) == (304, b"") and page.headers["cache-control"].startswith("priv")
            other = client.get(f"{path}?metric=top_1", headers=known)
            assert other.status_code == 200
            run = platform.hand_in(ada)
            assert client.get(path, headers=known).status_code == 304  # it waits, and is on no board
            queue.finish(platform.database, queue.claim(platform.database, "w"), cards(0.7))
            fresh = client.get(path, headers=known)
            assert fresh.status_code == 200 and "team ada" in fresh.text
            with platform.database.write() as session:
                session.query(PartScore).filter_by(submission_id=run.id).delete()
                session.get_one(Submission, run.id).state = "refused"
        anonymous = TestClient(client.app).get("/c/tiny/board", headers={"if-none-match": page.headers["etag"]})
    assert anonymous.status_code == 200


def test_pages_that_are_not_there_are_nothing():
    with pytest.raises(NotThereError):
        BoardPage.cut(make_board("folder", "public", []), 2, None)
    assert BoardPage.cut(make_board("folder", "public", []), 1, None).near == [1]


def test_boards_are_there_before_anybody_asks(small_platform: Platform, monkeypatch: pytest.MonkeyPatch):
    platform = small_platform
    fill(platform, 5)
    platform.make("draft", published=False)
    assert warm_boards(platform.database) == 1
    monkeypatch.setattr("fieldmark_challenge.boards.visibility.make_board", None)  # nobody computes it again
    client = TestClient(create_app(platform.database, platform.storage))
    assert "t003" in client.get("/c/tiny/board").text
