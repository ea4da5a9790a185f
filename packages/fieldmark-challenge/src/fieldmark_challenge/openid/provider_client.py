"""Asking a provider: where it is, which keys it signs with, and who stands behind a code."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import httpx
from joserfc.errors import JoseError
from joserfc.jwk import Key, import_key

from fieldmark.errors import InputError
from fieldmark_challenge.openid.providers import Provider, check_address
from fieldmark_challenge.openid.tokens import BadTokenError, UnknownKeyError, read_id_token
from fieldmark_challenge.people.names import EMAIL

TIMEOUT_S = 10.0
LARGEST = 1 << 20
# How long what a provider says about itself is believed, and how soon it may be asked again for new keys.
KEPT_S, AGAIN_S = 3600.0, 60.0


class ProviderError(Exception):
    """A provider that does not answer as it should; the reason goes to the log and to nobody else."""


@dataclass(frozen=True)
class Identity:
    """Who somebody is to a provider.

    Args:
        issuer: The provider.
        subject: What it calls them, for good.
        shown: What they know it by.
        name: What they are called.
        email: Their address, if the provider tells.
        email_verified: Whether the provider has verified it, and is trusted to.
    """

    issuer: str
    subject: str
    shown: str
    name: str = ""
    email: str = ""
    email_verified: bool = False


class Asker:
    """Asks one provider.

    Args:
        provider: Which.
        redirect_uri: Where it sends people back to.
    """

    def __init__(self, provider: Provider, redirect_uri: str) -> None:
        self.provider, self.redirect_uri = provider, redirect_uri
        self._lock = threading.Lock()
        self._about: dict[str, Any] = {}
        self._keys: list[Key] | None = None
        self._about_until = self._keys_until = self._keys_from = 0.0

    def address(self, *, state: str, nonce: str, challenge: str) -> str:
        """Where somebody goes to say who they are.

        Args:
            state: What ties the answer to the browser.
            nonce: What ties the token to the question.
            challenge: What ties the code to us (PKCE).
        """
        asked = {
            "response_type": "code",
            "client_id": self.provider.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": " ".join(self.provider.scopes),
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        if self.provider.kind == "github":
            return f"{self.provider.authorize_url}?{urlencode(asked)}"
        base = self._endpoint("authorization_endpoint")
        return f"{base}{'&' if '?' in base else '?'}{urlencode(asked | {'nonce': nonce})}"

    def identity(self, code: str, *, nonce: str, verifier: str) -> Identity:
        """Who stands behind a code.

        Raises:
            ProviderError: When the provider does not answer as it should.
            BadTokenError: When its answer proves nothing.
        """
        with httpx.Client(timeout=TIMEOUT_S, follow_redirects=False) as client:
            given = self._tokens(client, code, verifier)
            if self.provider.kind == "github":
                return self._of_github(client, given)
            return self._of_token(client, given, nonce)

    def _tokens(self, client: httpx.Client, code: str, verifier: str) -> dict[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect_uri,
            "client_id": self.provider.client_id,
            "code_verifier": verifier,
        }
        if self.provider.kind == "github":
            address, basic = self.provider.token_url, False
        else:
            address = self._endpoint("token_endpoint")
            ways = self._described().get("token_endpoint_auth_methods_supported")
            basic = not isinstance(ways, list) or "client_secret_post" not in ways
        secret = self.provider.client_secret
        request = client.build_request(
            "POST",
            address,
            data=form if basic else form | {"client_secret": secret},
            headers={"accept": "application/json"},
        )
        auth = httpx.BasicAuth(_quoted(self.provider.client_id), _quoted(secret)) if basic else None
        given = _answer(client, request, auth)
        if not isinstance(given, dict) or "error" in given:
            raise ProviderError("it does not take the code")
        return given

    def _of_token(self, client: httpx.Client, given: dict[str, Any], nonce: str) -> Identity:
        claims = self._claims(given.get("id_token"), nonce)
        subject = str(claims["sub"])
        about = self._described().get("userinfo_endpoint")
        if "email" not in claims and "email" in self.provider.scopes and about and given.get("access_token"):
            more = _asked(client, self._endpoint("userinfo_endpoint"), str(given["access_token"]))
            if not isinstance(more, dict) or more.get("sub") != subject:
                raise ProviderError("it says something about somebody else")
            claims = {**more, **claims}
        email = claims.get("email")
        return Identity(
            issuer=self.provider.issuer,
            subject=subject,
            shown=_text(claims.get("preferred_username")) or subject[:100],
            name=_text(claims.get("name")) or _text(claims.get("preferred_username")),
            email=email if isinstance(email, str) and EMAIL.fullmatch(email) else "",
            email_verified=self.provider.trust_email and claims.get("email_verified") is True,
        )

    def _claims(self, token: object, nonce: str) -> dict[str, Any]:
        issuer, client_id = self.provider.issuer, self.provider.client_id
        try:
            return read_id_token(token, self._listed_keys(), issuer=issuer, client_id=client_id, nonce=nonce)
        except UnknownKeyError:  # it may have got new ones
            keys = self._listed_keys(fresh=True)
            return read_id_token(token, keys, issuer=issuer, client_id=client_id, nonce=nonce)

    def _of_github(self, client: httpx.Client, given: dict[str, Any]) -> Identity:
        token = given.get("access_token")
        if not isinstance(token, str) or not token:
            raise ProviderError("it gives no token")
        person = _asked(client, f"{self.provider.api_url}/user", token)
        number = person.get("id") if isinstance(person, dict) else None
        if not isinstance(number, int) or isinstance(number, bool):
            raise ProviderError("it does not say who that is")
        email, verified = "", False
        if "user:email" in self.provider.scopes:
            listed = _asked(client, f"{self.provider.api_url}/user/emails", token)
            for one in listed if isinstance(listed, list) else ():
                if isinstance(one, dict) and one.get("primary") is True and isinstance(one.get("email"), str):
                    email = one["email"] if EMAIL.fullmatch(one["email"]) else ""
                    verified = one.get("verified") is True
        login = _text(person.get("login"))
        return Identity(
            issuer=self.provider.issuer,
            subject=str(number),
            shown=login or str(number),
            name=_text(person.get("name")) or login,
            email=email,
            email_verified=bool(email) and verified and self.provider.trust_email,
        )

    def _described(self) -> dict[str, Any]:
        """What the provider says about itself, asked once an hour."""
        with self._lock:
            if time.monotonic() < self._about_until:
                return self._about
        issuer = self.provider.issuer
        with httpx.Client(timeout=TIMEOUT_S, follow_redirects=False) as client:
            request = client.build_request("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
            about = _answer(client, request)
        if not isinstance(about, dict) or about.get("issuer") != issuer:
            raise ProviderError("what it says about itself is about another issuer")
        with self._lock:
            self._about, self._about_until = about, time.monotonic() + KEPT_S
            return about

    def _endpoint(self, name: str) -> str:
        address = self._described().get(name)
        try:
            check_address(str(address), name)
        except InputError as error:
            raise ProviderError(str(error)) from error
        return str(address)

    def _listed_keys(self, *, fresh: bool = False) -> list[Key]:
        with self._lock:
            now = time.monotonic()
            asked = fresh and now >= self._keys_from + AGAIN_S
            if self._keys is not None and not asked and now < self._keys_until:
                return self._keys
        address = self._endpoint("jwks_uri")
        with httpx.Client(timeout=TIMEOUT_S, follow_redirects=False) as client:
            listed = _answer(client, client.build_request("GET", address))
        keys = _public_keys(listed)
        with self._lock:
            self._keys, self._keys_from = keys, time.monotonic()
            self._keys_until = self._keys_from + KEPT_S
            return keys


def _public_keys(listed: Any) -> list[Key]:
    """The keys that signatures can be checked with: no shared secrets, and none that is for something else."""
    found: list[Key] = []
    for one in listed.get("keys", ()) if isinstance(listed, dict) else ():
        if isinstance(one, dict) and one.get("kty") in ("RSA", "EC", "OKP") and one.get("use", "sig") == "sig":
            with suppress(JoseError, ValueError, KeyError, TypeError):  # of a kind that we do not know
                found.append(import_key(one))
    return found


def _asked(client: httpx.Client, address: str, token: str) -> Any:
    headers = {"authorization": f"Bearer {token}", "accept": "application/json"}
    return _answer(client, client.build_request("GET", address, headers=headers))


def _answer(client: httpx.Client, request: httpx.Request, auth: httpx.Auth | None = None) -> Any:
    """What a provider answers, as long as it is JSON and of a sensible size."""
    try:
        answer = client.send(request, stream=True, auth=auth)
        try:
            body = b""
            for piece in answer.iter_bytes():
                body += piece
                if len(body) > LARGEST:
                    raise ProviderError("its answer has no end")
        finally:
            answer.close()
        if answer.status_code != 200:
            raise ProviderError(f"it answers {answer.status_code}")
        return httpx.Response(200, content=body).json()
    except httpx.HTTPError as error:
        raise ProviderError(f"it does not answer ({type(error).__name__})") from error
    except ValueError as error:
        raise ProviderError("its answer is not JSON") from error


def _quoted(text: str) -> str:
    """User and password of HTTP Basic, as OAuth writes them (RFC 6749, 2.3.1)."""
    return urlencode({"": text})[1:]


def _text(value: object) -> str:
    return " ".join(value.split())[:100] if isinstance(value, str) and value.isprintable() else ""


__all__ = ["Asker", "BadTokenError", "Identity", "ProviderError"]
