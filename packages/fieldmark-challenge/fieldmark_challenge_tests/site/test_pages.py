"""All pages, for everybody: sound, labeled, all but one without script; and no private number before its time."""

from __future__ import annotations

import datetime as dt
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.orm import undefer
from starlette.testclient import TestClient

from fieldmark.errors import InputError
from fieldmark.scoring import receipts
from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.challenges import phases
from fieldmark_challenge.people import accounts
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, PartScore
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests import soundscape_runs

SKILLS = {"Warblers": [0.5, 0.9], "Herons": [0.85, 0.4], "Swift": [0.2], "baseline: BirdNET": [0.5]}
VIEWERS = ("anonymous", "Warblers", "Swift", "admin")
START = dt.datetime(2026, 1, 10, 6, tzinfo=dt.UTC)
MOST_PAGES = 400


@dataclass
class ServerWithTwoChallenges:
    """A server with two challenges that have a past, one of them with a Ladder."""

    database: Database
    storage: Storage
    client: TestClient
    cookies: dict[str, str]
    tokens: dict[str, str]

    def get(self, viewer: str, path: str):
        self.client.cookies.clear()
        if path.startswith("/api/"):
            token = self.tokens.get(viewer)
            return self.client.get(path, headers={"authorization": f"Bearer {token}"} if token else {})
        if viewer in self.cookies:
            self.client.cookies.set(SESSION_COOKIE, self.cookies[viewer])
        return self.client.get(path)

    def walk(self, viewer: str) -> dict[str, str]:
        """Everything that links lead to, every pair of entries beside each other, and the API."""
        found: dict[str, str] = {}
        ahead = ["/", "/c/dawn-chorus/submissions/1", "/c/dawn-chorus/submissions/1/receipt.json"]
        ahead += ["/c/dawn-chorus/board?part=private", "/c/dawn-chorus/entries/2?part=private"]
        for slug in ("dawn-chorus", "dusk"):
            api = f"/api/v1/challenges/{slug}"
            ahead += [api, f"{api}/board", f"{api}/board?part=private", f"{api}/submissions"]
            ahead += [f"{api}/{kind}/{number}" for number in range(1, 13) for kind in ("entries", "submissions")]
            ahead += [f"{api}/compare?first=1&second={number}" for number in range(2, 7)]
        while ahead and len(found) < MOST_PAGES:
            path = ahead.pop(0)
            if path in found or path.startswith("/static"):
                continue
            answer = self.get(viewer, path)
            if "attachment" in answer.headers.get("content-disposition", "") and "receipt" not in path:
                continue
            found[path] = answer.text
            if answer.headers["content-type"].startswith("text/html"):
                ahead += [link.replace("&amp;", "&") for link in re.findall(r'href="(/[^"#]*|\?[^"#]*)', answer.text)]
                ahead = [f"{path.partition('?')[0]}{one}" if one.startswith("?") else one for one in ahead]
                entries = re.findall(r"/entries/(\d+)", answer.text)
                base = "/".join(path.split("/")[:3])
                ahead += [f"{base}/compare?first={a}&second={b}" for a, b in pairwise(entries)]
        assert not ahead, "there are more pages than are looked at"
        return found


@pytest.fixture(scope="module")
def server(empty_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerWithTwoChallenges]:
    folder = tmp_path_factory.mktemp("server")
    shutil.copyfile(empty_sqlite, folder / "platform.sqlite")
    database = Database(f"sqlite:///{folder / 'platform.sqlite'}")
    storage = Storage(folder / "files")
    admin = accounts.register(database, "admin", "admin@example.org", soundscape_runs.PASSWORD, role="admin")
    for slug, ladder in (("dawn-chorus", False), ("dusk", True)):
        people = SKILLS if not ladder else {f"{name} again": levels for name, levels in SKILLS.items()}
        settings = {"per_site": 5, "start": START, "slug": slug, "ladder": ladder}
        soundscape_runs.host(database, storage, admin, folder, people, **settings)
    cookies, tokens = {}, {}
    for name in VIEWERS[1:]:
        user, cookies[name] = accounts.sign_in(database, name, soundscape_runs.PASSWORD)
        tokens[name] = accounts.make_token(database, user, "all", accounts.SCOPES)
    client = TestClient(create_app(database, storage), raise_server_exceptions=False)
    yield ServerWithTwoChallenges(database, storage, client, cookies, tokens)
    database.close()


class Checker(HTMLParser):
    """Notes what a page must not have, and what it must."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.ids: list[str] = []
        self.labeled: set[str] = set()
        self.fields: list[str] = []
        self.headings = self.scripts = 0
        self.form: tuple[str, bool] | None = None

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        ours = tag == "script" and given.get("src") == "/static/upload.js"
        self.scripts += ours
        if (tag in ("script", "style", "iframe") and not ours) or "style" in given:
            self.faults.append(f"<{tag}> with script or style")
        self.faults += [f"{tag} {name}" for name in given if name.startswith("on")]
        if given.get("id"):
            self.ids.append(str(given["id"]))
        if tag == "h1":
            self.headings += 1
        if tag == "label":
            self.labeled.add(str(given.get("for")))
        if tag in ("input", "select", "textarea") and given.get("type") != "hidden":
            self.fields.append(str(given.get("id")))
        if tag == "form":
            self.form = (str(given.get("action")), given.get("method") != "post")
        if self.form and given.get("name") == "csrf":
            self.form = (self.form[0], True)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form" and self.form and not self.form[1]:
            self.faults.append(f"the form to {self.form[0]} can be forged")

    def found(self) -> list[str]:
        twice = {one for one in self.ids if self.ids.count(one) > 1}
        unlabeled = [one for one in self.fields if one not in self.labeled]
        one_heading = [] if self.headings == 1 else [f"{self.headings} main headings"]
        return [
            *self.faults,
            *one_heading,
            *(f"id {one} twice" for one in twice),
            *(f"no label: {x}" for x in unlabeled),
        ]


@pytest.fixture(scope="module")
def walked(server) -> dict[str, dict[str, str]]:
    """What everybody sees before anything is revealed."""
    return {viewer: without_tokens(server.walk(viewer)) for viewer in VIEWERS}


@pytest.mark.parametrize("viewer", VIEWERS)
def test_every_page_is_sound_labeled_and_without_script_but_for_one(server, walked, viewer):
    pages = walked[viewer]
    shown = {path: text for path, text in pages.items() if text.startswith("<!doctype html>")}
    assert len(shown) > 10
    for path, text in shown.items():
        checker = Checker()
        checker.feed(text)
        assert checker.found() == [], path
        assert checker.scripts <= path.endswith("/submit"), path  # the one page that has a script
        assert "<title>" in text and 'lang="en"' in text and 'href="#content"' in text
        assert "Something went wrong" not in text, path
    policy = server.get(viewer, "/").headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy


def exchange_private_scores(database: Database) -> None:
    """Gives every submission the private scorecard of another one."""
    with database.write() as session:
        query = select(PartScore).where(PartScore.part == "private").options(undefer(PartScore.unit_values))
        rows = list(session.scalars(query.order_by(PartScore.submission_id)))
        held = [(row.card, row.unit_values, row.value) for row in rows]
        for row, (card, values, value) in zip(rows, held[1:] + held[:1], strict=True):
            row.card, row.unit_values, row.value = card, values, value
            row.scored_at = row.scored_at + dt.timedelta(seconds=1)


def without_tokens(pages: dict[str, str]) -> dict[str, str]:
    return {path: re.sub(r'name="csrf" value="[^"]*"', 'name="csrf"', text) for path, text in pages.items()}


def test_nothing_that_participants_see_depends_on_private_scores_before_they_are_revealed(server, walked):
    """Not a number, nor a rank, nor an order: with other private scores every page and answer stays the same."""
    before = walked
    exchange_private_scores(server.database)
    for viewer in VIEWERS[:-1]:
        after = without_tokens(server.walk(viewer))
        assert len(before[viewer]) > 20 and set(after) == set(before[viewer])
        for path, text in before[viewer].items():
            assert after[path] == text, path
    private = "/c/dawn-chorus/board?part=private"
    assert server.get("admin", private).text != before["admin"][private]  # what organizers see does


@pytest.mark.parametrize("viewer", VIEWERS[:-1])
def test_the_private_part_is_not_there_before_it_is_revealed(server, viewer):
    for path in ("board?part=private", "entries/2?part=private", "compare?first=2&second=3&part=private"):
        assert server.get(viewer, f"/c/dawn-chorus/{path}").status_code == 404
    receipt = server.get(viewer, "/c/dawn-chorus/submissions/1/receipt.json?part=private")
    assert receipt.status_code == 404


def test_a_ladder_shows_one_metric_and_one_run_of_a_team(server):
    board = server.get("anonymous", "/c/dusk/board?metric=rmap").text
    assert "rmAP" not in board and "The Ladder shows only clear improvements" in board
    assert server.get("anonymous", "/c/dusk/compare?first=8&second=10&metric=rmap").text.count("rmAP") == 0
    entries = re.findall(r"/entries/(\d+)", board)
    with server.database.read() as session:
        runs = session.scalars(select(PartScore.submission_id).where(PartScore.part == "public")).all()
    hidden = [run for run in runs if run > 6 and str(run) not in entries]
    assert hidden and all(server.get("anonymous", f"/c/dusk/entries/{run}").status_code == 404 for run in hidden)


def test_runs_that_are_not_on_the_board_belong_to_their_team(server):
    assert server.get("Swift", "/c/dawn-chorus/entries/1").status_code == 404
    assert server.get("Warblers", "/c/dawn-chorus/entries/1").status_code == 200
    assert server.get("admin", "/c/dawn-chorus/entries/1").status_code == 200
    assert server.get("Swift", "/c/dawn-chorus/submissions/1/receipt.json").status_code == 404
    assert server.get("Warblers", "/c/dawn-chorus/submissions/1/receipt.json").json()["part"] == "public"


def test_comparing_an_entry_that_left_the_board_asks_to_choose_again(server):
    for absent in (1, 987_654):
        answer = server.get("Swift", f"/c/dawn-chorus/compare?first={absent}&second=2")
        assert answer.status_code == 404 and "is not on the board" in answer.text and "verdict" not in answer.text


def test_the_api_gives_the_numbers_of_the_pages(server):
    base = "/api/v1/challenges/dawn-chorus"
    best, second = server.get("Swift", f"{base}/board").json()["entries"][:2]
    entry = server.get("Swift", f"{base}/entries/{best['id']}").json()
    assert entry["metrics"]["cmap_expected"]["value"] == best["value"] and "site" in entry["groups"]
    pair = server.get("Swift", f"{base}/compare?first={best['id']}&second={second['id']}").json()
    assert pair["difference"]["value"] == pytest.approx(best["value"] - second["value"])
    assert f"{100 * best['value']:.1f}" in server.get("Swift", "/c/dawn-chorus/board").text
    described = server.get("Swift", "/api/openapi.json").json()["components"]["schemas"]
    assert "rank_low" in described["RowOut"]["properties"] and "separable" in described["DuelOut"]["properties"]


def test_a_receipt_from_the_server_verifies_offline(server, tmp_path):
    with server.database.read() as session:
        challenge = session.scalars(select(Challenge).where(Challenge.slug == "dawn-chorus")).one()
    folder = server.storage.fetch_folder(challenge.truth_path, tmp_path / "receipt")
    soundscape_runs.write_run(folder / "run.csv", folder, skill=SKILLS["Warblers"][0], seed=0)
    served = server.get("Warblers", "/c/dawn-chorus/submissions/1/receipt.json")
    (folder / "receipt.json").write_bytes(served.content)
    key = server.get("anonymous", "/receipt-key.txt").text.strip()
    signer = key if receipts.can_sign() else None
    assert not re.search(r'"sha256"|"salt"', json.dumps(served.json()["truth"]) + json.dumps(list(served.json())))
    with pytest.raises(InputError, match="Fetch the receipt again now that the truth is out"):
        receipts.verify(folder / "receipt.json", signer=signer)
    with server.database.write() as session:
        session.get_one(Challenge, challenge.id).revealed_at = START + dt.timedelta(days=90)
    try:
        later = server.get("Warblers", "/c/dawn-chorus/submissions/1/receipt.json")
    finally:
        with server.database.write() as session:
            session.get_one(Challenge, challenge.id).revealed_at = None
    found = receipts.verify(folder / "receipt.json", signer=signer, salt=later.json()["salt"])
    assert found.card.split == "public" and found.signed_by == signer
    (folder / "later.json").write_bytes(later.content)
    assert receipts.verify(folder / "later.json", signer=signer).signed_by == signer
    with pytest.raises(InputError, match="another file, or another salt"):
        receipts.verify(folder / "receipt.json", salt="0" * 64)


def test_a_frozen_board_stands_still_for_participants(server):
    with server.database.read() as session:
        challenge = session.scalars(select(Challenge).where(Challenge.slug == "dawn-chorus")).one()
    with server.database.write() as session:
        session.get_one(Challenge, challenge.id).frozen_at = START + dt.timedelta(days=8)
    try:
        frozen = server.get("Swift", "/api/v1/challenges/dawn-chorus/board").json()["entries"]
        moving = server.get("admin", "/api/v1/challenges/dawn-chorus/board").json()["entries"]
    finally:
        with server.database.write() as session:
            session.get_one(Challenge, challenge.id).frozen_at = None
    assert {one["id"] for one in frozen} == {"1", "3", "5", "6"}
    assert {one["id"] for one in moving} == {"2", "3", "5", "6"}


def test_what_was_asked_for_and_does_not_exist_is_not_there(server):
    for path in ("board?metric=nonsense", "board?part=secret", "entries/999", "compare?first=2&second=999"):
        assert server.get("anonymous", f"/c/dawn-chorus/{path}").status_code == 404
    assert server.get("admin", "/c/dawn-chorus/organize/plan?entries=1").status_code == 400
    assert "at least two entries" in server.get("admin", "/c/dawn-chorus/organize/plan?entries=1").text


def test_once_revealed_everybody_sees_the_private_board_and_all_runs(server):
    """The last test of this file: there is no way back."""
    with server.database.read() as session:
        challenge = session.scalars(select(Challenge).where(Challenge.slug == "dawn-chorus")).one()
    phases.reveal(server.database, None, challenge)
    board = server.get("anonymous", "/c/dawn-chorus/board").text
    assert "Private leaderboard" in board and "Public" in board
    assert server.get("anonymous", "/c/dawn-chorus/entries/1?part=private").status_code == 200
    listed = server.get("Swift", "/api/v1/challenges/dawn-chorus/board").json()
    assert listed["part"] == "private" and len(listed["entries"]) == 4
