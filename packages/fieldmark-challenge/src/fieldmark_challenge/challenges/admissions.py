"""Who is let into a challenge that is not open to everybody: by asking, by a code, or by an organizer's word.

In a private challenge nobody else learns that there is one (`rights.open_challenge`). A person who was refused stays
out, whichever code they have.
"""

from __future__ import annotations

import datetime as dt
import re
import secrets

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, joinedload

from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError
from fieldmark_challenge.challenges.limits import MOST_CODES, MOST_DAYS, MOST_USES
from fieldmark_challenge.mail import outbox
from fieldmark_challenge.people.accounts import find_user, hashed
from fieldmark_challenge.people.names import clean_text
from fieldmark_challenge.people.rights import REFUSED, is_refused, need_distance
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.participation import Admission, AdmissionState, EntryCode
from fieldmark_challenge.records.schema import Challenge, User, utc_now

# Without characters that are taken for each other; sixteen of them are 78 bits, and wrong ones are counted.
LETTERS = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
CODE_LENGTH, GROUP = 16, 4


def new_code() -> str:
    """A code as it is handed out, in groups of four."""
    drawn = "".join(secrets.choice(LETTERS) for _ in range(CODE_LENGTH))
    return "-".join(drawn[start : start + GROUP] for start in range(0, CODE_LENGTH, GROUP))


def plain_code(text: str) -> str:
    """A code as it is compared, however it was typed.

    >>> plain_code(" ab2c-de3f ")
    'AB2CDE3F'
    """
    return re.sub(r"[^0-9A-Z]", "", text.upper())[:64]


def make_code(
    database: Database, actor: User, challenge: Challenge, *, uses: int = 1, days: int = 14, note: str = ""
) -> str:
    """Makes a code that admits so many people; it is shown this once."""
    if not (1 <= uses <= MOST_USES and 1 <= days <= MOST_DAYS):
        raise RefusalError(f"A code is for 1 to {MOST_USES} people and works for 1 to {MOST_DAYS} days.")
    code = new_code()
    with database.write() as session:
        usable = select(EntryCode.id).where(EntryCode.challenge_id == challenge.id, *_usable())
        if len(session.scalars(usable).all()) >= MOST_CODES:
            raise ConflictError("There are many open codes: revoke some first.")
        row = EntryCode(
            challenge_id=challenge.id,
            code_hash=hashed(plain_code(code)),
            shown=code[:GROUP],
            note=clean_text(note, 200, "note"),
            uses=uses,
            created_by=actor.id,
            expires_at=utc_now() + dt.timedelta(days=days),
        )
        session.add(row)
        audit.note(session, actor, "code.make", challenge=challenge, subject=f"{row.shown}…", uses=uses, days=days)
    return code


def revoke_code(database: Database, actor: User, challenge: Challenge, code_id: int) -> None:
    """Ends a code; those it admitted stay."""
    with database.write() as session:
        code = session.get(EntryCode, code_id)
        if code is None or code.challenge_id != challenge.id:
            raise NotThereError
        code.revoked_at = code.revoked_at or utc_now()
        audit.note(session, actor, "code.revoke", challenge=challenge, subject=f"{code.shown}…")


def find_code(session: Session, code: str) -> EntryCode | None:
    """The row behind a code, as long as it can be used in a challenge that is shown."""
    query = select(EntryCode).where(EntryCode.code_hash == hashed(plain_code(code)), *_usable())
    found = session.scalars(query.options(joinedload(EntryCode.challenge))).one_or_none()
    return found if found is not None and found.challenge.published_at is not None else None


def use_code(database: Database, user: User, code: str) -> Challenge:
    """Enters a challenge by a code; who is in already spends nothing.

    Raises:
        RefusalError: When the code does not work, for whatever reason.
        ConflictError: When the person runs the challenge, or was refused.
    """
    with database.write() as session:
        found = find_code(session, code)
        if found is None:
            raise RefusalError("That code does not work: it is wrong, used up, revoked or expired.")
        database.lock(session, EntryCode, found.id)  # one at a time: counting and letting in are one act
        challenge = found.challenge
        noted = session.get(Admission, (challenge.id, user.id), populate_existing=True)
        if noted is not None and noted.state == "admitted":
            return challenge
        need_distance(session, user, challenge)
        if is_refused(session, user, challenge):
            raise ConflictError(REFUSED)
        spent = update(EntryCode).where(EntryCode.id == found.id, EntryCode.used < EntryCode.uses, *_usable())
        done = session.execute(spent.values(used=EntryCode.used + 1))
        if done.rowcount != 1:  # type: ignore[attr-defined]
            raise RefusalError("That code does not work: it is wrong, used up, revoked or expired.")
        _note(session, challenge, user, "admitted", f"by the code {found.shown}…")
        audit.note(session, user, "admission.code", challenge=challenge, subject=user.name, code=f"{found.shown}…")
        return challenge


def ask(database: Database, user: User, challenge: Challenge, note: str) -> None:
    """Asks to take part where the organizers decide about each person.

    Raises:
        ConflictError: When there is nothing to ask for, or somebody asked already.
    """
    text = clean_text(note, 500, "note")
    with database.write() as session:
        present = session.get_one(Challenge, challenge.id)
        need_distance(session, user, present)
        if present.access != "approval":
            raise ConflictError(
                "This challenge is open to everybody." if present.access == "open" else "A code is needed to take part."
            )
        if is_refused(session, user, present):
            raise ConflictError(REFUSED)
        noted = session.get(Admission, (challenge.id, user.id))
        if noted is not None:
            raise ConflictError("You have already asked." if noted.state == "asked" else "You may already take part.")
        session.add(Admission(challenge_id=challenge.id, user_id=user.id, state="asked", note=text))
        try:
            session.flush()
        except IntegrityError as error:
            raise ConflictError("You have already asked.") from error
        audit.note(session, user, "admission.ask", challenge=challenge, subject=user.name)


def decide(database: Database, actor: User, challenge: Challenge, who: str, *, admit: bool) -> None:
    """Lets somebody in by name or address, or keeps them out; either can be changed later, and they are told by mail.

    Raises:
        RefusalError: When there is no such account.
    """
    with database.write() as session:
        user = find_user(session, who)
        if user is None or user.deleted_at is not None:
            raise RefusalError("There is no account with that name or address.")
        database.lock(session, Challenge, challenge.id)
        before = session.get(Admission, (challenge.id, user.id))
        was = before.state if before is not None else None
        state: AdmissionState = "admitted" if admit else "refused"
        _note(session, challenge, user, state, before.note if before is not None else "")
        audit.note(session, actor, f"admission.{state}", challenge=challenge, subject=user.name, before=was)
        # Who never asked does not learn by a refusal that there is such a challenge.
        if was != state and (admit or was is not None) and challenge.published_at is not None:
            about = {"challenge": challenge.title, "slug": challenge.slug, "admitted": admit}
            outbox.put(session, "admission", about, user_id=user.id)


def admissions_of(session: Session, challenge: Challenge) -> list[Admission]:
    """Who asked, was let in or kept out: those who wait first."""
    query = select(Admission).where(Admission.challenge_id == challenge.id).options(joinedload(Admission.user))
    order = ("asked", "admitted", "refused")
    return sorted(session.scalars(query), key=lambda one: (order.index(one.state), one.user.name_key))


def codes_of(session: Session, challenge: Challenge) -> list[EntryCode]:
    """The codes of a challenge, newest first."""
    query = select(EntryCode).where(EntryCode.challenge_id == challenge.id).order_by(EntryCode.id.desc())
    return list(session.scalars(query))


def _note(session: Session, challenge: Challenge, user: User, state: AdmissionState, note: str) -> None:
    row = session.get(Admission, (challenge.id, user.id)) or Admission(challenge_id=challenge.id, user_id=user.id)
    row.state, row.note, row.changed_at = state, note, utc_now()
    session.add(row)
    session.flush()


def _usable() -> tuple[ColumnElement[bool], ...]:
    return (EntryCode.revoked_at.is_(None), EntryCode.expires_at > utc_now(), EntryCode.used < EntryCode.uses)
