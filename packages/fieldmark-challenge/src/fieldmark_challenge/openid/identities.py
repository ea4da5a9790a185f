"""Identities at providers and the accounts they open.

An identity opens the account it was linked to. It is linked by the owner of the account while signed in, or by itself
where the provider has verified the same address that the account has verified here. An address that only one of the
two has verified links nothing: anybody can type somebody else's address into a form.
"""

from __future__ import annotations

import datetime as dt

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError
from fieldmark_challenge.mail import outbox
from fieldmark_challenge.openid.provider_client import Identity
from fieldmark_challenge.people import accounts
from fieldmark_challenge.people.names import clean_email
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.identity_schema import LinkedIdentity
from fieldmark_challenge.records.schema import User, utc_now

MOST = 10
SEEN_EVERY = dt.timedelta(minutes=10)


class AddressTakenError(ConflictError):
    """There is an account with the address, and nothing proves that it is theirs."""

    def __init__(self) -> None:
        super().__init__(
            "There is an account with your address. Sign in to it with its password, then link this way of signing in "
            "on its account page."
        )


def account_of(database: Database, identity: Identity) -> User | None:
    """The account that an identity opens; None where it opens none yet.

    Raises:
        RefusalError: When the account is closed.
        AddressTakenError: When there is an account with the same address that it cannot be linked to.
    """
    with database.write() as session:
        linked = _linked(session, identity)
        user: User | None
        if linked is not None:
            linked.used_at, linked.shown = utc_now(), identity.shown[:100]
            user = session.get_one(User, linked.user_id)
            if user.disabled_at is not None:
                raise RefusalError("That account is closed.")
            return user
        if not (identity.email and identity.email_verified):
            return None
        user = session.scalars(select(User).where(User.email == clean_email(identity.email))).one_or_none()
        if user is None:
            return None
        if user.email_verified_at is None or user.disabled_at is not None:
            raise AddressTakenError
        _link(session, user, identity)
        return user


def link(database: Database, user: User, identity: Identity) -> None:
    """Lets an identity open the account of somebody who is signed in.

    Raises:
        ConflictError: When it opens another account, or there are too many.
    """
    with database.write() as session:
        mine = database.lock(session, User, user.id)
        linked = _linked(session, identity)
        if linked is not None and linked.user_id != user.id:
            raise ConflictError("That identity belongs to another account here.")
        if linked is None:
            if len(identities_of(session, user.id)) >= MOST:
                raise ConflictError(f"An account has at most {MOST} linked identities.")
            _link(session, mine, identity)


def register(database: Database, identity: Identity, name: str, email: str) -> User:
    """Makes an account that an identity opens, without a password.

    Args:
        database: The database.
        identity: The identity. An address that its provider verified is verified here as well.
        name: What the account is called.
        email: The address of the account.

    Raises:
        RefusalError: When the name or the address will not do, or one of them is taken.
    """
    address = clean_email(email)
    proven = identity.email_verified and clean_email(identity.email) == address
    user = accounts.register(database, name, address, None, verified=proven)
    try:
        with database.write() as session:
            _link(session, session.get_one(User, user.id), identity)
    except IntegrityError as error:  # it was linked just now, in another window
        raise ConflictError("That identity belongs to another account here.") from error
    return user


def unlink(database: Database, user: User, identity_id: int) -> None:
    """Takes an identity away from an account, which must be left with a way in.

    Raises:
        NotThereError: When it is not one of theirs.
        ConflictError: When there is no other way in.
    """
    with database.write() as session:
        mine = database.lock(session, User, user.id)
        linked = session.get(LinkedIdentity, identity_id)
        if linked is None or linked.user_id != user.id:
            raise NotThereError
        others = select(func.count()).where(LinkedIdentity.user_id == user.id, LinkedIdentity.id != identity_id)
        if not mine.password_hash and session.execute(others).scalar_one() == 0:
            raise ConflictError("This is the only way into your account. Set a password first.")
        audit.note(session, mine, "account.unlink", subject=mine.name, issuer=linked.issuer)
        session.delete(linked)


def identities_of(session: Session, user_id: int) -> list[LinkedIdentity]:
    """The identities that open an account, oldest first."""
    query = select(LinkedIdentity).where(LinkedIdentity.user_id == user_id).order_by(LinkedIdentity.id)
    return list(session.scalars(query))


def _linked(session: Session, identity: Identity) -> LinkedIdentity | None:
    query = select(LinkedIdentity).where(
        LinkedIdentity.issuer == identity.issuer, LinkedIdentity.subject == identity.subject
    )
    return session.scalars(query).one_or_none()


def _link(session: Session, user: User, identity: Identity) -> None:
    shown = identity.shown[:100]
    session.add(LinkedIdentity(user_id=user.id, issuer=identity.issuer, subject=identity.subject, shown=shown))
    session.flush()
    audit.note(session, user, "account.link", subject=user.name, issuer=identity.issuer)
    outbox.put(session, "linked", {"issuer": identity.issuer, "shown": shown}, user_id=user.id)
