"""Whole addresses lead to the server that people know: the one of the settings, else the one they used."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from fieldmark.cli.main import app as commands
from fieldmark.errors import MisuseError
from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.challenges import announcements
from fieldmark_challenge.people import accounts
from fieldmark_challenge.records.server_address import checked_public_url, note_address, noted_address
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests.platform import PASSWORD, Platform

PUBLIC = "https://challenge.example.org"
OTHER = "elsewhere.example.net"


@pytest.fixture
def captain(small_platform: Platform) -> str:
    """The session of somebody with a team; something is announced."""
    announcements.announce(small_platform.database, small_platform.admin, small_platform.challenge, "News", "Some.")
    return accounts.sign_in(small_platform.database, small_platform.captain("ada").name, PASSWORD)[1]


def texts(client: TestClient) -> Iterator[tuple[str, str]]:
    """All that shows or holds whole addresses of the platform, by what it is."""
    page = client.get("/c/tiny/team").text
    csrf = re.search(r'name="csrf" value="([0-9a-f]+)"', page)[1]
    yield "invitation", client.post("/c/tiny/team/invite", data={"csrf": csrf}).text
    yield "feed", client.get("/c/tiny/announcements.atom").text
    yield "API", client.get("/docs").text
    kit = client.get("/c/tiny/starter-kit.zip").content
    with zipfile.ZipFile(io.BytesIO(kit)) as archive:
        yield "starter kit", archive.read("starter-kit/README.md").decode()


@pytest.mark.parametrize(
    ("public_url", "asked", "expected"),
    [
        (PUBLIC, "http://10.0.0.5:8000", PUBLIC),
        (PUBLIC, f"http://{OTHER}", PUBLIC),
        (None, f"http://{OTHER}:8080", f"http://{OTHER}:8080"),
        (None, "http://localhost:9000", "http://localhost:9000"),
    ],
)
def test_links_lead_to_the_address_of_the_settings_or_else_to_the_one_that_was_asked(
    small_platform: Platform, captain, public_url, asked, expected
):
    app = create_app(small_platform.database, small_platform.storage, public_url=public_url)
    with TestClient(app, base_url=asked) as client:
        client.cookies.set(SESSION_COOKIE, captain)
        for what, text in texts(client):
            addresses = set(re.findall(r"https?://[\w.:-]+", text)) - {"http://www.w3.org"}
            assert addresses == {expected}, what


def test_redirects_name_no_host(small_platform: Platform):
    app = create_app(small_platform.database, small_platform.storage, public_url=PUBLIC)
    with TestClient(app, base_url="http://10.0.0.5:8000", follow_redirects=False) as client:
        for path, target in (
            ("/c/tiny/", "/c/tiny"),
            ("/docs/?a=1", "/docs?a=1"),
            ("/account", "/login?next=/account"),
        ):
            assert client.get(path).headers["location"] == target
        assert "location" not in client.get("//elsewhere.example.net/").headers


@pytest.mark.parametrize(
    "wrong",
    [
        "challenge.example.org",
        "ftp://challenge.example.org",
        "https://",
        "https://example.org/challenges",
        "https://example.org?x=1",
        "https://user:password@example.org",
        "https://example.org:port",
        "http://0.0.0.0:8000",
        "http://[::]:8000",
    ],
)
def test_an_address_that_links_cannot_begin_with_is_refused(wrong):
    with pytest.raises(MisuseError, match=r"--public-url .*expected an address such as"):
        checked_public_url(wrong)


def test_verbs_print_links_to_the_server_that_was_started_last(small_platform: Platform, tmp_path):
    where = ["--database", str(small_platform.database.url), "--files", str(tmp_path / "files")]
    small_platform.person("ada")

    def link(*more: str) -> str:
        return CliRunner().invoke(commands, ["challenge", "reset-link", "ada", *where, *more]).stdout

    assert noted_address(small_platform.database) == "http://127.0.0.1:8000"
    note_address(small_platform.database, "http://127.0.0.1:8000")
    note_address(small_platform.database, PUBLIC)
    assert link().startswith(f"{PUBLIC}/reset/")
    assert link("--url", "https://other.example.org/").startswith("https://other.example.org/reset/")
    invited = CliRunner().invoke(commands, ["challenge", "invite", "tiny", *where]).stdout
    assert re.search(rf"^{PUBLIC}/enter/\S+$", invited, re.MULTILINE)
