"""Attacks through programs: on the claims of others, on quotas, and on what a program may carry out of the walls."""

from __future__ import annotations

import ast
import hashlib
import io
import logging
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, inspect, text
from starlette.testclient import TestClient

import fieldmark_challenge
from fieldmark.web.refusals import ConflictError, TooOftenError
from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.mail import notices, outbox
from fieldmark_challenge.mail.messages import write_letter
from fieldmark_challenge.operations.lease_queue import MAX_ATTEMPTS, PROGRAMS, StaleClaimError
from fieldmark_challenge.people import accounts, deletion, teams
from fieldmark_challenge.programs import program_queue
from fieldmark_challenge.programs.program_queue import ProgramClaim, WrittenRun
from fieldmark_challenge.records.code_schema import Program
from fieldmark_challenge.records.mail_schema import OutgoingMail
from fieldmark_challenge.records.schema import Base, Membership, Setting, Submission, Team, User, utc_now
from fieldmark_challenge.scoring import queue
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge.submissions import submissions
from fieldmark_challenge_tests.hosting import cards
from fieldmark_challenge_tests.platform import PASSWORD, Platform
from fieldmark_challenge_tests.programs.test_program_queue import debug, expire, hand_in, program

SOURCE = Path(fieldmark_challenge.__file__).parent
HIDDEN = "hidden-photo-byte-for-byte"


def claim(platform: Platform, submission_id: int | None = None) -> ProgramClaim:
    """Claims programs until that of a submission, or any debug run, is among them."""
    while claimed := program_queue.claim(platform.database, "worker"):
        if claimed.submission_id == submission_id:
            return claimed
    raise AssertionError("there is no such program")


def quota(platform: Platform, user: User) -> int:
    return platform.quota(user).used


def test_the_number_of_a_row_that_is_gone_is_never_given_again(attacked: Platform):
    eve = attacked.captain("eve of numbers")
    debug(attacked, eve)
    old = claim(attacked)
    with attacked.database.write() as session:  # by force: nothing on the platform removes it
        session.execute(delete(Program).where(Program.id == old.program_id))
    victim = attacked.captain("victim of numbers")
    hand_in(attacked, victim)
    new = program_queue.claim(attacked.database, "honest")
    assert new.program_id > old.program_id
    with pytest.raises(StaleClaimError):
        program_queue.finish(attacked.database, old, HIDDEN, WrittenRun("runs/1/stolen", 1, "0" * 64))
    assert program(attacked, id=new.program_id).log == "" and not PROGRAMS.renew(attacked.database, old)
    program_queue.release(attacked.database, new)
    if attacked.database.is_sqlite:
        with attacked.database.engine.connect() as connection:
            told = dict(connection.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'table'")).all())
        numbered = [
            name for name, table in Base.metadata.tables.items() if [*table.primary_key.columns.keys()] == ["id"]
        ]
        words = [name for name in numbered if "AUTOINCREMENT" not in told[name]]
        assert words == ["partial_uploads"]  # whose numbers are drawn


def test_tokens_of_claims_are_drawn_and_fill_their_column(attacked: Platform):
    number = hand_in(attacked, attacked.captain("fences"))
    tokens = []
    for _ in range(3):
        claimed = claim(attacked, number)
        tokens.append(claimed.fence)
        program_queue.release(attacked.database, claimed)
    assert len(set(tokens)) == 3 and max(tokens) > 2**40
    kinds = {column["name"]: column["type"] for column in inspect(attacked.database.engine).get_columns("programs")}
    assert attacked.database.is_sqlite or str(kinds["fence"]) == "BIGINT"


def test_nothing_that_is_on_its_way_is_removed_with_its_team(attacked: Platform):
    eve = attacked.captain("leaving")
    number = debug(attacked, eve)
    with pytest.raises(ConflictError, match="debug run of the team is on its way"):
        teams.leave(attacked.database, eve, attacked.challenge)
    claimed = claim(attacked)
    deletion.delete_account(attacked.database, None, eve.id)
    assert program(attacked, id=number).state == "running"
    program_queue.finish(attacked.database, claimed, "done", None)
    bob = attacked.captain("leaving later")
    debug(attacked, bob)
    program_queue.finish(attacked.database, claim(attacked), "", None)
    teams.leave(attacked.database, bob, attacked.challenge)  # it has ended: nothing holds the team
    with attacked.database.read() as session:
        assert session.query(Team).filter_by(name="team leaving later").count() == 0
    cyd = attacked.captain("leaving a program")
    hand_in(attacked, cyd)
    with pytest.raises(ConflictError, match="stays together"):
        teams.leave(attacked.database, cyd, attacked.challenge)


def test_a_program_that_was_started_on_hidden_items_costs_whatever_becomes_of_it(attacked: Platform):
    eve = attacked.captain("failing")
    number = hand_in(attacked, eve)
    for _ in range(MAX_ATTEMPTS):  # it ends its worker each time
        claimed = claim(attacked, number)
        program_queue.note_run(attacked.database, claimed)
        expire(attacked, claimed.program_id)
    assert program_queue.claim(attacked.database, "w") is None
    found = attacked.submission(number)
    assert (found.state, found.counted, found.reason) == ("failed", True, program_queue.CHARGED)
    for _ in range(3):
        with pytest.raises(ConflictError, match="stays together"):
            teams.leave(attacked.database, eve, attacked.challenge)
        with pytest.raises(ConflictError, match="in a team"):
            teams.make_team(attacked.database, eve, attacked.challenge, "team failing again")
    assert quota(attacked, eve) == 1
    never = hand_in(attacked, eve)
    for _ in range(MAX_ATTEMPTS):
        claimed = claim(attacked, never)
        program_queue.give_back(attacked.database, claimed, "no such inputs")
        expire(attacked, claimed.program_id)
    found = attacked.submission(never)
    assert (found.state, found.counted, found.reason) == ("failed", False, program_queue.UNCHARGED)
    assert quota(attacked, eve) == 1
    written = hand_in(attacked, eve)
    claimed = claim(attacked, written)
    program_queue.note_run(attacked.database, claimed)
    program_queue.finish(attacked.database, claimed, "", WrittenRun("runs/1/odd", 1, "0" * 64))
    queue.give_back(attacked.database, queue.claim(attacked.database, "scorer"), "it ends the scorer", again=False)
    found = attacked.submission(written)
    assert (found.state, found.counted, found.reason) == ("failed", True, queue.CHARGED) and quota(attacked, eve) == 2


def test_a_claim_that_is_lost_starts_nothing_on_hidden_items(attacked: Platform):
    claimed = claim(attacked, hand_in(attacked, attacked.captain("late")))
    expire(attacked, claimed.program_id)
    fresh = program_queue.claim(attacked.database, "heir")
    with pytest.raises(StaleClaimError):
        program_queue.note_run(attacked.database, claimed)
    assert program(attacked, id=fresh.program_id).ran_at is None
    program_queue.note_run(attacked.database, fresh)
    program_queue.refuse(attacked.database, fresh, "It failed.", "", [])


def test_quotas_follow_people_and_not_teams(attacked: Platform):
    eve = attacked.captain("moving")
    claimed = claim(attacked, hand_in(attacked, eve))
    program_queue.note_run(attacked.database, claimed)
    program_queue.refuse(attacked.database, claimed, "It failed.", "", [])
    with attacked.database.write() as session:  # by force: nobody leaves a team that has submitted
        session.execute(delete(Membership).where(Membership.user_id == eve.id))
    teams.make_team(attacked.database, eve, attacked.challenge, "team moving on")
    assert quota(attacked, eve) == 1
    with attacked.database.write() as session:
        phase = attacked.phase()
        session.merge(phase).daily_limit = 1
    try:
        with pytest.raises(TooOftenError):
            hand_in(attacked, eve)
    finally:
        attacked.set_phase(daily_limit=5)


@pytest.fixture
def robbed(attacked: Platform) -> tuple[User, int, int, bytes]:
    """Somebody whose program has copied hidden bytes into all that it can write; its submission, and a debug run."""
    name = f"robber {utc_now().timestamp():.6f}"
    eve = attacked.captain(name)
    number, run = hand_in(attacked, eve), f"id,predicted\n{HIDDEN},a\n".encode()
    claimed = claim(attacked, number)
    program_queue.note_run(attacked.database, claimed)
    path, copy = f"runs/{attacked.challenge.id}/{'a' * 8}{number}", attacked.folder / "stolen"
    copy.write_bytes(run)
    attacked.storage.put(copy, path)
    digest = hashlib.sha256(run).hexdigest()
    program_queue.finish(attacked.database, claimed, f"I saw {HIDDEN}", WrittenRun(path, len(run), digest))
    scored = {part: replace(card, provenance={"scored": provenance(digest)}) for part, card in cards().items()}
    queue.finish(attacked.database, queue.claim(attacked.database, "scorer"), scored)
    failed = hand_in(attacked, eve)
    claimed = claim(attacked, failed)
    program_queue.note_run(attacked.database, claimed)
    problems = [{"line": 1, "text": HIDDEN}]
    program_queue.refuse(attacked.database, claimed, "The program failed.", HIDDEN, problems, HIDDEN)
    return eve, number, failed, run


def provenance(digest: str) -> dict[str, Any]:
    truth = {"truth": {"name": "truth.csv", "sha256": "1" * 64}}
    return {"run": {"name": "run", "sha256": digest}, "truth": truth, "scorer": {"version": "1", "sha256": "2" * 64}}


def texts(client: TestClient, token: str, *numbers: int) -> Iterator[tuple[str, bytes]]:
    """All that somebody gets who looks at their submissions in every way there is."""
    headers = {"authorization": f"Bearer {token}"}
    paths = [
        f"/c/tiny{path}" for path in ("", "/submissions", "/board", "/board.json", "/board.csv", "/debug", "/team")
    ]
    kinds = ("", "/status", "/file", "/file?written=yes", "/receipt.json")
    paths += [f"/c/tiny/submissions/{number}{path}" for number in numbers for path in kinds]
    paths += [f"/c/tiny/entries/{number}" for number in numbers]
    paths += [f"/api/v1/challenges/tiny/{path}" for path in ("submissions", "debug-runs", "quota", "board")]
    paths += [f"/api/v1/challenges/tiny/submissions/{number}" for number in numbers]
    for path in paths:
        answer = client.get(path, headers=headers if path.startswith("/api") else {})
        assert answer.status_code in (200, 404), path
        yield path, answer.content
    export = client.get("/account/export.zip").content
    with zipfile.ZipFile(io.BytesIO(export)) as archive:
        assert "data.json" in archive.namelist()
        yield from ((f"export: {name}", name.encode() + archive.read(name)) for name in archive.namelist())


def test_what_a_program_wrote_on_hidden_items_comes_out_nowhere(attacked: Platform, robbed, caplog):
    eve, number, failed, run = robbed
    caplog.set_level(logging.DEBUG, "fieldmark")
    digest, size = hashlib.sha256(run).hexdigest(), str(len(run))
    with attacked.database.write() as session:
        session.get_one(User, eve.id).email_verified_at = utc_now()
    outbox.switch(attacked.database, True)
    with attacked.database.write() as session:  # as if it had been on all the time
        long_ago = utc_now().replace(year=2000).isoformat().encode()
        session.query(Setting).filter_by(name=outbox.SWITCH).update({"value": long_ago})
    notices.collect(attacked.database)
    app = create_app(attacked.database, attacked.storage)
    token = accounts.make_token(attacked.database, eve, "shell", ["read", "submit"])
    with TestClient(app) as client:
        client.cookies.set(SESSION_COOKIE, accounts.sign_in(attacked.database, eve.name, PASSWORD)[1])
        told = re.compile(rb'%b|%b|"size": ?%b\b' % (HIDDEN.encode(), digest[:12].encode(), size.encode()))
        ways_out = [where for where, content in texts(client, token, number, failed) if told.search(content)]
        assert ways_out == []
        client.cookies.set(SESSION_COOKIE, accounts.sign_in(attacked.database, "admin", PASSWORD)[1])
        assert client.get(f"/c/tiny/submissions/{number}/file?written=yes").content == run
        page = client.get(f"/c/tiny/submissions/{failed}").text
        assert page.count(HIDDEN) >= 2  # what it said, and what is noted for organizers
    with attacked.database.read() as session:
        mails = session.query(OutgoingMail).filter_by(user_id=eve.id).all()
        assert {mail.kind for mail in mails} >= {"run", "program"}
        assert all(HIDDEN not in str(write_letter(mail.kind, mail.data, "https://x", name="eve")) for mail in mails)
    assert HIDDEN not in caplog.text
    outbox.switch(attacked.database, False)


def test_every_way_out_asks_the_one_rule():
    """Nothing but the queue, its worker and the rule itself reads what a program said, or what is wrong with it."""
    inside = {"challenges/visible_output.py", "programs/program_queue.py", "programs/program_worker.py"}
    for path in sorted(SOURCE.rglob("*.py")):
        if str(path.relative_to(SOURCE)) in inside:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                read = f"{node.value.id}.{node.attr}"
                assert read not in ("program.log", "program.problems", "program.detail"), f"{path}: {read}"
    templates = "".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.html"))
    assert not re.search(r"\b(p|program)\.(log|problems|detail)\b", templates)


def test_refused_uploads_bind_nobody_and_cost_nothing(attacked: Platform):
    """The other side of charging: what was never started is free, and its author may go."""
    with attacked.database.read() as session:
        plain = session.query(type(attacked.challenge)).filter_by(slug="plain").one()
    eve = attacked.captain("clumsy", plain)
    with pytest.raises(submissions.RunRefusedError):
        attacked.hand_in(eve, "id,predicted\n", challenge=plain)
    teams.leave(attacked.database, eve, plain)
    with attacked.database.read() as session:
        assert session.query(Submission).filter_by(user_id=eve.id).count() == 0
