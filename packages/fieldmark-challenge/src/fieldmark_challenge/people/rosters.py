"""Many accounts from one list, for a class or a workshop, each with a link that sets its password once.

Who has an account already is let into the challenge and gets no link: a list must not open the accounts of others.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import secrets
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from fieldmark.web.refusals import ConflictError, RefusalError
from fieldmark.web.security import new_secret
from fieldmark_challenge.people.accounts import hashed
from fieldmark_challenge.people.names import clean_email, clean_name, look_of_account
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.participation import Admission
from fieldmark_challenge.records.schema import Challenge, ResetToken, User, utc_now

MOST = 500
LINK_LIFE = dt.timedelta(days=14)
# The domain that no address has: for people who are listed without one.
NOWHERE = "accounts.invalid"


@dataclass(frozen=True)
class RosterLine:
    """A line of the list and what became of it.

    Args:
        name: As the account is called.
        email: Its address.
        secret: Of the link that sets the password; None where there was an account already.
    """

    name: str
    email: str
    secret: str | None


def make_accounts(database: Database, actor: User, challenge: Challenge, table: str) -> list[RosterLine]:
    """Makes the accounts of a list and lets all of them into a challenge; all of it or nothing.

    Args:
        database: The database.
        actor: Who runs the challenge.
        challenge: The challenge.
        table: CSV with the column `name`, and `email` where there are addresses.

    Raises:
        RefusalError: Names the first line that will not do, and why.
    """
    rows = _rows(table)
    made: list[RosterLine] = []
    with database.write() as session:
        database.lock(session, Challenge, challenge.id)
        for line, name, email in rows:
            try:
                user, secret = _account(session, name, email)
                session.flush()
            except RefusalError as error:
                raise ConflictError(f"Line {line}: {error} Nothing was made.") from error
            except IntegrityError as error:
                sentence = f"Line {line}: the name {name[:64]!r} belongs to an account already. Nothing was made."
                raise ConflictError(sentence) from error
            noted = session.get(Admission, (challenge.id, user.id))
            if noted is None:
                session.add(Admission(challenge_id=challenge.id, user_id=user.id, state="admitted", note="by a list"))
            else:
                noted.state, noted.changed_at = "admitted", utc_now()
            made.append(RosterLine(user.name, user.email, secret))
        new = [one.name for one in made if one.secret is not None]
        audit.note(session, actor, "accounts.make", challenge=challenge, made=len(new), listed=len(made))
    return made


def _account(session: Session, name: str, email: str) -> tuple[User, str | None]:
    """The account of a line: the one with its address, or a new one with the secret of its link."""
    shown, key = clean_name(name)
    address = clean_email(email) if email.strip() else f"{secrets.token_hex(8)}@{NOWHERE}"
    there = session.scalars(select(User).where(User.email == address)).one_or_none()
    if there is not None:
        return there, None
    look = look_of_account(session, shown)
    user = User(name=shown, name_key=key, name_look=look, email=address, password_hash="")
    session.add(user)
    session.flush()
    secret = new_secret()
    session.add(ResetToken(token_hash=hashed(secret), user_id=user.id, expires_at=utc_now() + LINK_LIFE))
    return user, secret


def _rows(table: str) -> list[tuple[int, str, str]]:
    if "\0" in table:
        raise RefusalError("The list holds a NUL character; expected CSV with the columns name and email.")
    reader = csv.DictReader(io.StringIO(table.removeprefix("\ufeff").strip()), skipinitialspace=True)
    columns = [(column or "").strip().lower() for column in reader.fieldnames or ()]
    if "name" not in columns:
        found = ", ".join(columns)[:80] or "nothing"
        raise RefusalError(f"The list begins with {found!r}; expected the columns name,email (email may be missing).")
    reader.fieldnames = columns
    rows = [
        (number, (row.get("name") or "").strip(), (row.get("email") or "").strip())
        for number, row in enumerate(reader, 2)
        if any(isinstance(value, str) and value.strip() for value in row.values())
    ]
    if not 1 <= len(rows) <= MOST:
        raise RefusalError(f"The list has {len(rows)} people; expected 1 to {MOST}.")
    return rows
