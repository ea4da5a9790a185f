"""A challenge that asks for programs, from the archive to the board."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from fieldmark.web.client import packed
from fieldmark.web.refusals import ConflictError, TooOftenError
from fieldmark_challenge.challenges import phases
from fieldmark_challenge.operations.lease_queue import RUNS
from fieldmark_challenge.people import accounts
from fieldmark_challenge.programs import tasks
from fieldmark_challenge.programs.inputs import UnpackedInputs
from fieldmark_challenge.programs.program_worker import ProgramWorker
from fieldmark_challenge.programs.tasks import CodeInputs
from fieldmark_challenge.records.code_schema import CodeHost
from fieldmark_challenge.records.schema import Challenge, User
from fieldmark_challenge.scoring import queue
from fieldmark_challenge.scoring.worker import Worker
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge.submissions.starter_kits import starter_kit
from fieldmark_challenge_tests.platform import PASSWORD, Platform
from fieldmark_challenge_tests.programs.hosted import RULES, Hosted, host_snakes
from fieldmark_challenge_tests.programs.programs import archive_of
from fieldmark_challenge_tests.unprivileged import account_runner

CANARY = "zebra-of-the-hidden-photos"
# Says and writes what it saw, where a program should answer.
TELLTALE = f"""
import os
print("{CANARY}", len(os.listdir(os.environ["AICROWD_TEST_IMAGES_PATH"])))
with open(os.environ["AICROWD_PREDICTIONS_OUTPUT_PATH"], "w") as sink:
    sink.write("hashed_id,{CANARY}\\n{CANARY},0.5\\n")
"""


@pytest.fixture
def hosted(small_platform: Platform, snake_world) -> Hosted:
    return host_snakes(small_platform, snake_world)


@pytest.fixture
def worker(hosted: Hosted) -> Iterator[ProgramWorker]:
    inputs = UnpackedInputs()
    yield ProgramWorker(hosted.platform.database, hosted.platform.storage, runner=account_runner(), inputs=inputs)
    inputs.close()


class Caller:
    """Somebody who speaks to the API."""

    def __init__(self, hosted: Hosted, user: User) -> None:
        platform = hosted.platform
        self.client = TestClient(create_app(platform.database, platform.storage))
        token = accounts.make_token(platform.database, user, "all", accounts.SCOPES)
        self.headers, self.base = {"authorization": f"Bearer {token}"}, "/api/v1/challenges/snakes"

    def get(self, path: str) -> dict:
        return self.client.get(self.base + path, headers=self.headers).json()

    def send(self, path: str, archive: bytes, **fields: str):
        files = {"run": ("team.tar.gz", io.BytesIO(archive))}
        fields = {"external": "no", **fields} if path == "/submissions" else fields
        return self.client.post(self.base + path, headers=self.headers, data=fields, files=files)


def test_a_program_is_run_on_hidden_photos_and_its_run_is_scored_by_another_worker(hosted: Hosted, worker):
    platform = hosted.platform
    ada = Caller(hosted, platform.captain("ada", hosted.challenge))
    assert ada.get("/code")["program"] and ada.get("/code")["items"] == 24
    assert "run.sh" in ada.send("/submissions", b"id,predicted\n").json()["error"]  # no run, but a program
    archive = hosted.archive(right=24)
    sent = ada.send("/submissions", archive, title="lookup")
    assert sent.status_code == 201 and sent.json()["program"]["state"] == "queued"
    number = sent.json()["id"]
    scorer = Worker(platform.database, platform.storage)
    assert not scorer.run_one()  # there is no run yet
    assert worker.run_one() and not worker.run_one()
    after = ada.get(f"/submissions/{number}")
    assert (after["state"], after["program"]["state"], after["program"]["output"]) == ("queued", "done", None)
    assert after["sha256"] == sent.json()["sha256"]  # of the archive: of the run that was written nothing is told
    assert scorer.run_one() and not scorer.run_one()
    scored = ada.get(f"/submissions/{number}")
    assert scored["state"] == "scored" and scored["scores"]["public"]["macro_f1_union"]["value"] == 1.0
    assert [entry["team"] for entry in ada.get("/board")["entries"]] == ["team ada"]
    # A corrected truth, or another scorer: the run waits to be scored again, and the program is not run again.
    queue.rescore(platform.database, platform.admin, hosted.challenge)
    assert not worker.run_one() and RUNS.any_waits(platform.database)
    inputs = CodeInputs(platform.folder / "snakes" / "inputs")
    with pytest.raises(ConflictError, match="would not compare"):
        where = (platform.database, platform.storage, platform.admin, hosted.challenge, RULES, [])
        tasks.set_code(*where, inputs, most_archive_mb=64)
    page = f"/c/snakes/submissions/{number}/file"
    owner = TestClient(ada.client.app, cookies={"fieldmark_session": session_of(platform, "ada")})
    admin = TestClient(ada.client.app, cookies={"fieldmark_session": session_of(platform, "admin")})
    assert owner.get(page + "?written=yes").content == archive
    assert admin.get(page + "?written=yes").text.startswith("hashed_id,")


def session_of(platform: Platform, name: str) -> str:
    return accounts.sign_in(platform.database, name, PASSWORD)[1]


def test_what_a_program_says_about_hidden_items_reaches_nobody_but_the_organizers(hosted: Hosted, worker):
    platform = hosted.platform
    ada = platform.captain("ada", hosted.challenge)
    caller, organizer = Caller(hosted, ada), Caller(hosted, platform.admin)
    number = caller.send("/submissions", archive_of(TELLTALE)).json()["id"]
    assert worker.run_one()
    told = caller.get(f"/submissions/{number}")
    assert told["state"] == "refused" and "debug run" in told["reason"]
    assert told["counted"], "whether a program fails tells something about what it saw"
    pages = TestClient(caller.client.app, cookies={"fieldmark_session": session_of(platform, "ada")})
    seen = [pages.get(f"/c/snakes/{path}").text for path in (f"submissions/{number}", "submissions", "debug", "submit")]
    assert CANARY not in json.dumps(told) + "".join(seen)
    assert CANARY in organizer.get(f"/submissions/{number}")["program"]["output"]
    hosted.set_rules(show_output=True)
    assert caller.get(f"/submissions/{number}")["program"]["output"].startswith(f"{CANARY} 24")


def test_a_debug_run_shows_everything_about_public_items_and_costs_nothing(hosted: Hosted, worker):
    platform = hosted.platform
    ada = platform.captain("ada", hosted.challenge)
    caller = Caller(hosted, ada)
    before = caller.get("/quota")
    bad = caller.send("/debug-runs", archive_of(TELLTALE)).json()
    good = caller.send("/debug-runs", hosted.archive(right=0)).json()
    assert caller.send("/debug-runs", hosted.archive(right=0)).status_code == 429  # two are on their way
    assert worker.run_one() and worker.run_one() and not worker.run_one()
    told = caller.get(f"/debug-runs/{bad['id']}")
    assert told["state"] == "refused" and told["output"] == f"{CANARY} 5\n" and CANARY in told["problems"][0]["text"]
    fine = caller.get(f"/debug-runs/{good['id']}")
    assert (fine["state"], fine["output"], fine["problems"]) == ("done", "photos 5\n", [])
    assert not Worker(platform.database, platform.storage).run_one()  # there is nothing to score
    assert caller.get("/quota") == before and caller.get("/submissions") == []
    rival = Caller(hosted, platform.captain("bob", hosted.challenge))
    assert "error" in rival.get(f"/debug-runs/{bad['id']}")
    hosted.set_rules(debug_hourly=2)
    assert "Too many attempts" in caller.send("/debug-runs", hosted.archive(right=0)).json()["error"]
    page = TestClient(caller.client.app, cookies={"fieldmark_session": session_of(platform, "ada")})
    assert CANARY in page.get(f"/c/snakes/debug/{bad['id']}").text


def test_the_program_of_the_starter_kit_answers(hosted: Hosted, worker, tmp_path):
    platform = hosted.platform
    with platform.database.read() as session:
        challenge = session.get_one(Challenge, hosted.challenge.id)
        kit = starter_kit(challenge, platform.storage, "http://here/c/snakes", program=True)
    zipfile.ZipFile(io.BytesIO(kit)).extractall(tmp_path)
    caller = Caller(hosted, platform.captain("ada", hosted.challenge))
    with packed(tmp_path / "starter-kit" / "program") as archive:
        tried = caller.send("/debug-runs", archive.read_bytes()).json()
    assert worker.run_one()
    told = caller.get(f"/debug-runs/{tried['id']}")
    assert (told["state"], told["output"]) == ("done", "answered 5 items, 5 photos\n"), told


def test_nothing_is_taken_where_no_program_can_be_run(hosted: Hosted):
    platform = hosted.platform
    ada = platform.captain("ada", hosted.challenge)
    with platform.database.write() as session:
        session.get_one(CodeHost, "here").failure = "a program would find a network"
    with pytest.raises(ConflictError, match="would find a network"):
        hosted.hand_in(ada, hosted.archive(right=0))
    for path in ("submit", "organize/code"):
        name = "ada" if path == "submit" else "admin"
        app = create_app(platform.database, platform.storage)
        page = TestClient(app, cookies={"fieldmark_session": session_of(platform, name)}).get(f"/c/snakes/{path}")
        assert "a program would find a network" in page.text


def test_quota_holds_for_programs(hosted: Hosted):
    platform = hosted.platform
    ada = platform.captain("ada", hosted.challenge)
    with platform.database.read() as session:
        phase = session.get_one(Challenge, hosted.challenge.id).phases[0]
    phases.change_phase(platform.database, platform.admin, hosted.challenge, phase, daily_limit=1)
    hosted.hand_in(ada, hosted.archive(right=0))
    with pytest.raises(TooOftenError):
        hosted.hand_in(ada, hosted.archive(right=1))
