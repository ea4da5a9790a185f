"""Attempts to sign in elsewhere: each begins in one browser, ends in the same one, once, within ten minutes.

The table holds the hash of what is sent along (`state`) and of the browser's cookie. The other two secrets of an
attempt, the nonce and the PKCE verifier, follow from the state and a key of the server, and are stored nowhere.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import json
from dataclasses import asdict, dataclass

from sqlalchemy import delete

from fieldmark.web.refusals import RefusalError
from fieldmark.web.security import new_secret
from fieldmark_challenge.openid.provider_client import Identity
from fieldmark_challenge.people.accounts import hashed
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.identity_schema import SignOnAttempt
from fieldmark_challenge.records.schema import User, utc_now

LIFE = dt.timedelta(minutes=10)


class FailedSignOnError(RefusalError):
    """It did not work; why is in the log, where it helps nobody who tries things out."""

    def __init__(self) -> None:
        super().__init__("Signing in there did not work, or took too long. Nothing was changed; please try again.")


@dataclass(frozen=True)
class Begun:
    """The secrets of an attempt: what goes to the provider, and what stays here."""

    state: str
    nonce: str
    verifier: str

    @property
    def challenge(self) -> str:
        """What proves later that we know the verifier."""
        return _plain(hashlib.sha256(self.verifier.encode()).digest())


def begin(database: Database, provider: str, browser: str, target: str, user: User | None = None) -> Begun:
    """Begins an attempt.

    Args:
        database: The database.
        provider: The name of the provider.
        browser: The secret of the browser's cookie.
        target: Where to go afterwards.
        user: Who is signed in and wants to link an identity to their account.
    """
    state, now = new_secret(), utc_now()
    with database.write() as session:
        session.execute(delete(SignOnAttempt).where(SignOnAttempt.expires_at < now))
        session.add(
            SignOnAttempt(
                state_hash=hashed(state),
                browser_hash=hashed(browser),
                provider=provider,
                user_id=user.id if user else None,
                target=target[:300],
                expires_at=now + LIFE,
            )
        )
    return _begun(database, state)


def end(database: Database, provider: str, browser: str, state: str) -> tuple[Begun, int | None, str]:
    """Ends an attempt; whoever comes with the same state again finds nothing.

    Returns:
        Its secrets, the account it links to if any, and where to go.

    Raises:
        FailedSignOnError: When there is none, or one of another browser, provider or time.
    """
    with database.write() as session:
        ended = session.execute(
            delete(SignOnAttempt)
            .where(SignOnAttempt.state_hash == hashed(state))
            .returning(
                SignOnAttempt.browser_hash,
                SignOnAttempt.provider,
                SignOnAttempt.user_id,
                SignOnAttempt.target,
                SignOnAttempt.expires_at,
            )
        ).one_or_none()
    if ended is None or ended.provider != provider or ended.expires_at < utc_now():
        raise FailedSignOnError
    if not browser or not hmac.compare_digest(ended.browser_hash, hashed(browser)):
        raise FailedSignOnError
    return _begun(database, state), ended.user_id, ended.target


def _begun(database: Database, state: str) -> Begun:
    return Begun(state, _plain(_keyed(database, "nonce", state)), _plain(_keyed(database, "verifier", state)))


def seal(database: Database, identity: Identity, browser: str, target: str) -> str:
    """An identity that was proven, on its way through a form: nobody can change it, and it is good in one browser."""
    until = (utc_now() + LIFE).timestamp()
    told = json.dumps({"identity": asdict(identity), "target": target, "until": until}).encode()
    return f"{_plain(told)}.{_plain(_keyed(database, 'sealed ' + hashed(browser), _plain(told)))}"


def unseal(database: Database, sealed: str, browser: str) -> tuple[Identity, str]:
    """The identity, and where to go afterwards.

    Raises:
        FailedSignOnError: When it was changed, is too old, or comes from another browser.
    """
    told, _, proof = sealed.partition(".")
    right = _plain(_keyed(database, "sealed " + hashed(browser), told))
    if not browser or not hmac.compare_digest(right.encode(), proof.encode()):
        raise FailedSignOnError
    kept = json.loads(base64.urlsafe_b64decode(told + "=" * (-len(told) % 4)))
    if kept["until"] < utc_now().timestamp():
        raise FailedSignOnError
    return Identity(**kept["identity"]), str(kept["target"])


def _keyed(database: Database, purpose: str, text: str) -> bytes:
    key = database.setting("sign-on-secret", lambda: new_secret().encode())
    return hmac.new(key, f"{purpose}:{text}".encode(), hashlib.sha256).digest()


def _plain(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
