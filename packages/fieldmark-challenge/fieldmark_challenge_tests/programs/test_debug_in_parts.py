"""Debug runs of large programs come in parts: from a program, from the shell and from the page."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy import inspect, text

from fieldmark.web import client as submitting_client
from fieldmark.web import part_sizes
from fieldmark.web.client import Client, packed
from fieldmark_challenge.people import accounts
from fieldmark_challenge.programs.debug_jobs import debug_runs
from fieldmark_challenge.records.code_schema import Program
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Submission
from fieldmark_challenge.submissions import partial_uploads
from fieldmark_challenge_tests.platform import Platform
from fieldmark_challenge_tests.programs.programs import HONEST, archive_of
from fieldmark_challenge_tests.programs.test_program_queue import ask_for_programs
from fieldmark_challenge_tests.submissions.test_browser_uploads import LostConnection, at_the_page
from fieldmark_challenge_tests.submissions.test_partial_uploads import BASE, PART, Sender, served_here, stored_parts

# What does not compress: three parts and a bit.
WEIGHTS = os.urandom(3 * PART).hex()
PROGRAM = archive_of(HONEST, **{"weights.txt": WEIGHTS})


def test_a_program_in_parts_is_tried_out_once_and_costs_nothing(platform: Platform):
    ada = Sender(ask_for_programs(platform))
    upload = ada.begin(PROGRAM, filename="team.tar.gz").json()["id"]
    assert ada.client.post(f"{BASE}/{upload}/debug").status_code == 409  # nothing has arrived yet
    ada.send_all(upload, PROGRAM)
    first, again = (ada.client.post(f"{BASE}/{upload}/debug") for _ in range(2))
    assert first.status_code == again.status_code == 201 and first.json()["id"] == again.json()["id"]
    assert stored_parts(platform) == [] and ada.client.get(BASE).json() == []
    assert ada.client.get(f"{BASE}/{upload}").json()["debug_run"] == first.json()["id"]
    refused = ada.finish(upload, title="and now for good")
    assert refused.status_code == 409 and "tried out as a debug run" in refused.json()["error"]
    with platform.database.read() as session:
        (program,) = debug_runs(session, platform.team(ada.user))
        assert session.query(Submission).count() == 0
    assert b"".join(platform.storage.chunks(program.path)) == PROGRAM and program.filename == "team.tar.gz"


def test_what_is_no_program_is_refused_and_gone(small_platform: Platform):
    ada = Sender(ask_for_programs(small_platform))
    upload = ada.begin(bytes(2 * PART)).json()["id"]
    ada.send_all(upload, bytes(2 * PART))
    refused = ada.client.post(f"{BASE}/{upload}/debug")
    assert refused.status_code == 422 and refused.json()["error"]
    assert stored_parts(small_platform) == [] and ada.client.get(f"{BASE}/{upload}").status_code == 404


def test_submit_goes_on_with_the_same_folder(small_platform: Platform, tmp_path: Path, monkeypatch):
    ask_for_programs(small_platform)
    token = accounts.make_token(small_platform.database, small_platform.captain("ada"), "shell", accounts.SCOPES)
    monkeypatch.setattr(submitting_client, "IN_PARTS_FROM", 1)
    monkeypatch.setattr(partial_uploads, "PART", PART)
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "run.sh").write_text('exec "$PYTHON" run.py')
    (folder / "weights.txt").write_text(WEIGHTS)
    with packed(folder) as archive:
        first = archive.read_bytes()
    os.utime(tmp_path)
    ada = Sender(small_platform)
    upload = ada.begin(first, filename="program.tar.gz").json()["id"]
    ada.send(upload, 0, first[:PART])
    with served_here(small_platform) as port, packed(folder) as archive:
        tried = Client.of(f"http://127.0.0.1:{port}/c/tiny", token).try_out(archive)
    with small_platform.database.read() as session:
        assert session.get_one(Program, tried["id"]).size == len(first)
    assert ada.client.get(f"{BASE}/{upload}").json()["debug_run"] == tried["id"]  # it went on with what was there


def test_the_page_sends_a_program_in_parts(browser, small_platform: Platform, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(partial_uploads, "PART", PART)
    monkeypatch.setattr(part_sizes, "IN_PARTS_FROM", PART)
    ask_for_programs(small_platform)
    program = tmp_path / "team.tar.gz"
    program.write_bytes(PROGRAM)
    with at_the_page(browser, small_platform) as page:
        line = LostConnection(page, {PART: 1})
        page.goto("/c/tiny/debug")
        page.get_by_label("Program").set_input_files(program)
        page.get_by_role("button", name="Try it out").click()
        page.wait_for_url("**/debug/*")
        assert page.get_by_role("heading", name="team.tar.gz").count() == 1
    assert line.begun == [0, PART, 2 * PART, 3 * PART][: len(line.begun)] and len(line.begun) == -(
        -len(PROGRAM) // PART
    )
    with small_platform.database.read() as session:
        assert session.query(Program).one().size == len(PROGRAM)


def test_the_tables_go_up_and_down_and_keep_what_is_under_way(platform: Platform, database_url: str):
    ada = Sender(platform)
    upload = ada.begin(PROGRAM).json()["id"]
    ada.send(upload, 0, PROGRAM[:PART])
    with platform.database.write() as session:
        session.execute(text("CREATE TEMPORARY TABLE kept AS SELECT * FROM partial_uploads"))
    tables = Database(database_url)
    tables.migrate(to="0009")
    assert "program_id" not in {one["name"] for one in inspect(tables.engine).get_columns("partial_uploads")}
    columns = "id, user_id, challenge_id, filename, size, sha256, received, created_at, expires_at, submission_id"
    with tables.engine.begin() as connection:
        connection.execute(
            text(
                f"INSERT INTO partial_uploads ({columns}) SELECT 'u', id, 1, 'a', 9, 'b', 4, created_at, created_at, "
                "NULL FROM users LIMIT 1"
            )
        )
        connection.execute(text("INSERT INTO upload_parts VALUES ('u', 0, 4, 'parts/u')"))
    tables.migrate()
    with tables.engine.connect() as connection:
        assert connection.execute(text("SELECT program_id, received FROM partial_uploads")).all() == [(None, 4)]
        assert connection.execute(text("SELECT path FROM upload_parts")).scalars().all() == ["parts/u"]
    tables.close()
