"""What a newcomer to a challenge meets: its text, its starter kit, the board as a file, and the API as a page."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import zipfile
from html.parser import HTMLParser

import pytest
from PIL import Image
from starlette.testclient import TestClient

import fieldmark
from fieldmark.web.security import HEADERS, SESSION_COOKIE
from fieldmark_challenge.challenges.offered_files import add_data_file
from fieldmark_challenge.people import accounts, teams
from fieldmark_challenge.records.schema import Challenge
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge.web.markdown_text import prose
from fieldmark_challenge_tests.platform import PASSWORD, Platform, truth_text


@pytest.fixture
def visitor(small_platform: Platform) -> TestClient:
    return TestClient(create_app(small_platform.database, small_platform.storage))


@pytest.fixture
def participant(small_platform: Platform, visitor: TestClient) -> TestClient:
    user = small_platform.person("ada")
    teams.accept_rules(small_platform.database, user, small_platform.challenge)
    visitor.cookies.set(SESSION_COOKIE, accounts.sign_in(small_platform.database, "ada", PASSWORD)[1])
    return visitor


def place(platform: Platform) -> str:
    return f"/c/{platform.challenge.slug}"


def test_the_starter_kit_writes_a_run_that_is_scored(small_platform, participant, tmp_path):
    answer = participant.get(f"{place(small_platform)}/starter-kit.zip")
    assert answer.status_code == 200
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        archive.extractall(tmp_path)
        assert {one.date_time for one in archive.infolist()} == {(2000, 1, 1, 0, 0, 0)}  # times tell nothing
    kit = tmp_path / "starter-kit"
    subprocess.run([sys.executable, "baseline.py"], cwd=kit, check=True)
    assert len((kit / "baseline.py").read_text().splitlines()) <= 11
    (kit / "my-truth.csv").write_text(truth_text())
    card = fieldmark.score("folder", kit / "run.csv", truth=kit / "my-truth.csv", classes=kit / "labels.csv")
    assert card.items == 60
    fieldmark.score("folder", kit / "sample_run.csv", truth=kit / "my-truth.csv", classes=kit / "labels.csv")
    notebook = json.loads((kit / "notebook.ipynb").read_text())
    assert [cell["cell_type"] for cell in notebook["cells"]] == ["markdown", "code", "code", "code"]
    assert "fieldmark score folder@2 run.csv" in (kit / "README.md").read_text()


def test_the_starter_kit_is_for_those_who_accepted_the_rules(small_platform, visitor):
    path = f"{place(small_platform)}/starter-kit.zip"
    assert visitor.get(path, follow_redirects=False).status_code == 303
    small_platform.person("eve")
    visitor.cookies.set(SESSION_COOKIE, accounts.sign_in(small_platform.database, "eve", PASSWORD)[1])
    assert visitor.get(path).status_code in (403, 404, 409)


def test_the_board_is_a_file_for_everybody_who_may_see_it(small_platform, visitor):
    base = place(small_platform)
    assert visitor.get(f"{base}/board").status_code == 200
    told = visitor.get(f"{base}/board.json").json()
    rows = list(csv.DictReader(io.StringIO(visitor.get(f"{base}/board.csv").text)))
    assert told["part"] == "public" and [row["team"] for row in rows] == [one["team"] for one in told["entries"]]
    hidden = [visitor.get(f"{base}/board{ending}?part=private").status_code for ending in ("", ".csv", ".json")]
    assert len(set(hidden)) == 1
    assert visitor.get(f"{base}/board.json?metric=nothing").status_code == 404


def test_the_api_is_described_on_a_page_of_our_own(visitor):
    page = visitor.get("/docs")
    assert page.status_code == 200 and page.headers["content-security-policy"] == HEADERS["content-security-policy"]
    described = visitor.get("/api/openapi.json").json()
    for path, verbs in described["paths"].items():
        assert path in page.text
        for verb in verbs:
            assert f"<strong>{verb.upper()}</strong> <code>{path}</code>" in page.text
    assert all(f'id="object-{name}"' in page.text for name in described["components"]["schemas"])
    assert "<script" not in page.text and 'href="/docs"' in page.text


def test_a_description_may_have_links_and_pictures_of_the_challenge(small_platform, visitor, tmp_path):
    Image.new("RGB", (4, 4), "red").save(tmp_path / "map.png")
    platform = small_platform
    for name in ("map.png", "fake.png"):
        if name == "fake.png":
            (tmp_path / name).write_text("<script>alert(1)</script>")
        add_data_file(
            platform.database, platform.storage, platform.admin, platform.challenge, tmp_path / name, name, ""
        )
    pictures = "![A map](map.png)\n\n![spy](https://evil.example/x.png) ![no](labels.csv) ![no](fake.png)"
    with platform.database.write() as session:
        mine = session.get_one(Challenge, platform.challenge.id)
        mine.description = f"See [the paper](https://example.org/p).\n\n{pictures}"
    page = visitor.get(place(small_platform)).text
    assert '<a href="https://example.org/p" rel="noopener noreferrer nofollow">the paper</a>' in page
    assert 'src="data:image/png;base64,' in page and 'alt="A map"' in page
    assert 'src="https://evil.example' not in page and 'href="https://evil.example/x.png"' in page
    assert "data:text" not in page and page.count("<img") == 1


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "![x](javascript:alert(1))",
        "<img src=x onerror=alert(1)>",
        '[x](https://a.org "onmouseover=alert(1)")',
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "<a href='https://a.org' style='position:fixed'>x</a>",
    ],
)
def test_nothing_that_runs_gets_through(text):
    seen: list[tuple[str, dict[str, str | None]]] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: seen.append((tag, dict(attributes)))
    parser.feed(str(prose(text)))
    assert {tag for tag, _ in seen} <= {"p", "a"}
    for _, attributes in seen:
        assert set(attributes) <= {"href", "title", "rel"}
        assert (attributes.get("href") or "https:").startswith("https:")
