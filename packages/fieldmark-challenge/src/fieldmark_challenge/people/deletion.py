"""Deleting an account: who somebody was is forgotten, what they submitted stays.

A result is only worth something as long as nobody can take runs out of a ranking that is known. So the runs, their
scores, the team and its name stay, and with them that there was a person: a number, what rules it accepted, when it was
in which team, whether it has seen a truth, and which challenges have refused it. Name and address go, in the log as
well, with passwords, sessions, tokens, links and mails. Of the address a keyed hash stays, by which nobody takes part
in one challenge twice, or in one that has refused them.
"""

from __future__ import annotations

from typing import Any

from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from fieldmark.web.refusals import RefusalError
from fieldmark_challenge.people import accounts
from fieldmark_challenge.people.rosters import NOWHERE
from fieldmark_challenge.people.teams import end_team, has_debug_run, has_handed_in
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.name_looks import look_of
from fieldmark_challenge.records.participation import Admission
from fieldmark_challenge.records.schema import AuditEvent, Base, Challenge, Invitation, Membership, Team, User, utc_now

# What stays, without a name, of the tables whose rows belong to a person; of admissions, those that were refused.
KEPT = ("acceptances", "insiders", "memberships", "admissions")


def delete_own(database: Database, user: User, password: str, *, rename_teams: bool) -> None:
    """Deletes one's own account, after the password was given once more (by those who have one).

    Raises:
        RefusalError: When the password is wrong, or something has to be settled first.
    """
    try:
        if user.password_hash:
            accounts.HASHER.verify(user.password_hash, password[: accounts.LONGEST_PASSWORD + 1])
    except (VerificationError, InvalidHashError) as error:
        raise RefusalError("Wrong password.") from error
    delete_account(database, None, user.id, rename_teams=rename_teams)


def delete_account(database: Database, actor: User | None, user_id: int, *, rename_teams: bool = False) -> None:
    """Deletes an account.

    Args:
        database: The database.
        actor: Who does it for somebody else; None where it is their own wish.
        user_id: Which account.
        rename_teams: Whether teams in which nobody else was get a neutral name, also on boards.

    Raises:
        RefusalError: When it is the last admin, or owns challenges.
    """
    with database.read() as session:
        email = session.get_one(User, user_id).email
    mark = accounts.past_mark(database, email)
    with database.write() as session:
        user: User = database.lock(session, User, user_id)
        _refuse(session, user)
        mine = select(Membership).where(Membership.user_id == user.id).order_by(Membership.team_id)
        for membership in session.scalars(mine).all():
            _leave(database, session, user, membership, rename=rename_teams)
        _forget(session, user)
        name = f"deleted account {user.id}"
        user.name = user.name_key = name
        user.name_look, user.email = look_of(name), f"deleted-{user.id}@{NOWHERE}"
        user.password_hash, user.role, user.past_mark = "", "participant", mark
        user.email_verified_at = None
        user.deleted_at = utc_now()
        user.disabled_at = user.disabled_at or user.deleted_at
        audit.note(session, actor or user, "account.delete", subject=name)


def _refuse(session: Session, user: User) -> None:
    if user.deleted_at is not None:
        raise RefusalError("The account is deleted already.")
    admins = session.scalars(select(User.id).where(User.role == "admin", User.disabled_at.is_(None))).all()
    if user.role == "admin" and list(admins) == [user.id]:
        raise RefusalError("This is the last admin; make another one first.")
    owned = session.scalars(select(Challenge.slug).where(Challenge.owner_id == user.id).order_by(Challenge.id)).all()
    if owned:
        raise RefusalError(f"The account owns {', '.join(owned)}: give that to another organizer first.")


def _leave(database: Database, session: Session, user: User, mine: Membership, *, rename: bool) -> None:
    """Ends a membership: without a trace where nothing was submitted, else without the name."""
    team: Team = database.lock(session, Team, mine.team_id)
    rest = session.scalars(
        select(Membership)
        .where(Membership.team_id == team.id, Membership.user_id != user.id, Membership.left_at.is_(None))
        .order_by(Membership.joined_at)
    ).first()
    if team.captain_id == user.id:
        team.captain_id = rest.user_id if rest is not None else None
    if has_handed_in(session, team) or (rest is None and has_debug_run(session, team)):
        mine.left_at = mine.left_at or utc_now()
        if rename and session.scalars(select(Membership).where(Membership.team_id == team.id)).all() == [mine]:
            _rename(session, team)
        return
    session.delete(mine)
    session.flush()
    if rest is None:
        end_team(session, team)


def _rename(session: Session, team: Team) -> None:
    """Gives a team a name that says nothing, also in the log."""
    before, name = team.name, f"team {team.id}"
    taken = select(Team.id).where(Team.challenge_id == team.challenge_id, Team.name_key == name, Team.id != team.id)
    if session.scalars(taken).first() is not None:
        name = f"team {team.id} of a deleted account"
    team.name = team.name_key = name
    team.name_look = look_of(name)
    about = AuditEvent.action.like("team.%") | AuditEvent.action.like("stage.%")
    for event in session.scalars(select(AuditEvent).where(AuditEvent.challenge_id == team.challenge_id, about)):
        event.subject = name if event.subject == before else event.subject
        told = {key: _renamed(value, before, name) for key, value in event.details.items()}
        if told != event.details:
            event.details = told


def _renamed(value: Any, before: str, after: str) -> Any:
    """A detail of the log with another name for a team.

    >>> _renamed(["owls", "ravens"], "owls", "team 7"), _renamed(3, "owls", "team 7")
    (['team 7', 'ravens'], 3)
    """
    if isinstance(value, list):
        return [_renamed(one, before, after) for one in value]
    return after if value == before else value


def _forget(session: Session, user: User) -> None:
    """Removes what belongs to a person alone, and the name from the log."""
    for table in Base.metadata.sorted_tables:
        for column in table.columns:
            own = any(key.column.table.name == "users" and key.ondelete == "CASCADE" for key in column.foreign_keys)
            if own and table.name not in KEPT:
                session.execute(table.delete().where(column == user.id))
    session.execute(delete(Admission).where(Admission.user_id == user.id, Admission.state != "refused"))
    session.execute(update(Admission).where(Admission.user_id == user.id).values(note=""))
    unused = (Invitation.created_by == user.id, Invitation.used_at.is_(None), Invitation.revoked_at.is_(None))
    session.execute(update(Invitation).where(*unused).values(revoked_at=utc_now()))
    name = f"deleted account {user.id}"
    session.execute(update(AuditEvent).where(AuditEvent.actor_id == user.id).values(actor=name))
    about = AuditEvent.action.like("account.%") | AuditEvent.action.like("organizer.%")
    about |= AuditEvent.action.like("admission.%")
    session.execute(update(AuditEvent).where(AuditEvent.subject == user.name, about).values(subject=name))
