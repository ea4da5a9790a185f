"""Two teams that become one.

The captain of one team asks, the captain of the other agrees. Together they must not have submitted more than one team
could have: for each phase no more runs in all than its limit, and on no day more than the limit of a day, each run by
the limits that held when it was submitted. From then on
all runs count as those of one team, so that nobody gains runs by merging. Merging is possible where the organizers
allow it, while a phase is open, and between teams that are both in the ranking.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session, joinedload

from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError
from fieldmark_challenge.challenges.phases import limits_over_time, phase_at
from fieldmark_challenge.people.rights import need_acceptance, team_of
from fieldmark_challenge.people.teams import need_captain
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.code_schema import Program
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.participation import LaterStage, MergeOffer
from fieldmark_challenge.records.schema import Challenge, Invitation, Membership, Submission, Team, User, utc_now
from fieldmark_challenge.records.stamps import note_change

OPEN_OFFERS = 5


@dataclass(frozen=True)
class Offers:
    """The open wishes to merge that concern a team: those of others, and its own."""

    received: list[MergeOffer]
    made: list[MergeOffer]


def offer_merge(database: Database, user: User, challenge: Challenge, into: str) -> MergeOffer:
    """Asks another team to take this one in; only captains ask.

    Raises:
        RefusalError: When there is no such team.
        ConflictError: When the two cannot merge, and why.
    """
    with database.write() as session:
        present = session.get_one(Challenge, challenge.id)
        team = _own_team(session, user, present)
        key = " ".join(into.split()).casefold()
        query = select(Team).where(Team.challenge_id == challenge.id, Team.name_key == key)
        named = query.where(Team.kind == "participants", Team.standing.not_in(("hidden", "merged")))
        other = session.scalars(named).first()
        if other is None or other.id == team.id:
            raise RefusalError("There is no other team of that name in this challenge.")
        _check(session, present, team, other)
        made = offers_of(session, team).made
        if any(one.into_id == other.id for one in made):
            raise ConflictError(f"{other.name} has been asked already; its captain decides.")
        if len(made) >= OPEN_OFFERS:
            raise ConflictError("Several teams have been asked already: take one of these back first.")
        offer = MergeOffer(team_id=team.id, into_id=other.id, made_by=user.id)
        session.add(offer)
        session.flush()
        audit.note(session, user, "team.merge-ask", challenge=challenge, subject=team.name, into=other.name)
    return offer


def settle_merge(database: Database, user: User, challenge: Challenge, offer_id: int, *, accept: bool) -> None:
    """Agrees to a merge, declines it, or (for the team that asked) takes the wish back.

    Raises:
        NotThereError: When there is no such open wish that concerns one's own team.
        ConflictError: When the two cannot merge (any more).
    """
    with database.write() as session:
        present = session.get_one(Challenge, challenge.id)
        team = _own_team(session, user, present)
        offer = session.get(MergeOffer, offer_id)
        if offer is None or team.id not in (offer.team_id, offer.into_id):
            raise NotThereError
        for number in sorted((offer.team_id, offer.into_id)):  # always in the same order: nobody waits for each other
            database.lock(session, Team, number)
        session.refresh(offer)
        if offer.settled_at is not None:
            raise NotThereError
        if accept and team.id != offer.into_id:
            raise ConflictError("The captain of the other team decides.")
        offer.settled_at = utc_now()
        if not accept:
            audit.note(session, user, "team.merge-decline", challenge=challenge, subject=offer.team.name)
            return
        _check(session, present, offer.team, offer.into)
        offer.accepted = True
        _merge(session, present, offer.team, offer.into)
        about = {"into": offer.into.name, "team": offer.team_id, "into_team": offer.into_id}
        audit.note(session, user, "team.merge", challenge=challenge, subject=offer.team.name, **about)


def offers_of(session: Session, team: Team) -> Offers:
    """The open wishes that concern a team."""
    query = select(MergeOffer).where(MergeOffer.settled_at.is_(None))
    query = query.where(or_(MergeOffer.team_id == team.id, MergeOffer.into_id == team.id))
    rows = session.scalars(query.options(joinedload(MergeOffer.team), joinedload(MergeOffer.into)))
    both = list(rows.all())
    return Offers([one for one in both if one.into_id == team.id], [one for one in both if one.team_id == team.id])


def _own_team(session: Session, user: User, challenge: Challenge) -> Team:
    need_acceptance(session, user, challenge)
    team = team_of(session, user, challenge)
    if team is None:
        raise NotThereError
    need_captain(session, user, team, "merges it with another one")
    return team


def _check(session: Session, challenge: Challenge, first: Team, second: Team) -> None:
    """Refuses a merge that the rules do not allow."""
    if not challenge.merging:
        raise ConflictError("The organizers do not allow teams of this challenge to merge.")
    if session.get(LaterStage, challenge.id) is not None:
        raise ConflictError("Teams of a later stage stay as they came.")
    if challenge.revealed_at or phase_at(challenge.phases, utc_now()) is None:
        raise ConflictError("Teams merge only while a phase is open.")
    for team in (first, second):
        if team.standing:
            raise ConflictError(f"{team.name} is {team.standing} and cannot merge.")
    both = (first.id, second.id)
    members = select(func.count()).where(Membership.team_id.in_(both))  # those who left count as well
    size = session.execute(members).scalar_one()
    if size > challenge.max_team_size:
        raise ConflictError(f"Together they have {size} members; a team has at most {challenge.max_team_size}.")
    _check_quota(session, challenge, both)


def _check_quota(session: Session, challenge: Challenge, both: tuple[int, int]) -> None:
    """Refuses teams that have submitted together more than one team could have, by the limits of that time."""
    for phase in challenge.phases:
        counted = (Submission.team_id.in_(both), Submission.phase_id == phase.id, Submission.counted.is_(True))
        query = select(Submission.accepted_at, Submission.quota_day).where(*counted)
        runs = session.execute(query.order_by(Submission.accepted_at, Submission.id)).all()
        of_day = Counter(day for _, day in runs)
        limits, so_far = limits_over_time(session, phase), Counter[str]()
        for number, (moment, day) in enumerate(runs, start=1):
            so_far[day] += 1
            then = max((one for one in limits if one.since <= moment), key=lambda one: one.since)
            if so_far[day] > then.daily:
                raise ConflictError(
                    f"Together they have submitted {of_day[day]} runs on {day} in the phase {phase.name!r}, "
                    f"where one team had {then.daily} a day."
                )
            if number > then.total:
                raise ConflictError(
                    f"Together they have submitted {len(runs)} runs in the phase {phase.name!r}, "
                    f"where one team had {then.total}."
                )


def _merge(session: Session, challenge: Challenge, team: Team, into: Team) -> None:
    # Programs before submissions, as whoever ends a program changes them: else each could wait for the other.
    session.execute(update(Program).where(Program.team_id == team.id).values(team_id=into.id))
    keys = select(Submission.idempotency_key).where(Submission.team_id == into.id)
    there = set(session.scalars(keys.where(Submission.idempotency_key.is_not(None))))
    own = update(Submission).where(Submission.team_id == team.id)
    if there:  # a key is one of a kind within a team
        session.execute(own.where(Submission.idempotency_key.in_(there)).values(idempotency_key=None))
    session.execute(own.values(team_id=into.id))
    session.execute(update(Membership).where(Membership.team_id == team.id).values(team_id=into.id))
    chosen = (Submission.team_id == into.id, Submission.selected.is_(True))
    if session.execute(select(func.count()).where(*chosen)).scalar_one() > challenge.max_final:
        session.execute(update(Submission).where(*chosen).values(selected=False))  # too many: to be chosen again
    now = utc_now()
    unused = (Invitation.team_id == team.id, Invitation.used_at.is_(None), Invitation.revoked_at.is_(None))
    session.execute(update(Invitation).where(*unused).values(revoked_at=now))
    concerned = or_(MergeOffer.team_id == team.id, MergeOffer.into_id == team.id)
    session.execute(update(MergeOffer).where(concerned, MergeOffer.settled_at.is_(None)).values(settled_at=now))
    team.standing, team.standing_reason, team.standing_at = "merged", f"merged into {into.name}", now
    note_change(session, challenge.id)
