"""Large files from the page that submits runs: in parts where scripts run, at once where they do not."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.people import accounts
from fieldmark_challenge.records.schema import Submission
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge.submissions import pages, partial_uploads
from fieldmark_challenge_tests.platform import PASSWORD, Platform, run_text
from fieldmark_challenge_tests.submissions.test_partial_uploads import BASE, served_here

PART, LARGE = 1 << 20, 5 << 19  # three parts
LONG_MS = 180_000


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file need not be large to be sent in parts."""
    monkeypatch.setattr(partial_uploads, "PART", PART)
    monkeypatch.setattr(pages, "IN_PARTS_FROM", LARGE)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A right run of three parts: blank lines after it count for nothing."""
    path = tmp_path / "run.csv"
    path.write_text(run_text().ljust(LARGE, "\n"))
    return path


@contextmanager
def at_the_page(browser: Any, platform: Platform, *, script: bool = True) -> Iterator[Any]:
    """Ada at the page, signed in; what the content-security policy blocks would show as an error."""
    platform.captain("ada")
    _, secret = accounts.sign_in(platform.database, "ada", PASSWORD)
    with served_here(platform) as port:
        url = f"http://127.0.0.1:{port}"
        context = browser.new_context(base_url=url, java_script_enabled=script)
        context.set_default_timeout(LONG_MS)
        context.add_cookies([{"name": SESSION_COOKIE, "value": secret, "url": url}])
        page, blocked = context.new_page(), []
        page.on("console", lambda message: blocked.append(message.text) if "Policy" in message.text else None)
        page.goto("/c/tiny/submit")
        yield page
        assert blocked == []
        context.close()


def hand_in(page: Any, run: Path, title: str = "") -> None:
    if title:
        page.get_by_label("Title").fill(title)
    page.get_by_label("Run file").set_input_files(run)
    page.get_by_label("None was used").check()
    page.get_by_role("button", name="Submit").click()


def shoot(page: Any, name: str) -> None:
    """A picture of the page, where somebody asked for pictures."""
    if folder := os.environ.get("FIELDMARK_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


class LostConnection:
    """Lets parts through but for those that begin where it is told, so many times each; notes where parts begin."""

    def __init__(self, page: Any, lost: dict[int, float]) -> None:
        self.lost, self.begun = lost, []
        page.route(f"**{BASE}/*", self.pass_on)

    def pass_on(self, route: Any) -> None:
        if route.request.method != "PATCH":
            route.continue_()
            return
        start = int(route.request.headers["upload-offset"])
        self.lost[start] = self.lost.get(start, 0) - 1
        if self.lost[start] >= 0:
            route.abort()
        else:
            self.begun.append(start)
            route.continue_()


@pytest.mark.parametrize("width", [390, 1280])
def test_the_declaration_is_filled_in_from_the_provenance_of_the_run(browser, small_platform, tmp_path, width):
    (tmp_path / "run.csv").write_text(run_text())
    (tmp_path / "run.json").write_text(json.dumps({"external_data": ["ImageNet, by the weights of a", "a key"]}))
    (tmp_path / "other.json").write_text("[]")
    with at_the_page(browser, small_platform) as page:
        page.set_viewport_size({"width": width, "height": 800})
        page.get_by_label("Fill in from run.json").set_input_files(tmp_path / "other.json")
        page.get_by_text("other.json says nothing about external data").wait_for()
        page.get_by_label("Fill in from run.json").set_input_files(tmp_path / "run.json")
        page.get_by_text("run.json records: ImageNet, by the weights of a; a key").wait_for()
        assert page.get_by_label("External data was used").is_checked()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        shoot(page, f"submit-filled-in-{width}")
        page.get_by_label("Title").fill("filled in")
        page.get_by_label("Run file").set_input_files(tmp_path / "run.csv")
        page.get_by_role("button", name="Submit").click()
        page.wait_for_url("**/submissions/*")
    with small_platform.database.read() as session:
        row = session.query(Submission).one()
        assert row.external_data and row.external_note == row.external_found == "ImageNet, by the weights of a; a key"


def test_an_upload_goes_on_after_a_lost_connection_and_after_a_reload(browser, small_platform: Platform, run: Path):
    with at_the_page(browser, small_platform) as page:
        line = LostConnection(page, {PART: 1, 2 * PART: float("inf")})
        hand_in(page, run, "three parts")
        page.get_by_text("The connection is lost after 2 of 3 MiB").wait_for()
        shoot(page, "upload-lost")
        page.reload()
        page.get_by_text("2 of 3 MiB of run.csv are uploaded").wait_for()
        page.wait_for_function("document.getElementById('title').value === 'three parts'")
        shoot(page, "upload-unfinished")
        line.lost.clear()
        hand_in(page, run)
        page.wait_for_url("**/submissions/*")
        assert page.get_by_role("heading", name="three parts").count() == 1
        assert line.begun == [0, PART, 2 * PART]  # nothing was sent twice
    with small_platform.database.read() as session:
        assert session.query(Submission).one().size == LARGE


DIGESTS = """async (sizes) => {
  const { Sha256 } = await import("/static/sha256.js");
  const bytes = (size) => Uint8Array.from({ length: size }, (_, place) => (place * 7) % 256);
  const [first, rest] = [(size) => bytes(size).slice(0, size / 3), (size) => bytes(size).slice(size / 3)];
  return sizes.map((size) => new Sha256().update(first(size)).update(rest(size)).hex());
}"""


def test_a_refused_file_is_told_line_by_line_and_one_can_stop(browser, small_platform: Platform, run: Path):
    good = run.read_text()
    run.write_text(good.replace("i7,", "zz,", 1))
    with at_the_page(browser, small_platform) as page:
        sizes = [1, 55, 56, 63, 64, 65, 119, 120, 128, 1000]  # around the ends of blocks
        expected = [hashlib.sha256(bytes(place * 7 % 256 for place in range(size))).hexdigest() for size in sizes]
        assert page.evaluate(DIGESTS, sizes) == expected
        hand_in(page, run, "with a mistake")
        alert = page.get_by_role("alert")
        alert.wait_for()
        assert "nothing was spent" in alert.inner_text() and "line 9" in alert.inner_text()
        shoot(page, "upload-refused")
        run.write_text(good)
        LostConnection(page, {PART: float("inf")})
        hand_in(page, run)
        page.get_by_text("The connection is lost after 1 of 3 MiB").wait_for()
        page.get_by_role("button", name="Stop").click()
        page.get_by_role("button", name="Throw away").click()
        page.get_by_text("are uploaded").wait_for(state="hidden")
        assert page.get_by_role("button", name="Submit").is_enabled()
    assert not [path for path in small_platform.storage.everything() if path.startswith("parts/")]


def test_without_script_the_file_is_sent_at_once(browser, small_platform: Platform, run: Path):
    with at_the_page(browser, small_platform, script=False) as page:
        hand_in(page, run, "at once")
        page.wait_for_url("**/submissions/*")
        assert page.get_by_role("heading", name="at once").count() == 1


def test_a_cookie_alone_sends_nothing(small_platform: Platform):
    """Another site can make a browser send its cookie, and cannot know the token of a page."""
    app = create_app(small_platform.database, small_platform.storage)
    small_platform.captain("ada")
    _, secret = accounts.sign_in(small_platform.database, "ada", PASSWORD)
    client, proof = TestClient(app, cookies={SESSION_COOKIE: secret}), app.state.guard.token_for(secret)
    assert client.get(BASE).status_code == 401
    assert client.get(BASE, headers={"x-form-token": "guessed"}).status_code == 403
    elsewhere = {"x-form-token": proof, "origin": "https://elsewhere.example"}
    assert client.get(BASE, headers=elsewhere).status_code == 403
    assert client.get(BASE, headers={"x-form-token": proof}).json() == []
    assert client.get("/api/v1/me", headers={"x-form-token": proof}).status_code == 401  # for uploads only
    bare = TestClient(app, headers={"x-form-token": proof})
    assert bare.get(BASE).status_code == 401
    accounts.sign_out(small_platform.database, secret)
    assert client.get(BASE, headers={"x-form-token": proof}).status_code == 401
