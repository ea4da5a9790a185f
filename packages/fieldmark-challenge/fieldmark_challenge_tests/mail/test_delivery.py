"""Mail, against a mail server that listens: what arrives, what waits, and what nobody ever sees."""

from __future__ import annotations

import datetime as dt
import logging
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError, TooOftenError
from fieldmark_challenge.mail import addresses, outbox
from fieldmark_challenge.mail.delivery import DropError, Postman
from fieldmark_challenge.mail.mail_settings import MailSettings
from fieldmark_challenge.mail.messages import write_letter
from fieldmark_challenge.people import accounts, rates
from fieldmark_challenge.records.mail_schema import EmailToken, OutgoingMail
from fieldmark_challenge.records.schema import Base, ResetToken, User, utc_now
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests.mail.mail_server import (
    PASSWORD,
    USER,
    Mailbox,
    link_in,
    listening,
    make_certificate,
    plain_settings,
)
from fieldmark_challenge_tests.platform import PASSWORD as OWN_PASSWORD
from fieldmark_challenge_tests.platform import Platform

URL = "https://fieldmark.example"
NEW = "a wholly new password"


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def settings() -> MailSettings:
    return plain_settings()


@pytest.fixture
def server(settings: MailSettings, mailbox: Mailbox) -> Iterator[Mailbox]:
    with listening(settings, mailbox):
        yield mailbox


def postman_of(platform: Platform, settings: MailSettings) -> Postman:
    outbox.switch(platform.database, True)
    return Postman(platform.database, settings, URL)


def mails(platform: Platform) -> list[OutgoingMail]:
    with platform.database.read() as session:
        return session.query(OutgoingMail).order_by(OutgoingMail.id).all()


def due_now(platform: Platform) -> None:
    with platform.database.write() as session:
        session.query(OutgoingMail).update({"next_try_at": utc_now() - dt.timedelta(seconds=1)})


def everything(platform: Platform) -> str:
    with platform.database.read() as session:
        return "\n".join(str(row) for table in Base.metadata.sorted_tables for row in session.execute(table.select()))


def post(client: TestClient, page: str, path: str, **fields: str):
    csrf = re.search(r'name="csrf" value="([0-9a-f]+)"', client.get(page).text)[1]
    return client.post(path, data={"csrf": csrf, **fields}, follow_redirects=False)


def test_an_address_is_verified_by_the_person_who_registered_it(small_platform, settings, server):
    postman = postman_of(small_platform, settings)
    client = TestClient(create_app(small_platform.database, small_platform.storage, public_url=URL), base_url=URL)
    fields = {"name": "Ada", "email": "ada@example.org", "password": OWN_PASSWORD}
    assert post(client, "/register", "/register", **fields).status_code == 303
    assert "not verified" in client.get("/account").text
    assert postman.deliver()
    link = link_in(server.mails[0], "/verify")
    assert server.envelopes == [("challenge@example.org", ("ada@example.org",))]
    assert server.mails[0]["Auto-Submitted"] == "auto-generated" and "Hello Ada" in server.mails[0].get_content()
    assert link.rpartition("/")[2] not in everything(small_platform)
    small_platform.person("eve")
    other = TestClient(client.app, base_url=URL)
    post(other, "/login", "/login", who="eve", password=OWN_PASSWORD)
    assert other.get(link).status_code == 404 and post(other, "/account", link).status_code == 404
    assert client.get(link).status_code == 200
    with small_platform.database.read() as session:  # looking at it, as programs that check mails do, is not enough
        assert session.query(User).filter_by(name="Ada").one().email_verified_at is None
    assert post(client, link, link).headers["location"] == "/account?done=verified"
    assert "(verified)" in client.get("/account").text
    assert client.get(link).status_code == 404


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_mail_goes_encrypted_and_signed_in(small_platform, tmp_path, mailbox, security, caplog):
    caplog.set_level(logging.DEBUG)
    path = make_certificate(tmp_path)
    right = plain_settings(security=security, user=USER, password=PASSWORD, ca_file=path)
    ada = small_platform.person("ada")
    postman = postman_of(small_platform, right)
    addresses.ask_to_verify(small_platform.database, ada)
    with listening(right, mailbox):
        # A server that cannot prove who it is gets neither the password nor the mail.
        assert not Postman(small_platform.database, replace(right, ca_file=None), URL).deliver()
        due_now(small_platform)
        assert not Postman(small_platform.database, replace(right, password="not the one"), URL).deliver()
        assert mailbox.mails == [] and mails(small_platform)[0].attempts == 2
        assert "does not accept the user and password" in mails(small_platform)[0].problem
        due_now(small_platform)
        assert postman.deliver()
    assert [mail["To"] for mail in mailbox.mails] == ["ada@example.org"]
    logged = "".join(record.getMessage() for record in caplog.records if record.name != "mail.log")  # the server's own
    for secret in (PASSWORD, "not the one", link_in(mailbox.mails[0], "/verify").rpartition("/")[2]):
        assert secret not in logged and secret not in repr(right) and secret not in everything(small_platform)


def test_a_reset_link_goes_to_the_person_and_nowhere_else(platform, settings, server, caplog):
    caplog.set_level(logging.DEBUG)
    platform.person("ada")
    postman = postman_of(platform, settings)
    client = TestClient(create_app(platform.database, platform.storage, public_url=URL), base_url=URL)
    answers = [post(client, "/reset", "/reset", who=who).text for who in ("ada", "ada@example.org", "nobody at all")]
    plain = [re.sub(r'value="[^"]*"', "", answer) for answer in answers]
    assert plain[0] == plain[1] == plain[2] and "on its way" in plain[0]
    client.post("/reset", headers={"host": "evil.example"}, data={"who": "ada"})
    assert postman.deliver()
    assert [mail["To"] for mail in server.mails] == ["ada@example.org"] * 2
    assert {row.problem for row in mails(platform) if row.state == "dropped"} == {"there is no such account"}
    assert "nobody" not in everything(platform) and "evil.example" not in str(server.mails[0])
    link = link_in(server.mails[0], "/reset")
    logged = "".join(record.getMessage() for record in caplog.records if record.name not in ("mail.log", "httpx"))
    assert link not in logged and link.rpartition("/")[2] not in everything(platform)
    assert post(client, link, link, password=NEW).headers["location"] == "/login?done=password"
    assert accounts.sign_in(platform.database, "ada", NEW)
    assert client.get(link_in(server.mails[1], "/reset")).status_code == 404  # one was used: all are


def test_a_dead_mail_server_stalls_no_page_and_loses_no_mail(platform, settings, mailbox):
    postman = postman_of(platform, settings)
    client = TestClient(create_app(platform.database, platform.storage, public_url=URL), base_url=URL)
    fields = {"name": "Ada", "email": "ada@example.org", "password": OWN_PASSWORD}
    assert post(client, "/register", "/register", **fields).status_code == 303
    waits = []
    for attempt in (1, 2, 3):
        assert not postman.deliver()
        (row,) = mails(platform)
        assert (row.state, row.attempts) == ("waiting", attempt) and "refused" in row.problem.lower()
        waits.append((row.next_try_at - utc_now()).total_seconds())
        assert postman.deliver() and mails(platform)[0].attempts == attempt  # not due
        due_now(platform)
    assert 0 < waits[0] < waits[1] < waits[2]
    with listening(settings, mailbox):
        assert postman.deliver()
    assert len(mailbox.mails) == 1 and mails(platform)[0].state == "sent" and mails(platform)[0].data == {}


def test_a_server_with_mail_settings_sends_by_itself(small_platform, settings, server):
    ada = small_platform.person("ada")
    app = create_app(small_platform.database, small_platform.storage, public_url=URL, mail=settings)
    with TestClient(app):
        addresses.ask_to_verify(small_platform.database, ada)
        for _ in range(600):
            if server.mails:
                break
            time.sleep(0.1)
    assert link_in(server.mails[0], "/verify")
    with TestClient(create_app(small_platform.database, small_platform.storage, public_url=URL)):
        assert not addresses.ask_to_reset(small_platform.database, "ada")  # started without, it is off


def test_what_is_not_sent_in_time_is_given_up(small_platform, settings, server):
    postman = postman_of(small_platform, settings)
    addresses.ask_to_verify(small_platform.database, small_platform.person("ada"))
    with small_platform.database.write() as session:
        session.query(OutgoingMail).update({"expires_at": utc_now() - dt.timedelta(seconds=1)})
    assert postman.deliver() and server.mails == []
    assert mails(small_platform)[0].problem.startswith("not sent in time")


def test_a_mail_whose_sender_was_killed_is_sent_by_the_next_one(platform, settings, server):
    postman = postman_of(platform, settings)
    addresses.ask_to_verify(platform.database, platform.person("ada"))
    taken = outbox.take(platform.database)  # and here its process ends
    first = postman.compose(taken)
    assert outbox.take(platform.database) is None and postman.deliver() and server.mails == []
    due_now(platform)  # the lease is over
    assert postman.deliver()
    assert [mail["Message-ID"] for mail in server.mails] == [first["Message-ID"]]
    assert not outbox.settle(platform.database, taken, problem="too late")
    assert not outbox.postpone(platform.database, taken, "too late")
    assert mails(platform)[0].state == "sent"


def test_two_servers_send_each_mail_once(platform, settings, server):
    postman = postman_of(platform, settings)
    ada = platform.person("ada")
    with platform.database.write() as session:
        for number in range(20):
            outbox.put(session, "trial", {}, user_id=ada.id, once=f"trial {number}")
            assert not outbox.put(session, "trial", {}, user_id=ada.id, once=f"trial {number}")
    threads = [threading.Thread(target=postman.deliver) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.mails) == len({mail["Message-ID"] for mail in server.mails}) == 20
    assert {row.state for row in mails(platform)} == {"sent"}


def test_an_address_that_is_refused_for_good_is_not_tried_again(small_platform, settings, server):
    postman = postman_of(small_platform, settings)
    server.refuse = {"ada@example.org": "550 no such person", "bob@example.org": "451 come again"}
    for name in ("ada", "bob", "cyd"):
        addresses.ask_to_verify(small_platform.database, small_platform.person(name))
    assert postman.deliver()
    told = {row.address: (row.state, row.problem) for row in mails(small_platform)}
    assert told["ada@example.org"] == ("dropped", "550 no such person")
    assert told["bob@example.org"] == ("waiting", "451 come again")
    assert told["cyd@example.org"][0] == "sent" and len(server.mails) == 1


@pytest.mark.parametrize("text", ["a\nBcc: all@example.org", "a\r\n\r\nBuy", "a\u2028Bcc: x", "a\x0bb\x85c"])
def test_nothing_that_people_type_becomes_a_header(small_platform, settings, server, text):
    about = {"challenge": text, "slug": "tiny", "subject": text, "text": text}
    letter = write_letter("announcement", about, URL, name=text)
    assert len(letter.subject.splitlines()) == 1
    for wrong in (f"{text}@example.org", f"ada@example.org{text}", "ada@example.org, eve@example.org"):
        with pytest.raises(RefusalError):
            accounts.register(small_platform.database, "Ada", wrong, OWN_PASSWORD)
    postman = postman_of(small_platform, settings)
    ada = small_platform.person("ada")
    with small_platform.database.write() as session:
        session.get_one(User, ada.id).email_verified_at = utc_now()
        outbox.put(session, "announcement", about, user_id=ada.id)
        outbox.put(session, "trial", {}, user_id=ada.id, address=f"ada@example.org{text}")
    assert postman.deliver()
    (mail,) = server.mails
    assert server.envelopes[0][1] == ("ada@example.org",)
    names = ["From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "List-Unsubscribe"]
    assert set(mail.keys()) <= {*names, "Content-Type", "Content-Transfer-Encoding", "MIME-Version", "X-Peer"} | {
        "X-MailFrom",
        "X-RcptTo",
    }
    assert mails(small_platform)[1].problem == "the address is none"


def test_one_address_gets_so_many_mails_and_no_more(small_platform, settings, server):
    postman = postman_of(small_platform, settings)
    ada = small_platform.person("ada")
    for _ in range(rates.MAIL_TO.limit):
        addresses.ask_to_verify(small_platform.database, ada)
    with pytest.raises(TooOftenError):
        addresses.ask_to_verify(small_platform.database, ada)
    addresses.ask_to_reset(small_platform.database, "ada")  # nobody is told whether it comes
    assert postman.deliver()
    assert len(server.mails) == rates.MAIL_TO.limit
    with small_platform.database.read() as session:
        assert session.query(ResetToken).count() == 0
        assert session.query(EmailToken).count() == rates.MAIL_TO.limit


def test_an_address_changes_when_the_new_one_is_proven(small_platform, settings, server):
    database, postman = small_platform.database, postman_of(small_platform, settings)
    ada, bob = small_platform.person("ada"), small_platform.person("bob")
    with pytest.raises(RefusalError, match="password"):
        addresses.change_address(database, ada, "ada@new.example.org", "wrong")
    with pytest.raises(RefusalError, match="cannot be used"):
        addresses.change_address(database, ada, bob.email, OWN_PASSWORD)
    assert addresses.change_address(database, ada, "Ada@New.example.org", OWN_PASSWORD)
    postman.deliver()
    secret = link_in(server.to("ada@new.example.org")[0], "/verify").rpartition("/")[2]
    with database.write() as session:  # somebody takes the address meanwhile
        session.get_one(User, bob.id).email = "ada@new.example.org"
    with pytest.raises(ConflictError):
        addresses.verify(database, ada, secret)
    with database.write() as session:
        session.get_one(User, bob.id).email = "bob@example.org"
    with pytest.raises(NotThereError):
        addresses.verify(database, bob, secret)
    assert addresses.verify(database, ada, secret) == "ada@new.example.org"
    postman.deliver()
    assert "ada@new.example.org" in server.to("ada@example.org")[0].get_content()  # the old address is told
    with pytest.raises(NotThereError):
        addresses.verify(database, ada, secret)


def test_without_a_mail_server_nothing_waits_for_one(small_platform):
    ada = small_platform.person("ada")
    outbox.switch(small_platform.database, True)
    outbox.switch(small_platform.database, False)
    with pytest.raises(ConflictError, match="no e-mail"):
        addresses.ask_to_verify(small_platform.database, ada)
    assert not addresses.ask_to_reset(small_platform.database, "ada")
    assert not addresses.change_address(small_platform.database, ada, "a@example.com", OWN_PASSWORD)
    assert mails(small_platform) == []
    client = TestClient(create_app(small_platform.database, small_platform.storage))
    assert "Ask the people who run this server" in post(client, "/reset", "/reset", who="ada").text


def test_closed_accounts_get_no_mail(small_platform, settings):
    postman = postman_of(small_platform, settings)
    ada = small_platform.person("ada")
    addresses.ask_to_verify(small_platform.database, ada)
    accounts.set_disabled(small_platform.database, small_platform.admin, ada.id, True)
    with pytest.raises(DropError, match="no such account"):
        postman.compose(outbox.take(small_platform.database))
