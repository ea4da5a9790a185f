"""Accounts: passwords by argon2, sessions and tokens that the server keeps as hashes only."""

from __future__ import annotations

import datetime as dt
import hashlib
import secrets
from collections.abc import Sequence
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import delete, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, joinedload

from fieldmark.web.refusals import NotThereError, RefusalError
from fieldmark.web.security import new_secret
from fieldmark_challenge.people.names import clean_email, clean_name, look_of_account
from fieldmark_challenge.people.rights import PAST_SECRET, mark_of, note_insider
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import (
    ROLES,
    ApiToken,
    Challenge,
    Membership,
    ResetToken,
    Role,
    User,
    WebSession,
    utc_now,
)

SESSION_LIFE = dt.timedelta(days=14)
SESSION_IDLE = dt.timedelta(days=3)
SEEN_EVERY = dt.timedelta(minutes=10)
RESET_LIFE = dt.timedelta(hours=24)
SHORTEST_PASSWORD, LONGEST_PASSWORD = 10, 200
TOKEN_PREFIX = "fm_"
SCOPES = ("read", "submit", "organize")
# The lesser of the two settings that OWASP recommends for argon2id: many sign-ins at once must not exhaust the memory.
HASHER = PasswordHasher(time_cost=2, memory_cost=19456, parallelism=1)


def hashed(secret: str) -> str:
    """What is kept of a secret. It has 256 random bits, so that a plain hash cannot be turned back."""
    return hashlib.sha256(secret.encode()).hexdigest()


def past_mark(database: Database, email: str) -> str:
    """What is kept of the address of a deleted account: a hash that only this platform can make."""
    return mark_of(database.setting(PAST_SECRET, lambda: new_secret().encode()), email)


def register(
    database: Database,
    name: str,
    email: str,
    password: str | None,
    *,
    role: Role = "participant",
    verified: bool = False,
) -> User:
    """Makes an account.

    Args:
        database: The database.
        name: What it is called.
        email: Its address.
        password: Its password; None for one that is opened through a provider only.
        role: What it may do.
        verified: Whether the address is known to be theirs.

    Raises:
        RefusalError: When the name, the address or the password will not do, or one of the first two is taken.
    """
    shown, key = clean_name(name)
    address = clean_email(email)
    if password is not None:
        check_password(password, shown)
    kept = "" if password is None else HASHER.hash(password)
    user = User(name=shown, name_key=key, email=address, password_hash=kept, role=role)
    user.email_verified_at = utc_now() if verified else None
    try:
        with database.write() as session:
            user.name_look = look_of_account(session, shown)
            session.add(user)
            session.flush()
            audit.note(session, user, "account.register", subject=shown, role=role)
    except IntegrityError as error:
        raise RefusalError("An account with that name or address exists. Sign in, or choose another.") from error
    return user


def find_user(session: Session, who: str) -> User | None:
    """The account by its name or its address, however they were typed."""
    key = " ".join(who.split()).casefold()
    if "\0" in key:  # PostgreSQL would not even look
        return None
    return session.scalars(select(User).where(or_(User.name_key == key, User.email == key))).first()


def check_password(password: str, name: str = "") -> None:
    """Refuses passwords that are too short, absurdly long, or the name itself."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise RefusalError(
            f"A password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters; this one has {len(password)}."
        )
    if len(set(password)) < 4 or (name and password.casefold() == name.casefold()):
        raise RefusalError("That password is too easy to guess: use more different characters than that.")


@cache
def hash_of_nobody() -> str:
    """The hash of a password that nobody knows, which takes as long to check as any other."""
    return HASHER.hash(secrets.token_hex())


def sign_in(database: Database, who: str, password: str) -> tuple[User, str]:
    """Checks a password and opens a session.

    Args:
        database: The database.
        who: The name or the address.
        password: The password; checking takes as long for accounts that do not exist.

    Returns:
        The account and the secret for the cookie.
    """
    with database.read() as session:
        user = find_user(session, who)
    try:
        kept = (user.password_hash if user else "") or hash_of_nobody()  # some have none, and open elsewhere
        HASHER.verify(kept, password[: LONGEST_PASSWORD + 1])
        right = user is not None and user.disabled_at is None
    except (VerificationError, InvalidHashError):
        right = False
    if not right or user is None:
        raise RefusalError("Wrong name or password.")
    if HASHER.check_needs_rehash(user.password_hash):
        with database.write() as session:
            session.get_one(User, user.id).password_hash = HASHER.hash(password)
    return user, open_session(database, user)


def open_session(database: Database, user: User) -> str:
    """Opens a session for somebody who has proven who they are; returns the secret for the cookie."""
    secret = new_secret()
    with database.write() as session:
        session.execute(delete(WebSession).where(WebSession.expires_at < utc_now()))
        session.add(WebSession(token_hash=hashed(secret), user_id=user.id, expires_at=utc_now() + SESSION_LIFE))
    return secret


def session_user(database: Database, secret: str) -> User | None:
    """The account behind a session, None for one that has ended."""
    now = utc_now()
    with database.read() as session:
        login = session.get(WebSession, hashed(secret), options=[joinedload(WebSession.user)])
        if login is None or login.expires_at < now or login.seen_at < now - SESSION_IDLE or login.user.disabled_at:
            return None
        stale = login.seen_at < now - SEEN_EVERY
        user = login.user
    if stale:
        with database.write(lasting=False) as session:
            session.execute(update(WebSession).where(WebSession.token_hash == hashed(secret)).values(seen_at=now))
    return user


def sign_out(database: Database, secret: str) -> None:
    """Ends one session."""
    with database.write() as session:
        session.execute(delete(WebSession).where(WebSession.token_hash == hashed(secret)))


def end_sessions(session: Session, user_id: int, *, keep: str | None = None) -> None:
    """Ends the sessions of an account, but for the one whose secret is `keep`."""
    ended = delete(WebSession).where(WebSession.user_id == user_id)
    session.execute(ended.where(WebSession.token_hash != hashed(keep)) if keep else ended)


def change_password(database: Database, user: User, old: str, new: str, *, keep: str | None = None) -> None:
    """Sets a new password, and ends all other sessions, tokens and links of the account."""
    try:
        HASHER.verify(user.password_hash, old[: LONGEST_PASSWORD + 1])
    except (VerificationError, InvalidHashError) as error:
        raise RefusalError("The old password is wrong.") from error
    check_password(new, user.name)
    with database.write() as session:
        session.get_one(User, user.id).password_hash = HASHER.hash(new)
        end_sessions(session, user.id, keep=keep)
        _end_secrets(session, user.id)
        audit.note(session, user, "account.password", subject=user.name)


def _end_secrets(session: Session, user_id: int) -> None:
    """Ends the tokens and links of an account, which somebody else may know."""
    links = update(ResetToken).where(ResetToken.user_id == user_id, ResetToken.used_at.is_(None))
    session.execute(links.values(used_at=utc_now()))
    tokens = update(ApiToken).where(ApiToken.user_id == user_id, ApiToken.revoked_at.is_(None))
    session.execute(tokens.values(revoked_at=utc_now()))


def make_reset(database: Database, who: str, *, actor: User | None = None) -> str | None:
    """Makes a link's secret that sets a new password once; None where there is no such account."""
    with database.write() as session:
        user = find_user(session, who)
        if user is None or user.disabled_at is not None:
            return None
        secret = new_secret()
        session.add(ResetToken(token_hash=hashed(secret), user_id=user.id, expires_at=utc_now() + RESET_LIFE))
        audit.note(session, actor, "account.reset-link", subject=user.name)
    return secret


def reset_is_valid(database: Database, secret: str) -> bool:
    """Whether a link would still work."""
    with database.read() as session:
        token = session.get(ResetToken, hashed(secret))
        return token is not None and token.used_at is None and token.expires_at > utc_now()


def use_reset(database: Database, secret: str, password: str) -> User:
    """Sets a new password by a link; ends all sessions and tokens of the account, and all its other links."""
    if not reset_is_valid(database, secret):
        raise NotThereError
    check_password(password)
    now = utc_now()
    new_hash = HASHER.hash(password)
    with database.write() as session:
        used = session.execute(
            update(ResetToken)
            .where(ResetToken.token_hash == hashed(secret), ResetToken.used_at.is_(None), ResetToken.expires_at > now)
            .values(used_at=now)
            .returning(ResetToken.user_id)
        ).scalar_one_or_none()
        if used is None:
            raise NotThereError
        user = session.get_one(User, used)
        user.password_hash = new_hash
        end_sessions(session, user.id)
        _end_secrets(session, user.id)
        audit.note(session, user, "account.reset", subject=user.name)
    return user


def make_token(database: Database, user: User, name: str, scopes: Sequence[str], *, days: int | None = 90) -> str:
    """Makes an API token and returns it; it cannot be shown again."""
    shown, _ = clean_name(name, "token's name")
    if not scopes or any(scope not in SCOPES for scope in scopes):
        raise RefusalError(f"A token needs at least one of the scopes {', '.join(SCOPES)}.")
    if days is not None and not 1 <= days <= 3650:
        raise RefusalError("A token is valid for 1 to 3650 days.")
    secret = TOKEN_PREFIX + new_secret()
    expires = None if days is None else utc_now() + dt.timedelta(days=days)
    with database.write() as session:
        kept = [scope for scope in SCOPES if scope in scopes]
        session.add(
            ApiToken(
                user_id=user.id,
                name=shown,
                token_hash=hashed(secret),
                shown=secret[:8],
                scopes=kept,
                expires_at=expires,
            )
        )
        audit.note(session, user, "token.make", subject=shown, scopes=kept)
    return secret


def token_user(database: Database, secret: str) -> tuple[User, tuple[str, ...]] | None:
    """The account behind an API token and what the token allows; None for one that is not valid."""
    now = utc_now()
    with database.read() as session:
        query = select(ApiToken).where(ApiToken.token_hash == hashed(secret)).options(joinedload(ApiToken.user))
        token = session.scalars(query).one_or_none()
        if token is None or token.revoked_at or token.user.disabled_at or (token.expires_at and token.expires_at < now):
            return None
        stale = token.used_at is None or token.used_at < now - SEEN_EVERY
        user, scopes, token_id = token.user, tuple(token.scopes), token.id
    if stale:
        with database.write(lasting=False) as session:
            session.execute(update(ApiToken).where(ApiToken.id == token_id).values(used_at=now))
    return user, scopes


def revoke_token(database: Database, user: User, token_id: int) -> None:
    """Ends one of the tokens of an account."""
    with database.write() as session:
        token = session.get(ApiToken, token_id)
        if token is None or token.user_id != user.id:
            raise NotThereError
        token.revoked_at = token.revoked_at or utc_now()
        audit.note(session, user, "token.revoke", subject=token.name)


def _account(session: Session, user_id: int) -> User:
    """An account that was not deleted."""
    user = session.get(User, user_id)
    if user is None:
        raise NotThereError
    if user.deleted_at is not None:
        raise RefusalError("The account is deleted.")
    return user


def set_role(database: Database, actor: User | None, user_id: int, role: str) -> None:
    """Gives an account another role; the last admin stays one."""
    if role not in ROLES:
        raise RefusalError(f"There is no role {role!r}; expected one of {', '.join(ROLES)}.")
    with database.write() as session:
        user = _account(session, user_id)
        admins = session.scalars(select(User.id).where(User.role == "admin", User.disabled_at.is_(None))).all()
        if user.role == "admin" and role != "admin" and list(admins) == [user.id]:
            raise RefusalError("This is the last admin; make another one first.")
        if role == "admin" and (competes := _competes_in(session, user)):
            raise RefusalError(f"{user.name} takes part in {competes}, whose hidden labels an admin can see.")
        if user.role == "admin" and role != "admin":  # could see every truth there is
            for challenge_id in session.scalars(select(Challenge.id)):
                note_insider(session, challenge_id, user.id)
        audit.note(session, actor, "account.role", subject=user.name, before=user.role, after=role)
        user.role = role


def _competes_in(session: Session, user: User) -> str | None:
    """A challenge that somebody takes part in and whose results are not out yet."""
    query = select(Challenge.slug).join(Membership, Membership.challenge_id == Challenge.id)
    return session.scalars(query.where(Membership.user_id == user.id, Challenge.revealed_at.is_(None))).first()


def set_disabled(database: Database, actor: User, user_id: int, disabled: bool) -> None:
    """Closes an account to its owner, or opens it again."""
    with database.write() as session:
        user = _account(session, user_id)
        if user.id == actor.id:
            raise RefusalError("You cannot close your own account.")
        user.disabled_at = utc_now() if disabled else None
        end_sessions(session, user.id)
        audit.note(session, actor, "account.disable" if disabled else "account.enable", subject=user.name)
