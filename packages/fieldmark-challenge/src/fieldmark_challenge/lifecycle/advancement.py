"""Carrying the teams over that go on to the next stage of a challenge."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from fieldmark.web.refusals import ConflictError
from fieldmark_challenge.boards import visibility
from fieldmark_challenge.challenges.finals import final_submissions
from fieldmark_challenge.people.rights import manages
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.participation import LaterStage, StageTeam
from fieldmark_challenge.records.schema import Challenge, Insider, Membership, Team, User, utc_now


def advance(database: Database, actor: User, challenge: Challenge) -> list[str]:
    """Carries the teams over that go on to this stage; those that are there already stay.

    Returns:
        The names of the teams that came.

    Raises:
        ConflictError: When this is no later stage, or the stage before is not over.
    """
    with database.read() as session:
        stage = session.get(LaterStage, challenge.id)
        if stage is None:
            raise ConflictError("This challenge is not the next stage of another one.")
        going_on = _going_on(session, stage)
    came: list[str] = []
    with database.write() as session:
        mine: Challenge = database.lock(session, Challenge, challenge.id)  # twice at once carries nobody over twice
        if mine.revealed_at:
            raise ConflictError("The results of this stage are out: nobody comes in any more.")
        there = select(StageTeam.first_team_id).join(Team, Team.id == StageTeam.team_id)
        known = set(session.scalars(there.where(Team.challenge_id == mine.id)))
        for team_id in going_on:
            team = session.get_one(Team, team_id)
            if team.id not in known and not team.standing and (name := _carry_over(session, mine, team)):
                came.append(name)
        audit.note(session, actor, "stage.advance", challenge=mine, subject=mine.slug, count=len(came), teams=came)
    return came


def _going_on(session: Session, stage: LaterStage) -> list[int]:
    """The teams of the stage before that go on, by their numbers."""
    first = session.get_one(Challenge, stage.first_id)
    if stage.entry != "all" and not first.revealed_at:
        raise ConflictError(f"The results of {first.slug} decide who goes on: reveal them first.")
    if any(phase.ends_at > utc_now() for phase in first.phases):
        raise ConflictError(f"A phase of {first.slug} is still open or ahead: let it end first.")
    teams = select(Team).where(Team.challenge_id == first.id, Team.kind == "participants", Team.standing == "")
    by_name = {team.name: team.id for team in session.scalars(teams.order_by(Team.id))}
    if stage.entry == "all":
        return list(by_name.values())
    if stage.entry == "final":
        finals = {final.submission.team_id for final in final_submissions(session, first) if final.eligible}
        return sorted(finals & set(by_name.values()))
    board = visibility.board_of(session, visibility.look(first, None, manages=True))
    best = [row.entrant.team for row in board.rows if row.place is not None and row.place <= (stage.top or 0)]
    return [by_name[name] for name in best if name in by_name]


def _carry_over(session: Session, challenge: Challenge, team: Team) -> str | None:
    """Makes a team of this stage out of one of the stage before; None where nobody of it may take part."""
    query = select(Membership).where(Membership.team_id == team.id, Membership.left_at.is_(None))
    members = [
        member.user
        for member in session.scalars(query.order_by(Membership.joined_at))
        if not manages(session, member.user, challenge)
        and session.get(Insider, (challenge.id, member.user_id)) is None
        and member.user.deleted_at is None
    ]
    if not members:
        return None
    taken = select(Team.id).where(Team.challenge_id == challenge.id, Team.name_look == team.name_look)
    clash = session.scalars(taken).first() is not None  # such as a baseline of this stage
    name = f"{team.name[:50]} ({team.id})" if clash else team.name
    look = f"{team.name_look[:240]} ({team.id})" if clash else team.name_look
    captain = team.captain_id if team.captain_id in {user.id for user in members} else members[0].id
    made = Team(challenge_id=challenge.id, name=name, name_key=name.casefold(), name_look=look, captain_id=captain)
    session.add(made)
    session.flush()
    session.add(StageTeam(team_id=made.id, first_team_id=team.id))
    session.add_all(Membership(team_id=made.id, user_id=user.id, challenge_id=challenge.id) for user in members)
    session.flush()
    return name
