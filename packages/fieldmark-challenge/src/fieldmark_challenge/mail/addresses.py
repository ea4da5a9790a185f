"""Addresses of accounts: proving that one is one's own, and changing it."""

from __future__ import annotations

import datetime as dt

from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError
from fieldmark.web.security import new_secret
from fieldmark_challenge.mail import outbox
from fieldmark_challenge.people import accounts, rates
from fieldmark_challenge.people.names import clean_email
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.mail_schema import EmailToken
from fieldmark_challenge.records.schema import User, utc_now

VERIFY_LIFE = dt.timedelta(hours=24)


def ask_to_verify(database: Database, user: User, address: str | None = None) -> None:
    """Sends a link to an address that proves it to be somebody's own.

    Args:
        database: The database.
        user: Whose account.
        address: Which address; that of the account if not given.

    Raises:
        ConflictError: When the platform sends no mail.
        TooOftenError: When too many mails were sent to that address.
    """
    to = address or user.email
    with database.read() as session:
        if outbox.on_since(session) is None:
            raise ConflictError("This server sends no e-mail.")
    rates.count(database, rates.MAIL_TO, accounts.hashed(to))
    with database.write() as session:
        outbox.put(session, "verify", {}, user_id=user.id, address=to, life=outbox.SECRET_LIFE)


def ask_to_reset(database: Database, who: str) -> bool:
    """Has a link sent that sets a new password, to the address of the account.

    Whether there is such an account is looked up when the mail is sent: the page is as quick for those there are not.

    Returns:
        False where the platform sends no mail.
    """
    with database.write() as session:
        return outbox.put(session, "reset", {"who": who[:254]}, life=outbox.SECRET_LIFE)


def make_email_token(session: Session, user_id: int, address: str) -> str:
    """The secret of a link that proves an address, made when the mail is sent."""
    secret = new_secret()
    expires = utc_now() + VERIFY_LIFE
    session.add(EmailToken(token_hash=accounts.hashed(secret), user_id=user_id, email=address, expires_at=expires))
    return secret


def token_address(session: Session, user: User, secret: str) -> str | None:
    """The address that a link would prove for somebody; None where it does nothing for them."""
    token = session.get(EmailToken, accounts.hashed(secret))
    if token is None or token.user_id != user.id or token.used_at is not None or token.expires_at < utc_now():
        return None
    return token.email


def verify(database: Database, user: User, secret: str) -> str:
    """Makes the address of a link the proven address of the account, which must be the one that is signed in.

    Whoever gets such a mail without having asked cannot, by opening it, prove the address of somebody else's account.

    Returns:
        The address.

    Raises:
        NotThereError: When the link is used, old, or not for this account.
        ConflictError: When another account has the address by now.
    """
    with database.write() as session:
        now, mine = utc_now(), database.lock(session, User, user.id)
        address = token_address(session, user, secret)
        if mine is None or address is None:
            raise NotThereError
        if session.scalars(select(User.id).where(User.email == address, User.id != user.id)).first() is not None:
            raise ConflictError("Another account has that address.")
        if mine.email != address:
            outbox.put(session, "changed", {"new": address}, user_id=user.id, address=mine.email)
            audit.note(session, mine, "account.email", subject=mine.name)
        mine.email, mine.email_verified_at = address, now
        _flush(session)
        others = update(EmailToken).where(EmailToken.user_id == user.id, EmailToken.used_at.is_(None))
        session.execute(others.values(used_at=now))
        audit.note(session, mine, "account.verify", subject=mine.name)
    return address


def change_address(database: Database, user: User, address: str, password: str) -> bool:
    """Gives an account another address: once it is proven, or at once where the platform sends no mail.

    Returns:
        Whether it has to be proven first.
    """
    new = clean_email(address)
    try:
        accounts.HASHER.verify(user.password_hash, password[: accounts.LONGEST_PASSWORD + 1])
    except (VerificationError, InvalidHashError) as error:
        raise RefusalError("The password is wrong.") from error
    with database.read() as session:
        proves = outbox.on_since(session) is not None
        if session.scalars(select(User.id).where(User.email == new, User.id != user.id)).first() is not None:
            raise RefusalError("That address cannot be used here.")
    if proves:
        ask_to_verify(database, user, new)
        return True
    with database.write() as session:
        mine = session.get_one(User, user.id)
        if mine.email != new:
            mine.email, mine.email_verified_at = new, None
            _flush(session)
            audit.note(session, mine, "account.email", subject=mine.name)
    return False


def _flush(session: Session) -> None:
    try:
        session.flush()
    except IntegrityError as error:  # somebody else has taken it just now
        raise ConflictError("Another account has that address.") from error
