"""External data: declared on every way in, and shown beside what was found."""

from __future__ import annotations

import hashlib
import io
import tarfile

import pytest
from starlette.testclient import TestClient

from fieldmark_challenge.people import accounts
from fieldmark_challenge.records.schema import Submission
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge.submissions.archives import inspect
from fieldmark_challenge_tests.boards.test_visibility import score_all
from fieldmark_challenge_tests.platform import Platform, run_text
from fieldmark_challenge_tests.site.test_security import csrf_of, sign_in

API = "/api/v1/challenges/tiny"
IMAGENET = "ImageNet, by the pre-trained weights of efficientnet_lite0"


@pytest.fixture
def client(platform: Platform):
    token = accounts.make_token(platform.database, platform.captain("ada"), "shell", accounts.SCOPES)
    app = create_app(platform.database, platform.storage)
    with TestClient(app, headers={"authorization": f"Bearer {token}"}, follow_redirects=False) as made:
        yield made


def hand_in(client: TestClient, **fields: str):
    return client.post(f"{API}/submissions", data=fields, files={"run": ("run.csv", run_text())})


@pytest.mark.parametrize("said", [{}, {"external": ""}, {"external": "perhaps"}])
def test_a_run_that_says_nothing_about_external_data_is_refused_by_the_api(client: TestClient, platform, said):
    answer = hand_in(client, **said)
    assert answer.status_code == 400 and "external=no" in answer.json()["error"]
    with platform.database.read() as session:
        assert session.query(Submission).count() == 0


def test_an_upload_in_parts_must_declare_as_well(client: TestClient):
    content = run_text().encode()
    begin = {"size": str(len(content)), "sha256": hashlib.sha256(content).hexdigest()}
    upload = client.post(f"{API}/uploads", data=begin).json()["id"]
    client.patch(f"{API}/uploads/{upload}", headers={"upload-offset": "0"}, content=content)
    assert "external=no" in client.post(f"{API}/uploads/{upload}/finish").json()["error"]
    done = client.post(f"{API}/uploads/{upload}/finish", data={"external": "no", "external_found": IMAGENET})
    assert done.status_code == 201 and done.json()["external_found"] == IMAGENET


def test_the_form_must_declare_without_its_script_too(client: TestClient, platform: Platform):
    sign_in(client, "ada")
    fields = {"csrf": csrf_of(client, "/c/tiny/submit"), "title": "undeclared"}
    answer = client.post("/c/tiny/submit", data=fields, files={"run": ("run.csv", run_text())})
    assert answer.status_code == 400 and "Say whether external data were used" in answer.text
    assert "undeclared" in answer.text  # what was typed is still there


def test_the_board_shows_what_was_declared_and_what_was_found(client: TestClient, platform: Platform):
    platform.hand_in(platform.captain("bob"), external_data=True, external_note="iNaturalist 2021")
    assert hand_in(client, external="no", external_found=IMAGENET).status_code == 201
    score_all(platform, right=[60, 60])
    page = client.get("/c/tiny/board").text
    assert "External data: iNaturalist 2021" in page
    assert f"No external data declared · found: {IMAGENET}" in page
    rows = {row["team"]: row for row in client.get(f"{API}/board").json()["entries"]}
    told = {(row["external_data"], row["external_declared"], row["external_found"]) for row in rows.values()}
    assert told >= {(True, "iNaturalist 2021", ""), (False, "", IMAGENET)}
    assert "external_declared,external_found" in client.get("/c/tiny/board.csv").text.splitlines()[0]


def test_what_was_found_is_not_said_twice_where_it_was_declared(client: TestClient, platform: Platform):
    assert hand_in(client, external="yes", external_note=f"{IMAGENET}; a key", external_found=IMAGENET).is_success
    score_all(platform, right=[60])
    page = client.get("/c/tiny/board").text
    assert f"External data: {IMAGENET}; a key" in page and "found:" not in page


def test_files_of_weights_in_a_program_are_found(tmp_path):
    with tarfile.open(tmp_path / "program.tar", "w") as archive:
        for name in ("run.sh", "model/net.ONNX", "weights/a.safetensors", "notes.txt"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    assert inspect(tmp_path / "program.tar") == ["model/net.ONNX", "weights/a.safetensors"]
