"""Announcements: on the page, in the API and as a feed, for those who may see the challenge."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from starlette.testclient import TestClient

from fieldmark.web.refusals import NotThereError, RefusalError
from fieldmark_challenge.challenges import announcements
from fieldmark_challenge.people import accounts
from fieldmark_challenge.records.schema import Challenge
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests.platform import Platform

ATOM = "{http://www.w3.org/2005/Atom}"


def test_an_announcement_is_read_wherever_the_challenge_is(small_platform: Platform):
    platform = small_platform
    place = (platform.database, platform.admin, platform.challenge)
    with pytest.raises(RefusalError, match="needs a title"):
        announcements.announce(*place, " ", "text")
    first = announcements.announce(*place, "A & B <b>", "The *truth* was corrected.\n\n<script>alert(1)</script>")
    announcements.announce(*place, "Second", "")
    client = TestClient(create_app(platform.database, platform.storage))
    page = client.get("/c/tiny").text
    assert "A &amp; B &lt;b&gt;" in page and "<em>truth</em>" in page and "<script>alert" not in page
    feed = ET.fromstring(client.get("/c/tiny/announcements.atom").content)
    assert [entry.find(f"{ATOM}title").text for entry in feed.iter(f"{ATOM}entry")] == ["Second", "A & B <b>"]
    token = accounts.make_token(platform.database, platform.person("ada"), "shell", ["read"])
    headers = {"authorization": f"Bearer {token}"}
    told = client.get("/api/v1/challenges/tiny/announcements", headers=headers).json()
    assert [one["title"] for one in told] == ["Second", "A & B <b>"]
    with pytest.raises(NotThereError):
        announcements.remove(platform.database, platform.admin, platform.make("other"), first.id)
    announcements.remove(*place, first.id)
    assert "A &amp; B" not in client.get("/c/tiny").text
    with platform.database.write() as session:
        session.get_one(Challenge, platform.challenge.id).access = "private"
    assert client.get("/c/tiny/announcements.atom").status_code == 404
