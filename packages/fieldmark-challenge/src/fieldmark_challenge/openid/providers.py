"""Whom people may sign in through: ORCID and GitHub by name, any other OpenID Connect provider by its issuer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from fieldmark.errors import InputError

ProviderKind = Literal["oidc", "github"]
NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")
KEYS = ("title", "issuer", "client_id", "client_secret", "client_secret_file", "scopes", "trust_email")
KEYS_OF_GITHUB = ("authorize_url", "token_url", "api_url")
LOCAL = ("localhost", "127.0.0.1", "::1")
# Each with what its settings may leave out.
KNOWN: dict[str, dict[str, Any]] = {
    "orcid": {"title": "ORCID", "issuer": "https://orcid.org", "scopes": ("openid",)},
    "github": {
        "title": "GitHub",
        "issuer": "https://github.com",
        "scopes": ("read:user", "user:email"),
        "authorize_url": "https://github.com/login/oauth/authorize",
        "token_url": "https://github.com/login/oauth/access_token",
        "api_url": "https://api.github.com",
        "trust_email": True,
    },
}


@dataclass(frozen=True)
class Provider:
    """Whom people may sign in through.

    Args:
        name: How it is called in addresses.
        title: How it is called on pages.
        kind: OpenID Connect, or GitHub, which is OAuth 2 with an address that says who somebody is.
        issuer: Who vouches: identities are kept under it, whatever the name.
        client_id, client_secret: Who we are to it.
        scopes: What we ask for.
        trust_email: Whether an address that it calls verified lets somebody into an account with that address.
        authorize_url, token_url, api_url: Where GitHub is; others tell by themselves.
    """

    name: str
    title: str
    kind: ProviderKind
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    scopes: tuple[str, ...] = ("openid", "email", "profile")
    trust_email: bool = False
    authorize_url: str = ""
    token_url: str = ""
    api_url: str = ""


def read_providers(tables: Mapping[str, Any], environment: Mapping[str, str], where: object) -> tuple[Provider, ...]:
    """The providers of the settings file.

    Args:
        tables: The tables below `[sign-on]`.
        environment: Where `FIELDMARK_SIGN_ON_<NAME>_CLIENT_ID` and `_CLIENT_SECRET` may stand.
        where: The file, for messages.

    Raises:
        InputError: Says which setting is wrong.
    """
    providers = tuple(_provider(name, table, environment, where) for name, table in tables.items())
    names: dict[str, str] = {}
    for one in providers:  # identities are kept under the issuer: two of one issuer could stand for each other
        if one.issuer in names:
            found = f"the issuer {one.issuer} in [sign-on.{names[one.issuer]}] and [sign-on.{one.name}]"
            raise InputError(where, found=found, expected="each issuer once")
        names[one.issuer] = one.name
    return providers


def _provider(name: str, table: object, environment: Mapping[str, str], where: object) -> Provider:
    at = f"{where}, [sign-on.{name}]"
    if not NAME.fullmatch(name) or name == "finish":
        raise InputError(where, found=f"[sign-on.{name}]", expected="a name of small letters, digits and hyphens")
    if not isinstance(table, Mapping):
        raise InputError(where, found=f"{name} = {type(table).__name__}", expected=f"a table [sign-on.{name}]")
    allowed = (*KEYS, *KEYS_OF_GITHUB) if name == "github" else KEYS
    if unknown := sorted(set(table) - set(allowed)):
        raise InputError(at, found=repr(unknown[0]), expected=f"only {', '.join(allowed)}")
    prefix = f"FIELDMARK_SIGN_ON_{name.upper().replace('-', '_')}_"
    given = {**KNOWN.get(name, {}), **table}
    for key in ("client_id", "client_secret", "client_secret_file"):
        given[key] = environment.get(prefix + key.upper()) or given.get(key) or ""
    issuer = str(given.get("issuer", "")).rstrip("/") if name == "github" else str(given.get("issuer", ""))
    for key in ("issuer", *(KEYS_OF_GITHUB if name == "github" else ())):
        check_address(str(given.get(key, "")), f"{at}: {key}")
    if not given["client_id"]:
        raise InputError(at, found="no client_id", expected=f"client_id, or {prefix}CLIENT_ID")
    scopes = given.get("scopes", Provider.scopes)
    words = tuple(scopes.split()) if isinstance(scopes, str) else tuple(str(scope) for scope in scopes)
    return Provider(
        name=name,
        title=str(given.get("title") or name),
        kind="github" if name == "github" else "oidc",
        issuer=issuer,
        client_id=str(given["client_id"]),
        client_secret=_secret(given, at, prefix),
        scopes=words,
        trust_email=given.get("trust_email", False) is True,
        **({key: str(given[key]) for key in KEYS_OF_GITHUB} if name == "github" else {}),
    )


def check_address(address: str, where: object) -> None:
    """Refuses addresses to which a secret would go unencrypted; the machine itself is an exception, for trials.

    Raises:
        InputError: When it is such an address.
    """
    parts = urlsplit(address)
    if not parts.hostname or (parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOCAL)):
        raise InputError(where, found=repr(address), expected="an address that begins with https://")


def _secret(given: Mapping[str, Any], at: str, prefix: str) -> str:
    if given["client_secret"]:
        return str(given["client_secret"])
    if not given["client_secret_file"]:
        expected = f"client_secret, client_secret_file, or {prefix}CLIENT_SECRET"
        raise InputError(at, found="no client_secret", expected=expected)
    try:
        return Path(str(given["client_secret_file"])).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        found = f"client_secret_file {given['client_secret_file']}"
        raise InputError(at, found=found, expected="a file that can be read") from error
