"""Identity tokens: who signed, for whom, when, and in answer to which question. Everything else is refused."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import Key

# Signatures with a public key only: "none" proves nothing, and with HMAC our own secret would be the key.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA"]
LEEWAY_S = 60
LONGEST = 100_000


class BadTokenError(Exception):
    """A token that proves nothing, and why; the reason goes to the log and to nobody else."""


class UnknownKeyError(BadTokenError):
    """A token that was signed with a key we have not seen: the provider may have changed it."""


def read_id_token(
    token: object, keys: Sequence[Key], *, issuer: str, client_id: str, nonce: str, now: float | None = None
) -> dict[str, Any]:
    """The claims of an identity token.

    Args:
        token: The token as the provider gave it.
        keys: The public keys of the provider.
        issuer: Who must have made it.
        client_id: Whom it must be for: us.
        nonce: What we sent along when we asked.
        now: The present moment, in seconds.

    Raises:
        BadTokenError: When one of these is not so.
    """
    if not isinstance(token, str) or len(token) > LONGEST or token.count(".") != 2:
        raise BadTokenError("no signed token")
    try:
        header = jws.extract_compact(token.encode()).headers()
        if header.get("alg") not in ALGORITHMS:
            raise BadTokenError(f"signed by {header.get('alg')!r}")
        kid = header.get("kid")
        fitting = [key for key in keys if kid is None or key.kid == kid]
        if not fitting:
            raise UnknownKeyError("signed with a key that the provider does not list")
        claims = _signed_claims(token, fitting)
    except (JoseError, ValueError, TypeError, KeyError) as error:
        raise BadTokenError(f"the signature does not hold ({type(error).__name__})") from error
    _check_claims(claims, issuer, client_id, nonce, time.time() if now is None else now)
    return claims


def _signed_claims(token: str, keys: Sequence[Key]) -> dict[str, Any]:
    """The claims, signed by one of these keys; a token need not say which."""
    for key in keys[:-1]:
        with suppress(JoseError, ValueError):
            return dict(jwt.decode(token, key, algorithms=ALGORITHMS).claims)
    return dict(jwt.decode(token, keys[-1], algorithms=ALGORITHMS).claims)


def _check_claims(claims: dict[str, Any], issuer: str, client_id: str, nonce: str, now: float) -> None:
    if claims.get("iss") != issuer:
        raise BadTokenError("made by another issuer")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if client_id not in audiences:
        raise BadTokenError("made for somebody else")
    if (len(audiences) > 1 or "azp" in claims) and claims.get("azp") != client_id:
        raise BadTokenError("asked for by somebody else")
    for name in ("exp", "iat"):
        if not isinstance(claims.get(name), int | float) or isinstance(claims[name], bool):
            raise BadTokenError(f"without {name}")
    if claims["exp"] < now - LEEWAY_S:
        raise BadTokenError("expired")
    if claims["iat"] > now + LEEWAY_S or claims.get("nbf", now) > now + LEEWAY_S:
        raise BadTokenError("from the future")
    if claims.get("nonce") != nonce:
        raise BadTokenError("an answer to another question")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 1 <= len(subject) <= 255:
        raise BadTokenError("without a subject")
