"""Teams: made by one person, joined by invitation.

A person has one team in a challenge, and stays in it from its first accepted run on: who could leave and join again
would have as many runs a day as there are teams.
"""

from __future__ import annotations

import datetime as dt

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, joinedload

from fieldmark.web.refusals import ConflictError, NotThereError
from fieldmark.web.security import new_secret
from fieldmark_challenge.people.accounts import hashed, past_mark
from fieldmark_challenge.people.names import clean_name, clean_text, look_of_team
from fieldmark_challenge.people.rights import (
    is_kept_from,
    manages,
    need_acceptance,
    need_admission,
    need_distance,
    team_of,
)
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.code_schema import Program
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.participation import LaterStage
from fieldmark_challenge.records.schema import (
    Acceptance,
    Challenge,
    Insider,
    Invitation,
    Membership,
    Submission,
    Team,
    User,
    utc_now,
)

INVITATION_LIFE = dt.timedelta(days=14)
OPEN_INVITATIONS = 20


def accept_rules(database: Database, user: User, challenge: Challenge) -> None:
    """Notes that somebody accepts the rules as they are now; doing it twice changes nothing."""
    with database.write() as session:
        if not manages(session, user, challenge):
            need_admission(session, user, session.get_one(Challenge, challenge.id))
        key = (challenge.id, user.id, challenge.rules_version)
        if session.get(Acceptance, key) is None:
            session.add(Acceptance(challenge_id=key[0], user_id=key[1], rules_version=key[2]))
            audit.note(session, user, "rules.accept", challenge=challenge, version=challenge.rules_version)


def make_team(database: Database, user: User, challenge: Challenge, name: str) -> Team:
    """Makes a team with one member, its captain."""
    shown, key = clean_name(name, "team's name")
    mark = past_mark(database, user.email)
    with database.write() as session:
        need_distance(session, user, challenge)
        need_acceptance(session, user, challenge)
        _need_no_team(session, user, challenge, mark)
        look = look_of_team(session, challenge.id, shown)
        team = Team(challenge_id=challenge.id, name=shown, name_key=key, name_look=look, captain_id=user.id)
        session.add(team)
        try:
            session.flush()
            session.add(Membership(team_id=team.id, user_id=user.id, challenge_id=challenge.id))
            session.flush()
        except IntegrityError as error:
            raise ConflictError("A team with that name exists, or you are in a team already.") from error
        audit.note(session, user, "team.make", challenge=challenge, subject=shown)
    return team


def invite(database: Database, user: User, team: Team, note: str = "") -> str:
    """Makes a link's secret that lets one person in, once. Only the captain invites."""
    text = clean_text(note, 200, "note")
    secret = new_secret()
    with database.write() as session:
        need_captain(session, user, team)
        pending = select(func.count()).where(Invitation.team_id == team.id, *_usable())
        if session.execute(pending).scalar_one() >= OPEN_INVITATIONS:
            raise ConflictError("There are many open invitations: revoke some first.")
        session.add(
            Invitation(
                team_id=team.id,
                token_hash=hashed(secret),
                note=text,
                created_by=user.id,
                expires_at=utc_now() + INVITATION_LIFE,
            )
        )
        audit.note(session, user, "team.invite", challenge=team.challenge_id, subject=team.name)
    return secret


def revoke_invitation(database: Database, user: User, team: Team, invitation_id: int) -> None:
    """Withdraws an invitation to your own team."""
    with database.write() as session:
        need_captain(session, user, team)
        invitation = session.get(Invitation, invitation_id)
        if invitation is None or invitation.team_id != team.id:
            raise NotThereError
        invitation.revoked_at = invitation.revoked_at or utc_now()
        audit.note(session, user, "team.revoke-invitation", challenge=team.challenge_id, subject=team.name)


def find_invitation(session: Session, user: User, secret: str) -> Invitation | None:
    """The invitation behind a link, as long as it can be used by somebody: a captain lets nobody into a private
    challenge who may not know of it.
    """
    query = select(Invitation).where(Invitation.token_hash == hashed(secret), *_usable())
    query = query.options(joinedload(Invitation.team).joinedload(Team.challenge))
    found = session.scalars(query).one_or_none()
    return None if found is None or is_kept_from(session, user, found.team.challenge) else found


def join(database: Database, user: User, secret: str) -> Team:
    """Enters a team by an invitation, which is then used up.

    Raises:
        NotThereError: When the invitation is used, revoked, past its time, or none at all.
        ConflictError: When the rules are not accepted, the team is full, or one has a team already.
    """
    now = utc_now()
    mark = past_mark(database, user.email)
    with database.write() as session:
        invitation = find_invitation(session, user, secret)
        if invitation is None:
            raise NotThereError
        team = database.lock(session, Team, invitation.team_id)  # nobody else joins meanwhile
        challenge = invitation.team.challenge
        need_distance(session, user, challenge)
        need_acceptance(session, user, challenge)
        _need_no_team(session, user, challenge, mark, returning_to=team)
        _need_standing(team)
        # Those who left count as well: else a team could have more people than it may, one after the other.
        here = (Membership.team_id == team.id, Membership.user_id != user.id)
        size = session.execute(select(func.count()).where(*here)).scalar_one()
        if size >= challenge.max_team_size:
            raise ConflictError(f"The team is full: {size} are or were in it, of at most {challenge.max_team_size}.")
        used = session.execute(
            update(Invitation).where(Invitation.id == invitation.id, *_usable()).values(used_at=now, used_by=user.id)
        )
        if used.rowcount != 1:  # type: ignore[attr-defined]
            raise NotThereError
        before = session.get(Membership, (team.id, user.id))
        if before is not None:
            before.left_at = None
        else:
            session.add(Membership(team_id=team.id, user_id=user.id, challenge_id=challenge.id))
        try:
            session.flush()
        except IntegrityError as error:
            raise ConflictError("You are in a team of this challenge already.") from error
        audit.note(session, user, "team.join", challenge=challenge, subject=team.name)
        return invitation.team


def leave(database: Database, user: User, challenge: Challenge) -> None:
    """Leaves a team. From one that has submitted a run nobody goes to another: limits are per team.

    Where nothing was submitted, the person is free, and with its last member the team ends. Else the membership stays,
    marked as ended: they no longer see the runs, and join no other team.
    """
    with database.write() as session:
        team = team_of(session, user, challenge)
        if team is None:
            raise NotThereError
        database.lock(session, Team, team.id)
        if team.standing == "disqualified":
            raise ConflictError("The team is disqualified: nobody leaves it for another one.")
        mine = session.get_one(Membership, (team.id, user.id))
        if has_handed_in(session, team):
            _leave_for_good(session, user, team, mine)
            return
        session.delete(mine)
        session.flush()
        rest = session.scalars(
            select(Membership).where(Membership.team_id == team.id).order_by(Membership.joined_at)
        ).first()
        audit.note(session, user, "team.leave", challenge=challenge, subject=team.name)
        if rest is None and has_debug_run(session, team):
            raise ConflictError("A debug run of the team is on its way. Leave once it has ended.")
        if rest is None:
            end_team(session, team)
        elif team.captain_id == user.id:
            team.captain_id = rest.user_id


def _leave_for_good(session: Session, user: User, team: Team, mine: Membership) -> None:
    others = (Membership.team_id == team.id, Membership.user_id != user.id, Membership.left_at.is_(None))
    if session.scalars(select(Membership.user_id).where(*others).limit(1)).first() is None:
        raise ConflictError("A team that has submitted a run stays together. You are its only member: withdraw it.")
    if team.captain_id == user.id:
        raise ConflictError("Make another member captain before you leave the team.")
    mine.left_at = utc_now()
    audit.note(session, user, "team.leave", challenge=team.challenge_id, subject=team.name, for_good=True)


def hand_over(database: Database, user: User, challenge: Challenge, user_id: int) -> None:
    """Makes another member the captain; only the captain does."""
    with database.write() as session:
        team = team_of(session, user, challenge)
        if team is None:
            raise NotThereError
        locked: Team = database.lock(session, Team, team.id)
        need_captain(session, user, locked, "hands it over")
        heir = session.get(Membership, (team.id, user_id))
        if heir is None or heir.left_at is not None:
            raise NotThereError
        locked.captain_id = user_id
        audit.note(session, user, "team.hand-over", challenge=challenge, subject=team.name, to_account=user_id)


def withdraw(database: Database, user: User, challenge: Challenge, *, back: bool = False) -> None:
    """Takes one's own team out of the challenge, or brings it back, until the results are out.

    Raises:
        ConflictError: When the results are out, or the team is out for another reason.
    """
    with database.write() as session:
        team = team_of(session, user, challenge)
        if team is None:
            raise NotThereError
        locked: Team = database.lock(session, Team, team.id)
        need_captain(session, user, locked, "withdraws it")
        if database.lock(session, Challenge, challenge.id, shared=True).revealed_at:
            raise ConflictError("The results are out: they stay as they are.")
        if locked.standing != ("withdrawn" if back else ""):
            raise ConflictError(f"The team is {locked.standing or 'in the ranking'}: there is nothing to change.")
        locked.standing, locked.standing_at = ("", None) if back else ("withdrawn", utc_now())
        locked.standing_reason = "" if back else "by its own wish"
        audit.note(session, user, "team.return" if back else "team.withdraw", challenge=challenge, subject=team.name)


def has_handed_in(session: Session, team: Team) -> bool:
    """Whether a run or a program of a team was ever accepted, so that it stays together.

    What a program was started for counts from then on, also while it has no run yet. A refused upload binds nobody, and
    neither does a debug run.
    """
    run = select(Submission.id).where(Submission.team_id == team.id, Submission.path != "")
    program = select(Program.id).where(Program.team_id == team.id, Program.submission_id.is_not(None))
    return session.scalars(run.union_all(program).limit(1)).first() is not None


def has_debug_run(session: Session, team: Team) -> bool:
    """Whether a debug run of a team is on its way; its row stays until it has ended, and its team with it."""
    under_way = (Program.team_id == team.id, Program.state.in_(("queued", "running")))
    return session.scalars(select(Program.id).where(*under_way).limit(1)).first() is not None


def end_team(session: Session, team: Team) -> None:
    """Removes a team that nobody is in any more, that has submitted nothing, and of which nothing is on its way."""
    session.execute(delete(Program).where(Program.team_id == team.id))  # debug runs that have ended
    session.execute(delete(Submission).where(Submission.team_id == team.id))  # refused uploads, nothing else
    session.delete(team)


def need_captain(session: Session, user: User, team: Team, does: str = "invites") -> None:
    """Refuses whoever is not the captain of a team."""
    mine = session.get(Membership, (team.id, user.id))
    if mine is None or mine.left_at is not None:
        raise NotThereError
    if team.captain_id != user.id:
        raise ConflictError(f"Only the captain of the team {does}.")


def _need_no_team(
    session: Session, user: User, challenge: Challenge, mark: str, *, returning_to: Team | None = None
) -> None:
    """Refuses those who have a team, and those who left one that had submitted a run (but for a return to it)."""
    mine = select(Membership).where(Membership.challenge_id == challenge.id, Membership.user_id == user.id)
    there = session.scalars(mine.options(joinedload(Membership.team))).one_or_none()
    if there is None and session.get(LaterStage, challenge.id) is not None:
        raise ConflictError("Teams of this stage are those that came through the stage before, as they came.")
    if there is None:
        _need_no_past(session, challenge, mark)
    elif there.left_at is None:
        raise ConflictError("You are in a team of this challenge already.")
    elif returning_to is None or returning_to.id != there.team_id:
        raise ConflictError(f"You left {there.team.name}, which had submitted runs: there is no other team for you.")


def _need_no_past(session: Session, challenge: Challenge, mark: str) -> None:
    """Refuses those who took part, or had access to the truth, with an account that they deleted."""
    past = select(User.id).where(User.past_mark == mark)
    took_part = select(Membership.user_id).where(Membership.challenge_id == challenge.id, Membership.user_id.in_(past))
    knew = select(Insider.user_id).where(Insider.challenge_id == challenge.id, Insider.user_id.in_(past))
    if session.scalars(took_part.union_all(knew).limit(1)).first() is not None:
        raise ConflictError("A deleted account of your address took part in this challenge, or ran it: once is enough.")


def _need_standing(team: Team) -> None:
    if team.standing in ("disqualified", "withdrawn", "merged"):
        raise ConflictError(f"The team is {team.standing}: nobody joins it.")


def _usable() -> tuple[ColumnElement[bool], ...]:
    return (Invitation.used_at.is_(None), Invitation.revoked_at.is_(None), Invitation.expires_at > utc_now())
