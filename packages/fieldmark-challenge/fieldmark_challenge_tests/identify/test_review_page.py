"""The review page, asked as a program does; a browser is in `test_naming_browser`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from starlette.testclient import TestClient

from fieldmark.identification.review.answer_folders import AnsweredEntry, AnswerFolder, table_of
from fieldmark.identification.review.session import Review
from fieldmark.web.local_app import make_local_app
from fieldmark.web.review_pages import router
from fieldmark_tests.fixtures import save_photo


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """Answers to a dozen photos and a recording; a secret lies beside them."""
    (tmp_path / "secret.jpg").write_bytes(b"not for the page")
    names = [f"{number:02d}.jpg" for number in range(12)]
    for number, name in enumerate(names):
        save_photo(tmp_path / "photos" / name, (20 * number, 90, 90), number)
    (tmp_path / "photos" / "z.wav").write_bytes(b"RIFF")
    said = {"name": "Parus major", "probability": 0.5, "names": ["Parus major", "Pica pica"]}
    rows = [
        AnsweredEntry(name, [name], certainty=number / 12, probabilities=[0.5, 0.3], **said)
        for number, name in enumerate(names)
    ]
    rows[0] = replace(rows[0], danger="It bites.")
    rows.append(AnsweredEntry("z.wav", ["z.wav"], name="Pica pica", certainty=2.0, start_s=3.0, end_s=6.0))
    taxa = [{"label": "Parus major", "common_name": "Great Tit"}, {"label": "Pica pica"}]
    AnswerFolder(table_of(rows), tmp_path / "photos", {"kind": "photo", "simulated": True}, taxa).write(
        tmp_path / "out"
    )
    return tmp_path / "out"


@pytest.fixture
def client(answers: Path) -> Iterator[TestClient]:
    app = make_local_app(router, "/review")
    app.state.review = Review(answers)
    with TestClient(app) as made:
        yield made


def shown(page: str) -> str:
    return re.search(r'name="observation" value="([^"]+)"', page)[1]


def say(client: TestClient, **fields: str):
    page = client.get("/review").text
    token = re.search(r'name="csrf" value="([0-9a-f]+)"', page)[1]
    return client.post("/review", data={"csrf": token, "observation": shown(page), **fields})


def test_each_answer_brings_the_next_one(client, answers):
    page = client.get("/").text
    assert shown(page) == "00.jpg" and "It bites." in page and "Great Tit" in page and "Simulated" in page
    page = say(client, choice="Pica pica", seconds="2.5").text
    assert shown(page) == "01.jpg" and "1 of 13 reviewed, 1 corrected" in page and "about 2 s" in page
    page = say(client, name="Turdus merula", choice="Parus major").text  # what is typed wins
    page = say(client, untold="yes", choice="Parus major").text
    assert "1 could not be told" in page
    assert client.app.state.review.looks["01.jpg"].name == "Turdus merula"
    assert 'value="Turdus merula"' in client.get("/review", params={"entry": "01.jpg"}).text
    checked = pl.read_csv(client.get("/review/checked.csv").content)
    assert checked["label"].to_list() == ["Pica pica", "Turdus merula"]
    assert len(pl.read_csv(client.get("/review/finished.csv").content)) == 13
    assert (answers / "checked.csv").exists()


def test_photos_are_shown_small_and_nothing_else_on_the_machine_is(client):
    photo = client.get("/review/file/0", params={"entry": "00.jpg"})
    assert photo.headers["content-type"] == "image/jpeg" and photo.content.startswith(b"\xff\xd8")
    assert client.get("/review/file/0", params={"entry": "z.wav"}).content == b"RIFF"
    for entry, number in (("../secret.jpg", 0), ("secret.jpg", 0), ("00.jpg", 1), ("00.jpg", -1)):
        assert client.get(f"/review/file/{number}", params={"entry": entry}).status_code == 404
    assert client.get("/review", params={"entry": "elsewhere"}).status_code == 404


def test_a_form_from_elsewhere_or_without_a_name_changes_nothing(client):
    assert client.post("/review", data={"csrf": "0" * 64, "observation": "00.jpg", "choice": "x"}).status_code == 403
    assert say(client).status_code == 400 and say(client, name="x" * 300).status_code == 400
    assert client.app.state.review.looks == {}


def test_everything_looked_at_is_said(client):
    for _ in range(13):
        last = say(client, choice="Parus major")
    assert "Everything has been looked at" in last.text and "The list" in last.text
    assert client.app.state.review.progress().enough
