"""Who is told what, once, and how they end it."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from starlette.testclient import TestClient

from fieldmark.web.refusals import NotThereError, RefusalError
from fieldmark_challenge.challenges import admissions
from fieldmark_challenge.mail import notices, outbox, topics
from fieldmark_challenge.mail.delivery import Postman
from fieldmark_challenge.mail.messages import TOPICS, write_letter
from fieldmark_challenge.people import accounts, teams
from fieldmark_challenge.programs import program_queue
from fieldmark_challenge.programs.program_queue import WrittenRun
from fieldmark_challenge.records import backup
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.mail_schema import OutgoingMail
from fieldmark_challenge.records.participation import Announcement
from fieldmark_challenge.records.schema import Challenge, User, utc_now
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.scoring import queue
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests.hosting import cards
from fieldmark_challenge_tests.mail.mail_server import Mailbox, link_in, listening, plain_settings
from fieldmark_challenge_tests.platform import Platform
from fieldmark_challenge_tests.programs.test_program_queue import ARCHIVE, ask_for_programs, debug

URL = "https://fieldmark.example"


def verify(platform: Platform, *names: str) -> None:
    with platform.database.write() as session:
        session.query(User).filter(User.name.in_(names)).update({"email_verified_at": utc_now()})


def team_of_three(platform: Platform) -> None:
    """Ada and Bob have verified addresses, Cyd has not."""
    ada = platform.captain("ada")
    for name in ("bob", "cyd"):
        teams.accept_rules(platform.database, platform.person(name), platform.challenge)
        secret = teams.invite(platform.database, ada, platform.team(ada))
        teams.join(platform.database, platform.people[name], secret)
    verify(platform, "ada", "bob")


def waiting(platform: Platform) -> list[tuple[str, str]]:
    """Kind and reader of the mails in the outbox."""
    names = {user.id: name for name, user in platform.people.items()}
    with platform.database.read() as session:
        rows = session.query(OutgoingMail).filter_by(state="waiting").order_by(OutgoingMail.id)
        return sorted((row.kind, names[row.user_id]) for row in rows)


def test_a_team_hears_of_its_runs_once(platform: Platform):
    team_of_three(platform)
    platform.hand_in(platform.people["ada"], title="before mail was on")
    queue.finish(platform.database, queue.claim(platform.database, "w"), cards(0.25))
    outbox.switch(platform.database, True)
    platform.hand_in(platform.people["ada"], title="first\u2028try")
    with pytest.raises(RefusalError):
        platform.hand_in(platform.people["ada"], "id,predicted\n")  # told to its sender at once
    assert notices.collect(platform.database) == 0
    queue.finish(platform.database, queue.claim(platform.database, "w"), cards(0.25))
    assert notices.collect(platform.database) == 2 and notices.collect(platform.database) == 0
    assert waiting(platform) == [("run", "ada"), ("run", "bob")]
    queue.rescore(platform.database, platform.admin, platform.challenge)
    while claimed := queue.claim(platform.database, "w"):
        queue.finish(platform.database, claimed, cards(0.5))
    with platform.database.write() as session:  # what was submitted long ago and is scored again is no news
        session.query(OutgoingMail).delete()
        for run in session.query(notices.Submission):
            run.accepted_at = utc_now() - notices.RUNS_FROM
    assert notices.collect(platform.database) == 0


def test_a_mail_says_what_became_of_a_run_and_never_its_score(small_platform: Platform):
    platform, mailbox, settings = small_platform, Mailbox(), plain_settings()
    team_of_three(platform)
    outbox.switch(platform.database, True)
    topics.set_wanted(platform.database, platform.people["bob"], {"phases"})
    runs = [platform.hand_in(platform.people["cyd"], title=f"try {number}") for number in range(3)]
    queue.finish(platform.database, queue.claim(platform.database, "w"), cards(0.25))
    queue.refuse(platform.database, queue.claim(platform.database, "w"), [], "It has one problem.")
    queue.give_back(platform.database, queue.claim(platform.database, "w"), "a fault", again=False)
    notices.collect(platform.database)
    with listening(settings, mailbox):
        assert Postman(platform.database, settings, URL).deliver()
    assert {mail["To"] for mail in mailbox.mails} == {"ada@example.org"}  # Bob does not want to know
    subjects = [mail["Subject"].rpartition(":")[2].strip() for mail in mailbox.mails]
    assert subjects == [f"try {n} (run {run.id}) {w}" for n, (run, w) in
                        enumerate(zip(runs, ("scored", "refused", "not scored"), strict=True))]  # fmt: skip
    for mail, run in zip(mailbox.mails, runs, strict=True):
        assert link_in(mail, "/c/tiny/submissions").endswith(f"/{run.id}")
        assert "0.25" not in mail.get_content() and "0.125" not in mail.get_content()


def test_phases_are_announced_when_they_open_and_before_they_end(platform: Platform):
    team_of_three(platform)
    outbox.switch(platform.database, True)
    now = utc_now()
    hour = dt.timedelta(hours=1)
    platform.set_phase(starts_at=now + 30 * hour, ends_at=now + 130 * hour)
    assert notices.collect(platform.database, now) == 0
    assert notices.collect(platform.database, now + 31 * hour) == 2
    assert notices.collect(platform.database, now + 32 * hour) == 0
    verify(platform, "cyd")
    assert notices.collect(platform.database, now + 107 * hour) == 3
    assert notices.collect(platform.database, now + 108 * hour) == 0
    platform.set_phase(ends_at=now + 140 * hour)  # moved: said again
    assert notices.collect(platform.database, now + 120 * hour) == 3
    kinds = [kind for kind, _ in waiting(platform)]
    assert (kinds.count("phase-opens"), kinds.count("phase-ends")) == (2, 6)


def test_the_end_of_a_program_is_told_once_and_that_of_a_debug_run_to_who_started_it(small_platform: Platform):
    platform = small_platform
    team_of_three(platform)
    ask_for_programs(platform)
    outbox.switch(platform.database, True)
    for name in ("ada", "bob", "cyd"):
        debug(platform, platform.people[name])
        program_queue.finish(platform.database, program_queue.claim(platform.database, "w"), "", None)
    assert notices.collect(platform.database) == 2 and notices.collect(platform.database) == 0
    assert waiting(platform) == [("program", "ada"), ("program", "bob")]  # the address of Cyd is not verified
    platform.hand_in(platform.people["cyd"], ARCHIVE, filename="team.tar.gz")
    ended_well = program_queue.claim(platform.database, "w")
    program_queue.finish(platform.database, ended_well, "", WrittenRun("runs/1/a", 1, "a"))
    assert notices.collect(platform.database) == 0  # its run waits to be scored
    queue.refuse(platform.database, queue.claim(platform.database, "s"), [], "It has one problem.")
    platform.hand_in(platform.people["ada"], ARCHIVE, filename="team.tar.gz")
    program_queue.refuse(platform.database, program_queue.claim(platform.database, "w"), "It failed.", "", [])
    assert notices.collect(platform.database) == 4 and notices.collect(platform.database) == 0
    with platform.database.read() as session:
        mails = session.query(OutgoingMail).filter_by(user_id=platform.people["ada"].id).order_by(OutgoingMail.id)
        letters = [write_letter(mail.kind, mail.data, URL, name="ada") for mail in mails]
    assert [letter.subject.partition(": ")[2] for letter in letters] == [
        "debug run 1 ended well", "run 1 refused", "program of run 2 failed",
    ]  # fmt: skip
    assert f"{URL}/c/tiny/debug/1\n" in letters[0].text and f"{URL}/c/tiny/submissions/2\n" in letters[2].text
    assert all("it counts against your limits" in letter.text for letter in letters[1:])


def test_who_is_let_in_or_kept_out_is_told_and_a_stranger_learns_of_no_challenge(small_platform: Platform):
    platform = small_platform
    database, admin, challenge = platform.database, platform.admin, platform.challenge
    with database.write() as session:
        session.get_one(Challenge, challenge.id).access = "approval"
    people = {name: platform.person(name) for name in ("ada", "bob", "eve", "cyd")}
    verify(platform, "ada", "bob", "eve")
    admissions.ask(database, people["ada"], challenge, "")
    admissions.decide(database, admin, challenge, "ada", admit=True)  # while mail is off
    outbox.switch(database, True)
    admissions.ask(database, people["bob"], challenge, "")
    admissions.ask(database, people["cyd"], challenge, "")
    for name, admit in (("ada", True), ("ada", False), ("bob", True), ("bob", True), ("cyd", True), ("eve", False)):
        admissions.decide(database, admin, challenge, name, admit=admit)
    admissions.use_code(database, platform.person("dan"), admissions.make_code(database, admin, challenge))
    mailbox, settings = Mailbox(), plain_settings()
    with listening(settings, mailbox):
        assert Postman(database, settings, URL).deliver()
    assert [(mail["To"], mail["Subject"].partition(": ")[2]) for mail in mailbox.mails] == [
        ("ada@example.org", "you do not take part"),
        ("bob@example.org", "you may take part"),
    ]
    assert f"{URL}/c/tiny\r\n" in mailbox.mails[1].get_content()
    assert "/notices/" in mailbox.mails[0]["List-Unsubscribe"]


def test_an_announcement_is_mailed_to_those_who_take_part(platform: Platform):
    team_of_three(platform)
    platform.person("eve")
    verify(platform, "eve")
    about = {"challenge_id": platform.challenge.id, "author_id": platform.admin.id, "text": "The truth was corrected."}
    with platform.database.write() as session:
        session.add(Announcement(title="Before mail was on", **about))
    outbox.switch(platform.database, True)
    with platform.database.write() as session:
        session.add(Announcement(title="News", **about))
    assert notices.collect(platform.database) == 2 and notices.collect(platform.database) == 0
    assert waiting(platform) == [("announcement", "ada"), ("announcement", "bob")]


def test_a_link_in_the_mail_turns_it_off(small_platform: Platform):
    database, ada = small_platform.database, small_platform.person("ada")
    client = TestClient(create_app(database, small_platform.storage))
    path = f"/notices/{topics.stop_key(database, ada.id, 'runs')}"
    page = client.get(path).text
    assert TOPICS["runs"] in page
    with database.read() as session:
        assert topics.muted_by(session, ada.id) == set()  # looking does nothing
    csrf = re.search(r'name="csrf" value="([0-9a-f]+)"', page)[1]
    for _ in range(2):
        assert "no more of these" in client.post(path, data={"csrf": csrf}).text
    with database.read() as session:
        assert topics.muted_by(session, ada.id) == {"runs"}
    other = small_platform.person("eve")
    for forged in (path.replace(f"/{ada.id}-", f"/{other.id}-"), path.replace("-runs-", "-phases-"), path + "0"):
        assert client.get(forged).status_code == 404
        with pytest.raises(NotThereError):
            topics.stop(database, forged.removeprefix("/notices/"))


def test_notices_are_chosen_through_the_api_as_well(small_platform: Platform):
    client = TestClient(create_app(small_platform.database, small_platform.storage))
    token = accounts.make_token(small_platform.database, small_platform.person("ada"), "all", accounts.SCOPES)
    headers = {"authorization": f"Bearer {token}"}
    told = client.get("/api/v1/me/notices", headers=headers).json()
    assert told["wanted"] == list(TOPICS) and not told["mail"] and not told["email_verified"]
    told = client.post("/api/v1/me/notices", headers=headers, data={"wanted": ["phases"]}).json()
    assert told["wanted"] == ["phases"]
    answer = client.post("/api/v1/me/notices", headers=headers, data={"wanted": ["everything"]})
    assert answer.status_code == 400 and "no notices called 'everything'" in answer.json()["error"]
    assert client.post("/api/v1/me/notices", headers=headers).json()["wanted"] == []
    admin = accounts.make_token(small_platform.database, small_platform.admin, "all", accounts.SCOPES)
    told = client.get("/api/v1/mail", headers={"authorization": f"Bearer {admin}"}).json()
    assert told == {"since": None, "waiting": 0, "sent": 0, "dropped": 0}


def test_a_restored_backup_does_not_send_what_waited(small_platform: Platform, tmp_path):
    outbox.switch(small_platform.database, True)
    with small_platform.database.write() as session:
        outbox.put(session, "trial", {}, user_id=small_platform.admin.id)
    backup.backup(small_platform.database, small_platform.storage, tmp_path / "all.zip")
    restored = Database(f"sqlite:///{tmp_path / 'restored.sqlite'}")
    backup.restore(restored, Storage(tmp_path / "restored"), tmp_path / "all.zip")
    assert outbox.take(restored) is None and outbox.take(small_platform.database) is not None
    restored.close()
