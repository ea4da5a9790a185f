"""Pages and uploads have lanes of their own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from starlette.testclient import TestClient

from fieldmark_challenge.people import accounts
from fieldmark_challenge.scoring.scoring_process import Outcome
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge.submissions import uploads
from fieldmark_challenge.web.lanes import AT_ONCE, UploadLane
from fieldmark_challenge_tests.platform import Platform, run_text

UPLOADS, PEOPLE, WAITING = 44, 11, 8  # more than there are threads for pages


def test_uploads_that_hang_leave_pages_alone_and_too_many_are_told_to_come_again(small_platform: Platform, monkeypatch):
    platform = small_platform
    held, go_on = threading.Semaphore(0), threading.Event()

    def hang(*_: object) -> Outcome:
        held.release()
        assert go_on.wait(120)
        return Outcome()

    monkeypatch.setattr(uploads.CHECKERS, "check", hang)
    platform.set_phase(daily_limit=100)
    senders = [platform.captain(f"person {number:02}") for number in range(PEOPLE)]
    tokens = [accounts.make_token(platform.database, sender, "shell", accounts.SCOPES) for sender in senders]
    app = create_app(platform.database, platform.storage)
    app.state.uploads = UploadLane(AT_ONCE, WAITING)
    with TestClient(app) as client, ThreadPoolExecutor(UPLOADS) as many:

        def upload(number: int):
            path, headers = (
                "/api/v1/challenges/tiny/submissions",
                {"authorization": f"Bearer {tokens[number % PEOPLE]}"},
            )
            return client.post(path, data={"external": "no"}, files={"run": ("run.csv", run_text())}, headers=headers)

        answers = [many.submit(upload, number) for number in range(UPLOADS)]
        try:
            for _ in range(AT_ONCE):
                assert held.acquire(timeout=60)
            turned_away = [answer for answer in answers if _ended(answer, UPLOADS - AT_ONCE - WAITING, answers)]
            page = many.submit(client.get, "/login").result(timeout=60)
        finally:
            go_on.set()
        codes = [answer.result(timeout=60).status_code for answer in answers]
    assert page.status_code == 200
    assert codes.count(201) == AT_ONCE + WAITING and codes.count(503) == UPLOADS - AT_ONCE - WAITING
    busy = next(answer.result() for answer in turned_away)
    assert int(busy.headers["retry-after"]) > 0 and "Try again" in busy.json()["error"]


def _ended(answer, expected: int, answers) -> bool:
    """Whether a request was answered, once as many were as can be while the others hang."""
    waiting = threading.Event()
    while sum(one.done() for one in answers) < expected:
        waiting.wait(0.01)
    return answer.done()
