"""Organizers who run a challenge by a program of their own."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from fieldmark_challenge.people import accounts
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests.platform import Platform, run_text, truth_text


@pytest.fixture
def api(small_platform: Platform) -> Iterator[TestClient]:
    """Somebody who may make challenges, with a token that says so."""
    token = accounts.make_token(
        small_platform.database, small_platform.person("olga", "organizer"), "all", accounts.SCOPES
    )
    with TestClient(create_app(small_platform.database, small_platform.storage), base_url="http://x/api/v1/") as client:
        client.headers["authorization"] = f"Bearer {token}"
        client.platform = small_platform
        yield client


def test_a_whole_challenge_is_run_by_a_program(api: TestClient):
    wanted = {"slug": "mine", "benchmark": "folder", "public_share": "0.5"}
    made = api.post("challenges", data=wanted, files={"truth": ("truth.csv", truth_text())})
    assert made.status_code == 201 and made.json()["published_at"] is None and made.json()["units"] == 30
    refused = api.post("challenges/mine/publish")
    assert refused.status_code == 409 and "without_data=yes" in refused.json()["error"]
    assert api.get("challenges/mine/organize").json()["published_at"] is None
    assert api.post("challenges/mine/publish", data={"without_data": "yes"}).json()["done"] == "published"
    changed = api.post("challenges/mine/settings", data={"title": "Mine", "max_final": 1}).json()
    assert (changed["title"], changed["max_final"], changed["max_team_size"]) == ("Mine", 1, 5)
    assert "extra" in api.post("challenges/mine/settings", data={"titel": "x"}).json()["error"].lower()
    day = dt.datetime(2099, 1, 1, tzinfo=dt.UTC)
    late = {"name": "late", "starts_at": day.isoformat(), "ends_at": (day + dt.timedelta(days=1)).isoformat()}
    phase = api.post("challenges/mine/phases", data=late).json()
    moved = api.post(f"challenges/mine/phases/{phase['id']}", data={"daily_limit": 2}).json()
    assert moved == phase | {"daily_limit": 2}
    spare = api.post("challenges/mine/phases", data=late | {"name": "spare"}).json()
    assert api.delete(f"challenges/mine/phases/{spare['id']}").json()["done"] == "removed"
    bad = api.post("challenges/mine/baselines", data={"title": "bad"}, files={"run": ("r.csv", "id,predicted\nx,a\n")})
    assert bad.status_code == 422 and bad.json()["problems"][0]["line"] == 2
    good = api.post("challenges/mine/baselines", data={"title": "good"}, files={"run": ("r.csv", run_text())})
    assert good.status_code == 201
    assert [one["id"] for one in api.get("challenges/mine/queue").json()] == [good.json()["id"]]
    file = api.post("challenges/mine/data", data={"about": "more"}, files={"file": ("x.txt", b"x")}).json()
    assert api.delete(f"challenges/mine/data/{file['id']}").json()["done"] == "deleted"
    people = api.post("challenges/mine/organizers", data={"who": "admin"}).json()
    assert [one["name"] for one in people] == ["olga", "admin"]
    assert api.delete(f"challenges/mine/organizers/{people[1]['id']}").json()["done"] == "removed"
    seen = api.get("challenges/mine/organize").json()
    assert seen["submissions"]["queued"] == 1 and [one["name"] for one in seen["phases"]] == ["main", "late"]
    actions = [event["action"] for event in api.get("challenges/mine/audit?last=3").json()]
    assert actions == ["organizer.remove", "organizer.add", "data.delete"]


def test_a_truth_with_mistakes_names_no_folder_of_the_server(api: TestClient):
    wanted = {"slug": "mine", "benchmark": "folder"}
    told = api.post("challenges", data=wanted, files={"truth": ("truth.csv", "id,label\na,b\na,c\n")})
    assert told.status_code == 400 and told.json()["error"].startswith("truth.csv, line 3: found the id 'a' again")
    assert "truth" in api.post("challenges", data=wanted).json()["error"]
