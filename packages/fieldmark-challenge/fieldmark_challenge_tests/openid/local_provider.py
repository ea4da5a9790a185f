"""Providers that listen on a port of their own: OpenID Connect with keys of its own, and one that speaks like GitHub.

What they sign can be bent, as an attacker would.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

from fieldmark_challenge.openid.providers import Provider

CLIENT, SECRET = "fieldmark at the test", "a secret: of/ours"


def new_key(kid: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})


@dataclass
class LocalProvider:
    """Whom it takes people for, and how it misbehaves."""

    key: RSAKey
    url: str = ""
    person: dict[str, Any] = field(default_factory=lambda: {"sub": "0000-0001", "name": "Ada Lovelace"})
    claims: dict[str, Any] = field(default_factory=dict)  # instead of the right ones
    sign: str = "right"
    key_shown: bool = True
    emails: list[dict[str, Any]] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def settings(self, **changes: Any) -> Provider:
        given = {"name": "local", "title": "Local", "kind": "oidc", "issuer": self.url, "client_id": CLIENT}
        return Provider(**given | {"client_secret": SECRET} | changes)

    def github(self, **changes: Any) -> Provider:
        places = {"authorize_url": f"{self.url}/authorize", "token_url": f"{self.url}/token", "api_url": self.url}
        scopes = ("read:user", "user:email")
        given = {"name": "github", "title": "GitHub", "kind": "github", "scopes": scopes, "trust_email": True}
        return self.settings(**given | places | changes)

    def answer(self, verb: str, path: str, fields: dict[str, str], headers: Any) -> tuple[int, Any]:
        self.asked.append(path)
        if path == "/.well-known/openid-configuration":
            places = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
            places |= {"userinfo_endpoint": "userinfo"}
            return 200, {"issuer": self.url} | {k: f"{self.url}/{v}" for k, v in places.items()} | self.about
        if path == "/keys":
            shown = [self.key.as_dict(private=False)] if self.key_shown else []
            return 200, {"keys": [{"kty": "oct", "kid": "shared", "k": "c2VjcmV0"}, *shown, {"kty": "new"}]}
        if path == "/authorize":
            code = secrets.token_urlsafe(16)
            self.codes[code] = fields
            return 303, f"{fields['redirect_uri']}?{urlencode({'code': code, 'state': fields['state']})}"
        if path == "/token" and verb == "POST":
            return self._token(fields, headers)
        if path in ("/user", "/user/emails", "/userinfo") and headers["authorization"] == "Bearer good":
            return 200, self.emails if path == "/user/emails" else self.person
        return 404, {}

    def _token(self, fields: dict[str, str], headers: Any) -> tuple[int, Any]:
        asked = self.codes.pop(fields.get("code", ""), None)  # a code is good once
        given = (fields.get("client_id"), fields.get("client_secret"))
        if basic := headers.get("authorization", "").removeprefix("Basic "):
            user, _, password = base64.b64decode(basic).decode().partition(":")
            given = tuple(next(iter(parse_qs(f"x={one}").values()))[0] for one in (user, password))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(fields.get("code_verifier", "").encode()).digest())
        right = asked is not None and given == (CLIENT, SECRET) and asked["redirect_uri"] == fields["redirect_uri"]
        if not right or asked["code_challenge"] != challenge.rstrip(b"=").decode():
            return 400, {"error": "invalid_grant"}
        return 200, {"access_token": "good", "token_type": "Bearer", "id_token": self._signed(asked.get("nonce"))}

    def _signed(self, nonce: str | None) -> str:
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": nonce}
        claims |= {name: value for name, value in self.person.items() if name != "id"} | self.claims
        claims = {name: value for name, value in claims.items() if value is not None}
        header = {"alg": "RS256", "kid": self.key.kid}
        if self.sign == "none":
            parts = [json.dumps({"alg": "none"}), json.dumps(claims)]
            return ".".join(base64.urlsafe_b64encode(p.encode()).rstrip(b"=").decode() for p in parts) + "."
        if self.sign == "hmac":  # with what everybody knows as the secret
            parts = [json.dumps({"alg": "HS256", "kid": self.key.kid}), json.dumps(claims)]
            told = ".".join(base64.urlsafe_b64encode(p.encode()).rstrip(b"=").decode() for p in parts)
            proof = hmac.new(self.key.as_pem(private=False), told.encode(), hashlib.sha256).digest()
            return f"{told}.{base64.urlsafe_b64encode(proof).rstrip(b'=').decode()}"
        if self.sign == "other key":
            return jwt.encode(header, claims, new_key(str(self.key.kid)))
        if self.sign == "changed":
            head, _, signature = jwt.encode(header, claims, self.key).split(".")
            other = base64.urlsafe_b64encode(json.dumps(claims | {"sub": "somebody else"}).encode())
            return ".".join([head, other.rstrip(b"=").decode(), signature])
        if self.sign == "no kid":
            return jwt.encode({"alg": "RS256"}, claims, self.key)
        return jwt.encode(header, claims, self.key)


@contextmanager
def listening(provider: LocalProvider) -> Iterator[LocalProvider]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(urlsplit(self.path).query)

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["content-length"])).decode())

        def _answer(self, text: str) -> None:
            fields = {name: values[0] for name, values in parse_qs(text).items()}
            status, content = provider.answer(self.command, urlsplit(self.path).path, fields, self.headers)
            self.send_response(status)
            if status == 303:
                self.send_header("location", content)
                content = {}
            body = json.dumps(content).encode()
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    provider.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
