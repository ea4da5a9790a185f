"""Who may see and do what. Every route asks here, so that there is one place to get it right."""

from __future__ import annotations

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from fieldmark.challenge.records.schema import (
    Acceptance,
    Challenge,
    Insider,
    Membership,
    Organizer,
    Submission,
    Team,
    User,
)
from fieldmark.challenge.refusals import ConflictError, NotThereError


def manages(session: Session, user: User | None, challenge: Challenge) -> bool:
    """Whether somebody runs a challenge: an admin, its owner, or one of its organizers.

    Through a token they do so only where the token allows it.
    """
    if user is None or not user.may_organize:
        return False
    if user.role == "admin" or challenge.owner_id == user.id:
        return True
    return session.get(Organizer, (challenge.id, user.id)) is not None


def open_challenge(session: Session, user: User | None, slug: str, *, manage: bool = False) -> Challenge:
    """The challenge by its short name, for somebody who may see it (or, with `manage`, run it).

    Raises:
        NotThereError: When there is none, or none that they may know of.
    """
    if "\0" in slug:  # PostgreSQL would not even look
        raise NotThereError
    challenge = session.scalars(select(Challenge).where(Challenge.slug == slug)).one_or_none()
    if challenge is None:
        raise NotThereError
    if (manage or challenge.published_at is None) and not manages(session, user, challenge):
        raise NotThereError
    return challenge


def visible_challenges(session: Session, user: User | None) -> list[Challenge]:
    """The challenges that somebody may see, newest first."""
    query = select(Challenge).order_by(Challenge.created_at.desc(), Challenge.id.desc())
    if user is None or not user.may_organize:
        query = query.where(Challenge.published_at.is_not(None))
    elif user.role != "admin":
        helped = select(Organizer.challenge_id).where(Organizer.user_id == user.id)
        own = or_(Challenge.owner_id == user.id, Challenge.id.in_(helped))
        query = query.where(or_(Challenge.published_at.is_not(None), own))
    return list(session.scalars(query))


def team_of(session: Session, user: User | None, challenge: Challenge) -> Team | None:
    """The team of somebody in a challenge."""
    if user is None:
        return None
    query = select(Team).join(Membership).where(Membership.challenge_id == challenge.id, Membership.user_id == user.id)
    return session.scalars(query).one_or_none()


def open_submission(session: Session, user: User | None, challenge: Challenge, submission_id: int) -> Submission:
    """A submission for a member of its team, or for somebody who runs the challenge."""
    submission = session.get(Submission, submission_id)
    if submission is None or submission.challenge_id != challenge.id:
        raise NotThereError
    if manages(session, user, challenge):
        return submission
    team = team_of(session, user, challenge)
    if team is None or team.id != submission.team_id:
        raise NotThereError
    return submission


def note_insider(session: Session, challenge_id: int, user_id: int) -> None:
    """Notes that somebody has access to the truth of a challenge, for good: what was seen cannot be unseen."""
    if session.get(Insider, (challenge_id, user_id)) is None:
        session.add(Insider(challenge_id=challenge_id, user_id=user_id))


def need_distance(session: Session, user: User, challenge: Challenge) -> None:
    """Keeps those who can see the truth from competing, and those who once could.

    Raises:
        ConflictError: When it is one of them.
    """
    if manages(session, user, challenge):
        raise ConflictError("Those who run a challenge do not take part in it; hand a run in as a baseline instead.")
    if session.get(Insider, (challenge.id, user.id)) is not None:
        raise ConflictError("Those who have had access to the hidden labels of a challenge do not take part in it.")


def has_accepted(session: Session, user: User | None, challenge: Challenge) -> bool:
    """Whether somebody accepted the rules as they are now."""
    key = (challenge.id, user.id if user else 0, challenge.rules_version)
    return session.get(Acceptance, key) is not None


def need_acceptance(session: Session, user: User, challenge: Challenge) -> None:
    """Refuses to go on before the rules are accepted; those who run the challenge wrote them."""
    if not has_accepted(session, user, challenge) and not manages(session, user, challenge):
        raise ConflictError("Accept the rules of the challenge first.")
