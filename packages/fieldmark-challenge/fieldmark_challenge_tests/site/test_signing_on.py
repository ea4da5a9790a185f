"""Signing in through providers that listen, honest ones and others."""

from __future__ import annotations

import datetime as dt
import logging
import re
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc.jwk import RSAKey
from starlette.testclient import TestClient

from fieldmark.web.refusals import ConflictError
from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.openid import attempts, identities, provider_client
from fieldmark_challenge.openid.offer import make_sign_on
from fieldmark_challenge.openid.provider_client import Identity
from fieldmark_challenge.people import accounts
from fieldmark_challenge.records.identity_schema import LinkedIdentity, SignOnAttempt
from fieldmark_challenge.records.schema import Base, User, WebSession, utc_now
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests.openid.local_provider import CLIENT, SECRET, LocalProvider, listening, new_key
from fieldmark_challenge_tests.platform import PASSWORD, Platform

URL = "https://fieldmark.example"
ADA = {"sub": "0000-0001", "name": "Ada Lovelace", "email": "ada@example.org", "email_verified": True}


@pytest.fixture(scope="module")
def key() -> RSAKey:
    return new_key("one")


@pytest.fixture
def provider(key: RSAKey) -> Iterator[LocalProvider]:
    with listening(LocalProvider(key)) as here:
        yield here


def browser(platform: Platform, *providers: Any) -> TestClient:
    """A browser of its own, at the same server as others with the same providers."""
    apps: dict[Any, Any] = platform.__dict__.setdefault("apps", {})
    if providers not in apps:
        apps[providers] = create_app(platform.database, platform.storage, public_url=URL, providers=providers)
    app = apps[providers]
    return TestClient(app, base_url=URL, follow_redirects=False, raise_server_exceptions=False)


def csrf(client: TestClient, page: str = "/login") -> str:
    return re.search(r'name="csrf" value="([0-9a-f]+)"', client.get(page).text)[1]


def way_back(start: Any) -> str:
    """Goes to the provider, who sends people back: the path and query of the address."""
    assert start.status_code == 303, start.text
    there = httpx.get(start.headers["location"], follow_redirects=False)
    parts = urlsplit(there.headers["location"])
    assert f"{parts.scheme}://{parts.netloc}" == URL
    return f"{parts.path}?{parts.query}"


def come_in(client: TestClient, name: str = "local", target: str = "/c/tiny"):
    return client.get(way_back(client.get(f"/sign-on/{name}", params={"next": target})))


def finish(client: TestClient, page: Any, **fields: str):
    sealed = re.search(r'name="sealed" value="([^"]+)"', page.text)[1]
    return client.post("/sign-on/finish", data={"csrf": csrf(client), "sealed": sealed, **fields})


def who_is(platform: Platform, client: TestClient) -> str | None:
    user = accounts.session_user(platform.database, client.cookies.get(SESSION_COOKIE, ""))
    return user.name if user else None


def sign_in(client: TestClient, name: str) -> None:
    assert client.post("/login", data={"csrf": csrf(client), "who": name, "password": PASSWORD}).status_code == 303


def begin_linking(client: TestClient, name: str = "local") -> str:
    page = client.post(f"/account/identities/{name}", data={"csrf": csrf(client, "/account")})
    address = re.search(r'class="button" href="([^"]+)"', page.text)[1].replace("&amp;", "&")
    return way_back(httpx.Response(303, headers={"location": address}))


def nobody_came_in(platform: Platform) -> bool:
    with platform.database.read() as session:
        return session.query(WebSession).count() == 0 == session.query(LinkedIdentity).count()


def test_somebody_new_makes_an_account_and_comes_back_to_it(platform, provider):
    client = browser(platform, provider.settings())
    assert "Local" in client.get("/login?next=/c/tiny").text
    page = come_in(client)
    assert page.status_code == 200 and "Ada Lovelace" in page.text
    answer = finish(client, page, name="Ada", email="ada@example.org")
    assert answer.headers["location"] == "/c/tiny?done=registered" and who_is(platform, client) == "Ada"
    with platform.database.read() as session:
        user = session.query(User).filter_by(name="Ada").one()
        assert user.email_verified_at is None and user.password_hash == ""
        stored = "\n".join(str(r) for table in Base.metadata.sorted_tables for r in session.execute(table.select()))
    with pytest.raises(Exception, match="rong name or password"):
        accounts.sign_in(platform.database, "Ada", "")
    other = browser(platform, provider.settings())
    assert come_in(other).headers["location"] == "/c/tiny" and who_is(platform, other) == "Ada"
    for secret in ("good", SECRET, client.cookies["fieldmark_sign_on"], client.cookies[SESSION_COOKIE]):
        assert secret not in stored
    with pytest.raises(ConflictError, match="only way into"):  # an account keeps a way in
        identities.unlink(platform.database, user, identities_of(platform, user)[0].id)


def identities_of(platform: Platform, user: User) -> list[LinkedIdentity]:
    with platform.database.read() as session:
        return identities.identities_of(session, user.id)


NOW = int(time.time())
# What is wrong with the answer, and what the log says about it.
BENT: dict[str, tuple[dict[str, Any], str]] = {
    "wrong signature": ({"sign": "other key"}, "the signature does not hold"),
    "changed after it was signed": ({"sign": "changed"}, "the signature does not hold"),
    "alg none": ({"sign": "none"}, "signed by 'none'"),
    "the public key as a shared secret": ({"sign": "hmac"}, "signed by 'HS256'"),
    "key not listed": ({"key_shown": False}, "a key that the provider does not list"),
    "wrong nonce": ({"claims": {"nonce": "another"}}, "an answer to another question"),
    "no nonce": ({"claims": {"nonce": None}}, "an answer to another question"),
    "other issuer": ({"claims": {"iss": "https://evil.example"}}, "made by another issuer"),
    "other audience": ({"claims": {"aud": "somebody else"}}, "made for somebody else"),
    "among others, not asked by us": ({"claims": {"aud": [CLIENT, "x"], "azp": "x"}}, "asked for by somebody else"),
    "among others, not said by whom": ({"claims": {"aud": [CLIENT, "x"]}}, "asked for by somebody else"),
    "expired": ({"claims": {"exp": NOW - 3600}}, "expired"),
    "without an end": ({"claims": {"exp": None}}, "without exp"),
    "end that is no number": ({"claims": {"exp": True}}, "without exp"),
    "from the future": ({"claims": {"iat": NOW + 36000}}, "from the future"),
    "without a subject": ({"claims": {"sub": None}}, "without a subject"),
    "subject that is no text": ({"claims": {"sub": 7}}, "without a subject"),
    "describes another issuer": ({"about": {"issuer": "https://evil.example"}}, "is about another issuer"),
    "sends the secret in the clear": ({"about": {"token_endpoint": "http://evil.example/t"}}, "begins with https"),
}


def test_an_answer_that_proves_nothing_opens_nothing(small_platform, provider, caplog):
    caplog.set_level(logging.DEBUG)
    small_platform.person("ada")
    provider.person = ADA
    client = browser(small_platform, provider.settings(trust_email=True))
    right = dict(vars(provider))
    for how, (bent, reason) in BENT.items():
        vars(provider).update(right | bent)
        client.app.state.sign_on = make_sign_on([provider.settings(trust_email=True)], URL)
        caplog.clear()
        start = client.get("/sign-on/local")
        answer = client.get(way_back(start)) if start.status_code == 303 else start
        assert answer.status_code == 400 and "did not work" in answer.text, how
        told = [record.getMessage() for record in caplog.records if record.name.startswith("fieldmark")]
        assert any("signing in through local failed" in line and reason in line for line in told), (how, told)
        assert not any(secret in line for line in told for secret in (SECRET, "good", "code="))
        assert nobody_came_in(small_platform), how


def test_a_token_need_not_name_its_key(small_platform, provider):
    provider.sign = "no kid"
    assert come_in(browser(small_platform, provider.settings())).status_code == 200


def test_new_keys_of_a_provider_are_fetched(small_platform, provider, monkeypatch):
    client = browser(small_platform, provider.settings())
    assert come_in(client).status_code == 200
    provider.key = new_key("two")
    assert come_in(client).status_code == 400  # asked a moment ago: whoever makes up keys makes us ask once a minute
    monkeypatch.setattr(provider_client, "AGAIN_S", 0.0)
    assert come_in(client).status_code == 200
    assert provider.asked.count("/.well-known/openid-configuration") == 1


def test_a_state_is_good_once_in_one_browser_at_one_provider_for_a_while(platform, provider):
    client, other = browser(platform, provider.settings()), browser(platform, provider.settings())
    back = way_back(client.get("/sign-on/local"))
    assert other.get(back).status_code == 400  # another browser, without a cookie
    assert client.get(back).status_code == 400  # and with that it was used
    back = way_back(client.get("/sign-on/local"))
    assert client.get(back).status_code == 200
    assert client.get(back).status_code == 400  # replayed
    other.get("/sign-on/local")  # has a cookie of its own now
    assert other.get(way_back(client.get("/sign-on/local"))).status_code == 400
    back = way_back(client.get("/sign-on/local"))
    with platform.database.write() as session:
        session.query(SignOnAttempt).update({"expires_at": utc_now() - dt.timedelta(seconds=1)})
    assert client.get(back).status_code == 400
    for query in ("", "?state=x", "?code=x&state=" + "y" * 5000, "?error=access_denied&state=x"):
        assert client.get(f"/sign-on/local/callback{query}").status_code == 400
    both = browser(platform, provider.settings(), provider.github())
    back = way_back(both.get("/sign-on/local"))
    assert both.get(back.replace("/local/", "/github/")).status_code == 400  # a code of one for the other
    back = way_back(both.get("/sign-on/local"))
    assert both.get(back + "&iss=https://evil.example").status_code == 400
    assert nobody_came_in(platform)


def test_a_code_is_of_no_use_without_what_stays_with_us(small_platform, provider):
    client = browser(small_platform, provider.settings())
    back = way_back(client.get("/sign-on/local"))
    stolen = parse_qs(urlsplit(back).query)["code"][0]
    asked = provider.codes[stolen]
    assert asked["code_challenge_method"] == "S256" and len(asked["code_challenge"]) == 43
    other = browser(small_platform, provider.settings())
    own = way_back(other.get("/sign-on/local"))
    swapped = own.replace(parse_qs(urlsplit(own).query)["code"][0], stolen)
    assert other.get(swapped).status_code == 400  # the code of somebody else, in one's own browser
    assert nobody_came_in(small_platform)


def test_an_address_opens_an_account_only_where_both_sides_have_verified_it(small_platform, provider):
    platform = small_platform
    platform.person("ada")
    trusted = provider.settings(trust_email=True)
    provider.person = ADA
    page = come_in(browser(platform, trusted))  # anybody may have registered that address here
    assert page.status_code == 409 and "Sign in to it with its password" in page.text
    with platform.database.write() as session:
        session.query(User).filter_by(name="ada").update({"email_verified_at": utc_now()})
    for person, settings in (
        (ADA | {"email_verified": False}, trusted),
        (ADA | {"email_verified": "true"}, trusted),
        (ADA, provider.settings()),
    ):
        provider.person = person
        client = browser(platform, settings)
        page = come_in(client)
        assert page.status_code == 200 and nobody_came_in(platform)
        assert "exists" in finish(client, page, name="Eve", email="ada@example.org").text
    provider.person = ADA
    client = browser(platform, trusted)
    assert come_in(client).headers["location"] == "/c/tiny" and who_is(platform, client) == "ada"
    provider.person = ADA | {"email": "other@example.org", "email_verified": False}
    assert come_in(client).headers["location"] == "/c/tiny"  # from then on it is the identity that counts


def test_an_identity_is_linked_by_the_owner_of_the_account(small_platform, provider):
    platform = small_platform
    for name in ("ada", "eve"):
        platform.person(name)
    client = browser(platform, provider.settings())
    sign_in(client, "ada")
    assert client.get(begin_linking(client)).headers["location"] == "/account?done=linked"
    assert "0000-0001" in client.get("/account").text
    fresh = browser(platform, provider.settings())
    come_in(fresh)
    assert who_is(platform, fresh) == "ada"
    eve = browser(platform, provider.settings())
    sign_in(eve, "eve")
    assert "belongs to another account" in eve.get(begin_linking(eve)).text
    back = begin_linking(eve)
    sign_in(eve, "ada")  # another account by the time they come back
    assert eve.get(back).status_code == 400
    assert client.post("/account/identities/local", data={"csrf": "0" * 64}).status_code == 403
    number = identities_of(platform, platform.people["ada"])[0].id
    token = {"csrf": csrf(client, "/account")}
    assert client.post(f"/account/identities/{number}/remove", data=token).headers["location"].endswith("unlinked")
    assert identities_of(platform, platform.people["ada"]) == []


def test_github_tells_who_somebody_is_by_its_own_address(small_platform, provider):
    platform = small_platform
    provider.person = {"id": 583231, "login": "octocat", "name": "The Octocat"}
    provider.emails = [
        {"email": "old@example.org", "primary": False, "verified": True},
        {"email": "octocat@example.org", "primary": True, "verified": True},
    ]
    client = browser(platform, provider.github())
    page = come_in(client, "github")
    assert "octocat@example.org" in page.text and "The Octocat" in page.text
    answer = finish(client, page, name="Octocat", email="somebody.else@example.org")
    assert answer.status_code == 303 and who_is(platform, client) == "Octocat"
    with platform.database.read() as session:
        user = session.query(User).filter_by(name="Octocat").one()
        assert (user.email, user.email_verified_at is not None) == ("octocat@example.org", True)
        assert session.query(LinkedIdentity).one().subject == "583231"
    provider.person = {"id": 583231, "login": "renamed"}
    assert who_is(platform, client) == "Octocat" and come_in(client, "github").status_code == 303
    for person in ({"id": "583231"}, {"id": True}, {}):
        provider.person = person
        assert come_in(browser(platform, provider.github()), "github").status_code == 400


def test_what_was_proven_cannot_be_changed_on_the_way(small_platform):
    database, identity = small_platform.database, Identity("https://orcid.org", "0000-0001", "0000-0001")
    sealed = attempts.seal(database, identity, "cookie", "/c/tiny")
    assert attempts.unseal(database, sealed, "cookie") == (identity, "/c/tiny")
    for text, cookie in ((sealed, "other"), (sealed, ""), ("x" + sealed, "cookie"), (sealed[:-2], "cookie"), ("", "")):
        with pytest.raises(attempts.FailedSignOnError):
            attempts.unseal(database, text, cookie)


def test_a_dead_provider_is_said_in_one_sentence(small_platform, provider):
    gone = provider.settings(issuer="http://127.0.0.1:9")
    answer = browser(small_platform, gone).get("/sign-on/local")
    assert answer.status_code == 400 and "did not work" in answer.text
    assert browser(small_platform, provider.settings()).get("/sign-on/elsewhere").status_code == 404
    assert TestClient(create_app(small_platform.database, small_platform.storage)).get("/sign-on/x").status_code == 404
