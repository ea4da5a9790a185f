"""Who may see and do what. Every route asks here, so that there is one place to get it right."""

from __future__ import annotations

import hashlib
import hmac

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from fieldmark.web.refusals import ConflictError, NotThereError
from fieldmark_challenge.records.participation import Admission, LaterStage
from fieldmark_challenge.records.schema import (
    Acceptance,
    Challenge,
    Insider,
    Membership,
    Organizer,
    Setting,
    Submission,
    Team,
    User,
)

PAST_SECRET = "past-secret"  # the setting that addresses of deleted accounts are hashed with
REFUSED = "The organizers have decided that you do not take part in this challenge."
COUNTED = ("", "disqualified")  # the standing of teams that pages count: others withdrew, merged, or are hidden


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
    if is_kept_from(session, user, challenge):
        raise NotThereError
    return challenge


def is_kept_from(session: Session, user: User | None, challenge: Challenge) -> bool:
    """Whether a private challenge must not be known to somebody."""
    if challenge.access != "private":
        return False
    return not is_admitted(session, user, challenge) and not manages(session, user, challenge)


def mark_of(secret: bytes, email: str) -> str:
    """A keyed hash of an address."""
    return hmac.new(secret, email.encode(), hashlib.sha256).hexdigest()


def is_refused(session: Session, user: User, challenge: Challenge) -> bool:
    """Whether the organizers keep somebody out of a challenge: this account, or a deleted one of its address.

    A word about the new account settles it.
    """
    noted = session.get(Admission, (challenge.id, user.id))
    if noted is not None and noted.state != "asked":
        return noted.state == "refused"
    secret = session.get(Setting, PAST_SECRET)
    if secret is None:  # nobody has ever deleted an account
        return False
    past = select(User.id).where(User.past_mark == mark_of(secret.value, user.email))
    refused = (Admission.challenge_id == challenge.id, Admission.state == "refused", Admission.user_id.in_(past))
    return session.scalars(select(Admission.user_id).where(*refused).limit(1)).first() is not None


def is_admitted(session: Session, user: User | None, challenge: Challenge) -> bool:
    """Whether somebody was let into a challenge: by name or code, or because they are in a team of it already."""
    if user is None:
        return False
    noted = session.get(Admission, (challenge.id, user.id))
    if noted is not None and noted.state != "asked":
        return noted.state == "admitted"
    return team_of(session, user, challenge) is not None


def need_admission(session: Session, user: User, challenge: Challenge) -> None:
    """Refuses those who may not take part.

    Raises:
        ConflictError: Says what to do about it.
    """
    if is_refused(session, user, challenge):
        raise ConflictError(REFUSED)
    noted = session.get(Admission, (challenge.id, user.id))
    if challenge.access == "open" or is_admitted(session, user, challenge):
        return
    if session.get(LaterStage, challenge.id) is not None:
        raise ConflictError("Only teams that came through the stage before take part in this one.")
    if challenge.access != "approval":
        raise ConflictError("Taking part is by invitation: enter the code that the organizers gave you.")
    if noted is not None:
        raise ConflictError("The organizers have yet to decide whether you take part.")
    raise ConflictError("The organizers decide who takes part: ask them on the page of the challenge.")


def visible_challenges(session: Session, user: User | None) -> list[Challenge]:
    """The challenges that somebody may see, newest first."""
    query = select(Challenge).order_by(Challenge.created_at.desc(), Challenge.id.desc())
    number = user.id if user is not None else 0
    noted = select(Admission.challenge_id).where(Admission.user_id == number)
    teams = select(Membership.challenge_id).where(Membership.user_id == number, Membership.left_at.is_(None))
    refused = Challenge.id.in_(noted.where(Admission.state == "refused"))
    let_in = or_(Challenge.id.in_(noted.where(Admission.state == "admitted")), Challenge.id.in_(teams) & ~refused)
    shown = Challenge.published_at.is_not(None) & ((Challenge.access != "private") | let_in)
    if user is None or not user.may_organize:
        query = query.where(shown)
    elif user.role != "admin":
        helped = select(Organizer.challenge_id).where(Organizer.user_id == user.id)
        own = or_(Challenge.owner_id == user.id, Challenge.id.in_(helped))
        query = query.where(or_(shown, own))
    return list(session.scalars(query))


def team_of(session: Session, user: User | None, challenge: Challenge) -> Team | None:
    """The team of somebody in a challenge; none for those who left theirs."""
    if user is None:
        return None
    query = select(Team).join(Membership).where(Membership.challenge_id == challenge.id, Membership.user_id == user.id)
    return session.scalars(query.where(Membership.left_at.is_(None))).one_or_none()


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
        raise ConflictError(
            "Organizers and admins cannot take part in a challenge; submit a run as a baseline instead."
        )
    if session.get(Insider, (challenge.id, user.id)) is not None:
        raise ConflictError("People who had access to the hidden labels of a challenge cannot take part in it.")


def has_accepted(session: Session, user: User | None, challenge: Challenge) -> bool:
    """Whether somebody accepted the rules as they are now."""
    key = (challenge.id, user.id if user else 0, challenge.rules_version)
    return session.get(Acceptance, key) is not None


def need_acceptance(session: Session, user: User, challenge: Challenge) -> None:
    """Refuses to go on before the rules are accepted; those who run the challenge wrote them.

    Who may not take part (any more) is refused as well, whatever they accepted.
    """
    if manages(session, user, challenge):
        return
    need_admission(session, user, challenge)
    if not has_accepted(session, user, challenge):
        raise ConflictError("Accept the rules of the challenge first.")
