"""The page of a run that waits follows it, without loading anew where the browser has JavaScript."""

from __future__ import annotations

from typing import Any

from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.people import accounts
from fieldmark_challenge.scoring.worker import Worker
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests.listening import listening
from fieldmark_challenge_tests.platform import PASSWORD, Platform


def test_a_waiting_run_shows_its_scores_when_they_are_there(small_platform: Platform, browser: Any):
    ada = small_platform.captain("ada")
    run = small_platform.hand_in(ada)
    secret = accounts.sign_in(small_platform.database, ada.name, PASSWORD)[1]
    with listening(create_app(small_platform.database, small_platform.storage), patient=False) as port:
        url = f"http://127.0.0.1:{port}"
        context = browser.new_context(base_url=url)
        context.set_default_timeout(600_000)
        context.add_cookies([{"name": SESSION_COOKIE, "value": secret, "url": url}])
        page = context.new_page()
        page.goto(f"/c/tiny/submissions/{run.id}")
        assert "Next in the queue" in page.get_by_role("status").inner_text()
        page.evaluate("() => { window.untouched = true; }")
        assert Worker(small_platform.database, small_platform.storage, walled=False).run_one()
        page.get_by_role("heading", name="Public scores").wait_for()
        assert page.evaluate("() => window.untouched") is True
        context.close()
