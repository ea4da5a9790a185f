"""What organizers change about a challenge after it is made."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError
from fieldmark_challenge.people import accounts
from fieldmark_challenge.people.names import clean_text
from fieldmark_challenge.people.rights import note_insider
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.participation import LaterStage
from fieldmark_challenge.records.schema import (
    ACCESS,
    STATES,
    Access,
    Challenge,
    DataFile,
    Membership,
    Organizer,
    Submission,
    Team,
    User,
)
from fieldmark_challenge.records.storage import Storage

# What decides about the final ranking, and stays once that is known.
DECIDING = ("max_final", "needs_run_without_external", "ladder")
NOTED = 500


@dataclass(frozen=True)
class Texts:
    """What a challenge says about itself, and the limits that are not those of a phase."""

    title: str
    summary: str
    description: str
    rules: str
    max_upload_mb: int
    max_team_size: int
    max_final: int
    needs_run_without_external: bool
    ladder: bool
    access: str = "open"
    merging: bool = False


def texts_of(challenge: Challenge) -> Texts:
    """The settings of a challenge as they are."""
    return Texts(**{field.name: getattr(challenge, field.name) for field in fields(Texts)})


def change(database: Database, actor: User, challenge: Challenge, texts: Texts, *, most_upload_mb: int) -> None:
    """Saves the settings of a challenge; new rules have to be accepted again."""
    if not 1 <= texts.max_upload_mb <= most_upload_mb:
        raise RefusalError(f"The limit on uploads lies between 1 and {most_upload_mb} MiB on this server.")
    if not (1 <= texts.max_team_size <= 100 and 1 <= texts.max_final <= 20):
        raise RefusalError("A team has 1 to 100 members and chooses 1 to 20 final runs.")
    access = known_access(texts.access)
    title = clean_text(texts.title, 200, "title")
    if not title:
        raise RefusalError("A challenge needs a title.")
    with database.write() as session:
        mine: Challenge = database.lock(session, Challenge, challenge.id)
        if access in ("open", "approval") and session.get(LaterStage, mine.id) is not None:
            raise ConflictError("Teams of a later stage are those that came through: by invitation, or in private.")
        rules = clean_text(texts.rules, 20_000, "rules")
        before = texts_of(mine)
        if mine.revealed_at and any(getattr(texts, name) != getattr(before, name) for name in DECIDING):
            raise ConflictError("The private scores are revealed: what decides about the final ranking stays.")
        if (
            texts.ladder != mine.ladder
            and session.scalars(
                select(Submission.id)
                .where(Submission.challenge_id == mine.id, Submission.phase_id.is_not(None))
                .limit(1)
            ).first()
        ):
            raise ConflictError("The ladder is chosen before the first run: scores that were shown cannot be unseen.")
        if rules != mine.rules:
            mine.rules, mine.rules_version = rules, mine.rules_version + 1
        mine.title, mine.summary = title, clean_text(texts.summary, 500, "summary")
        mine.description = clean_text(texts.description, 20_000, "description")
        mine.max_upload_mb, mine.max_team_size, mine.max_final = (
            texts.max_upload_mb,
            texts.max_team_size,
            texts.max_final,
        )
        mine.needs_run_without_external, mine.ladder = texts.needs_run_without_external, texts.ladder
        mine.access, mine.merging = access, texts.merging
        audit.note(
            session,
            actor,
            "challenge.change",
            challenge=mine,
            rules_version=mine.rules_version,
            changed=_changes(before, texts_of(mine)),
        )


def known_access(text: str) -> Access:
    """Who may take part, by its name.

    Raises:
        RefusalError: When there is no such name.
    """
    found = next((one for one in ACCESS if one == text), None)
    if found is None:
        raise RefusalError(f"Who may take part: found {text[:40]!r}, expected one of {', '.join(ACCESS)}.")
    return found


def _changes(before: Texts, after: Texts) -> dict[str, dict[str, Any]]:
    """What was changed, from what to what; long texts by their beginning."""
    pairs = {field.name: (getattr(before, field.name), getattr(after, field.name)) for field in fields(Texts)}
    return {name: {"before": _noted(old), "after": _noted(new)} for name, (old, new) in pairs.items() if old != new}


def _noted(value: Any) -> Any:
    return f"{value[:NOTED]}... ({len(value)} characters)" if isinstance(value, str) and len(value) > NOTED else value


def add_organizer(database: Database, actor: User, challenge: Challenge, who: str) -> None:
    """Lets somebody else run the challenge as well."""
    with database.write() as session:
        user = accounts.find_user(session, who)
        if user is None:
            raise RefusalError("There is no account with that name or address.")
        if user.id == challenge.owner_id or session.get(Organizer, (challenge.id, user.id)) is not None:
            raise ConflictError("This person is already an organizer of the challenge.")
        mine = select(Membership.team_id).where(Membership.challenge_id == challenge.id, Membership.user_id == user.id)
        if session.scalars(mine).first() is not None:  # also those who left: their team goes on
            raise ConflictError("This person takes part in the challenge, so cannot organize it.")
        session.add(Organizer(challenge_id=challenge.id, user_id=user.id))
        try:
            session.flush()
            note_insider(session, challenge.id, user.id)
            session.flush()
        except IntegrityError as error:  # somebody else has just done so
            raise ConflictError("This person is already an organizer of the challenge.") from error
        audit.note(session, actor, "organizer.add", challenge=challenge, subject=user.name)


def remove_organizer(database: Database, actor: User, challenge: Challenge, user_id: int) -> None:
    """Takes the right to run the challenge back; its owner keeps it."""
    with database.write() as session:
        organizer = session.get(Organizer, (challenge.id, user_id))
        if organizer is None:
            raise NotThereError
        session.delete(organizer)
        name = session.get_one(User, user_id).name
        audit.note(session, actor, "organizer.remove", challenge=challenge, subject=name)


def give_away(database: Database, actor: User, challenge: Challenge, user_id: int) -> None:
    """Makes one of the organizers the owner of a challenge; the owner of before stays an organizer.

    Raises:
        NotThereError: When that person does not run the challenge.
    """
    with database.write() as session:
        mine: Challenge = database.lock(session, Challenge, challenge.id)
        heir = session.get(Organizer, (challenge.id, user_id))
        if heir is None:
            raise NotThereError
        before, name = mine.owner_id, session.get_one(User, user_id).name
        session.delete(heir)
        session.add(Organizer(challenge_id=challenge.id, user_id=before))
        mine.owner_id = user_id
        audit.note(session, actor, "organizer.own", challenge=challenge, subject=name, account_before=before)


def organizers_of(session: Session, challenge: Challenge) -> list[User]:
    """Who runs a challenge, its owner first."""
    helpers = select(User).join(Organizer, Organizer.user_id == User.id).where(Organizer.challenge_id == challenge.id)
    return [session.get_one(User, challenge.owner_id), *session.scalars(helpers.order_by(User.name_key))]


def baselines_of(session: Session, challenge: Challenge) -> list[Submission]:
    """The runs of the organizers, in the order in which they were submitted."""
    query = select(Submission).join(Team, Team.id == Submission.team_id)
    query = query.where(Team.challenge_id == challenge.id, Team.kind == "baseline")
    return list(session.scalars(query.order_by(Submission.id)))


def delete_data_file(database: Database, storage: Storage, actor: User, challenge: Challenge, file_id: int) -> None:
    """Removes something to download."""
    with database.write() as session:
        data_file = session.get(DataFile, file_id)
        if data_file is None or data_file.challenge_id != challenge.id:
            raise NotThereError
        path = data_file.path
        session.delete(data_file)
        audit.note(session, actor, "data.delete", challenge=challenge, subject=data_file.name, sha256=data_file.sha256)
    storage.delete(path)


def count_states(session: Session, challenge: Challenge) -> dict[str, int]:
    """How many submissions are in each state."""
    query = select(Submission.state, func.count()).where(Submission.challenge_id == challenge.id)
    counts: dict[str, int] = dict.fromkeys(STATES, 0)
    for state, count in session.execute(query.group_by(Submission.state)):
        counts[state] = count
    return counts
