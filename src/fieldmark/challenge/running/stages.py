"""Challenges in stages: a later one with a test set, dates and limits of its own, for teams that came through.

A later stage is a challenge like any other (truth, phases, limits, files, boards, reveal), tied to the one before it.
Its teams are those of the stage before that its rule lets through; nobody else forms or joins one. They are carried
over when the organizers say so (`advance`), which may be said again: teams that qualify by then are added, none is
taken away.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from fieldmark.challenge.boards import visibility
from fieldmark.challenge.boards.finals import final_submissions
from fieldmark.challenge.people.rights import is_kept_from, manages, open_challenge
from fieldmark.challenge.records import audit
from fieldmark.challenge.records.database import Database
from fieldmark.challenge.records.participation import LaterStage, StageEntry, StageTeam
from fieldmark.challenge.records.schema import Challenge, Insider, Membership, Team, User, utc_now
from fieldmark.challenge.refusals import ConflictError, RefusalError

ENTRIES: dict[StageEntry, str] = {
    "all": "all teams of the stage before",
    "final": "teams with a run in the final ranking of the stage before",
    "top": "the first teams of the final ranking of the stage before",
}


@dataclass(frozen=True)
class StageLink:
    """One of the stages that belong together.

    Args:
        number: Which, from 1.
        slug, title: The challenge.
        here: Whether it is the one that is looked at.
    """

    number: int
    slug: str
    title: str
    here: bool


def checked_entry(entry: str, top: int | None) -> tuple[StageEntry, int | None]:
    """Who goes on, as it is stored.

    Raises:
        RefusalError: When there is no such rule, or the number of teams is missing.
    """
    found = next((one for one in ENTRIES if one == entry), None)
    if found is None:
        raise RefusalError(f"Who goes on: found {entry[:40]!r}, expected one of {', '.join(ENTRIES)}.")
    if found == "top" and (top is None or not 1 <= top <= 10_000):
        raise RefusalError("Say how many teams go on: a whole number from 1 to 10000.")
    return found, top if found == "top" else None


def stage_before(session: Session, user: User, slug: str, benchmark: str) -> Challenge:
    """The challenge that a new one is the next stage of, for somebody who runs it.

    Raises:
        NotThereError: When they run none of that name.
        RefusalError: When it is about another benchmark.
        ConflictError: When it has a next stage already.
    """
    first = open_challenge(session, user, slug, manage=True)
    if first.benchmark != benchmark:
        raise RefusalError(f"{slug} is a challenge of {first.benchmark}; its next stage is one as well.")
    if session.scalars(select(LaterStage.challenge_id).where(LaterStage.first_id == first.id)).first() is not None:
        raise ConflictError(f"{slug} has a next stage already.")
    return first


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


def stages_around(session: Session, user: User | None, challenge: Challenge) -> list[StageLink]:
    """The stages that a challenge is one of, as far as somebody may see them; empty where it is the only one."""
    line = [challenge]
    while (before := session.get(LaterStage, line[0].id)) is not None:
        line.insert(0, session.get_one(Challenge, before.first_id))
    after = select(Challenge).join(LaterStage, LaterStage.challenge_id == Challenge.id)
    while (following := session.scalars(after.where(LaterStage.first_id == line[-1].id)).first()) is not None:
        line.append(following)
    links = [
        StageLink(number, one.slug, one.title, one.id == challenge.id)
        for number, one in enumerate(line, 1)
        if one.id == challenge.id or _may_see(session, user, one)
    ]
    return links if len(links) > 1 else []


def in_words(stage: LaterStage) -> str:
    """Who goes on, as pages say it."""
    return f"the first {stage.top} of the final ranking" if stage.entry == "top" else ENTRIES[stage.entry]


def _may_see(session: Session, user: User | None, challenge: Challenge) -> bool:
    if challenge.published_at is None:
        return manages(session, user, challenge)
    return not is_kept_from(session, user, challenge)


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
