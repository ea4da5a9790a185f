"""No page is wider than a phone, whatever people write into it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from fieldmark.web.identify_answers import PageAnswers
from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.challenges import announcements
from fieldmark_challenge.people import accounts, teams
from fieldmark_challenge.records.schema import Challenge
from fieldmark_challenge.scoring.worker import Worker
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests.listening import listening
from fieldmark_challenge_tests.platform import PASSWORD, Platform, run_text

PHONE = {"width": 360, "height": 740}
LONG = "Unbrokenwordthatislongerthanaphoneiswideandgoesonandonandon"
WIDE_TEXT = "| " + " | ".join("abcdefgh") + " |\n" + "|---" * 8 + "|\n" + "| a long cell " * 8 + f"|\n\n{LONG}{LONG}\n"
# Links that are no pages, and variants of one page.
NO_PAGE = re.compile(r"/logout|\.(csv|json|zip|atom|txt)$|/receipt|/export|/file$|/data/\d+$|/sign-on/")
WIDTHS = "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
UNFOLD = "() => document.querySelectorAll('details').forEach((one) => { one.open = true; })"


@pytest.fixture
def crowded(small_platform: Platform) -> Platform:
    """A platform on which somebody wrote long words wherever words may be written."""
    ada = small_platform.captain("ada")
    teams.accept_rules(small_platform.database, small_platform.person(LONG[:30]), small_platform.challenge)
    small_platform.captain("bea")
    small_platform.hand_in(ada, run_text(right=50), title=LONG, method=LONG, external_data=True, external_note=LONG)
    small_platform.hand_in(small_platform.people["bea"], run_text(right=30), title="wide")
    announcements.announce(small_platform.database, small_platform.admin, small_platform.challenge, LONG, WIDE_TEXT)
    with small_platform.database.write() as session:
        challenge = session.get_one(Challenge, small_platform.challenge.id)
        challenge.title, challenge.summary, challenge.rules = LONG, f"{LONG} {LONG}", WIDE_TEXT
        challenge.description = WIDE_TEXT
    worker = Worker(small_platform.database, small_platform.storage, walled=False)
    while worker.run_one():
        pass
    return small_platform


def pages_of(page: Any, *starts: str) -> Iterator[str]:
    """The pages that can be reached by links, one of each kind, opened one after another."""
    todo, seen = list(starts), set()
    while todo:
        path = todo.pop(0)
        kind = re.sub(r"\d+", "N", path.partition("?")[0])
        if kind in seen or NO_PAGE.search(path.partition("?")[0]):
            continue
        seen.add(kind)
        if "text/html" not in page.goto(path).headers["content-type"]:
            continue
        yield path
        hrefs = page.evaluate(
            "() => [...document.querySelectorAll('a[href^=\"/\"]')].map((a) => a.getAttribute('href'))"
        )
        todo += [href.partition("#")[0] for href in hrefs]


def test_no_page_scrolls_sideways_on_a_phone(crowded: Platform, browser: Any, color_model):
    app = create_app(crowded.database, crowded.storage, namer=PageAnswers(str(color_model)))
    wide, looked_at = [], {}
    with listening(app, patient=False) as port:
        for who in (None, "ada", "admin"):
            context = browser.new_context(base_url=f"http://127.0.0.1:{port}", viewport=PHONE)
            if who is not None:
                secret = accounts.sign_in(crowded.database, who, PASSWORD)[1]
                context.add_cookies([{"name": SESSION_COOKIE, "value": secret, "url": f"http://127.0.0.1:{port}"}])
            page = context.new_page()
            for path in pages_of(page, "/", "/c/tiny", "/enter", "/nowhere", "/c/tiny/entries/1"):
                page.evaluate(UNFOLD)
                needed, there = page.evaluate(WIDTHS)
                wide += [(who, path, needed)] if needed > there else []
                looked_at[who] = looked_at.get(who, 0) + 1
            context.close()
    assert wide == []
    assert looked_at[None] >= 10 and looked_at["ada"] >= 14 and looked_at["admin"] >= 18, looked_at
